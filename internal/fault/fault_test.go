package fault

import "testing"

// TestSubjectsAreNamedOnce: a layer that adds the subject which its cause names already does not repeat it.
func TestSubjectsAreNamedOnce(t *testing.T) {
	cause := New(Denied, "/x/y", "permission denied")
	for want, err := range map[string]error{
		"/x/y: permission denied":                          About("/x/y", cause),
		"/x: /x/y: permission denied":                      About("/x", cause),
		"/x/y: cannot be written: /x/y: permission denied": New(Denied, "/x/y", "cannot be written").WithCause(cause),
	} {
		if got := err.Error(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
