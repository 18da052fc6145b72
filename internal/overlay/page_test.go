package overlay

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheFormatPageNamesEveryField: a second reader finds every JSON field that is written in docs/format/overlay.md.
func TestTheFormatPageNamesEveryField(t *testing.T) {
	raw, err := os.ReadFile("../../docs/format/overlay.md")
	require.NoError(t, err)
	page := string(raw)
	seen := map[reflect.Type]bool{}
	var look func(reflect.Type)
	look = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || seen[of] {
			return
		}
		seen[of] = true
		for i := range of.NumField() {
			f := of.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			if name != "" {
				require.Contains(t, page, "`"+name+"`", "%s.%s", of.Name(), f.Name)
			}
			look(f.Type)
		}
	}
	for _, x := range []any{header{}, Head{}, InFlight{}} {
		look(reflect.TypeOf(x))
	}
	require.Greater(t, len(seen), 8)
}
