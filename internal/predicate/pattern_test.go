package predicate_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/predicate"
)

func TestPatternsEqualTheOracle(t *testing.T) {
	r := seeded(t)
	alphabet := []string{"a", "b", "ab", "é", "日", "\xff", "\xe2\x82", "\xa9", "%", "_", `\`, "foo"}
	matched := 0
	for range rounds(15_000) {
		pattern, escape := randomPattern(r)
		p, err := predicate.CompilePattern(pattern, escape)
		require.NoError(t, err, "%q", pattern)
		var text strings.Builder
		for range r.IntN(7) {
			text.WriteString(pick(r, alphabet))
		}
		want := likeOracle(pattern, escape, text.String())
		if got := p.Match([]byte(text.String())); got != want {
			t.Fatalf("%q LIKE %q ESCAPE %q: got %v", text.String(), pattern, escape, got)
		}
		if want {
			matched++
		}
		checkPatternFacts(t, p, text.String(), want)
		anyCasePattern(t, r)
	}
	require.Greater(t, matched, rounds(15_000)/50)
}

// anyCasePattern compares ILIKE with the oracle where letters have more than two cases, or other lengths in other cases.
func anyCasePattern(t *testing.T, r *rand.Rand) {
	t.Helper()
	alphabet := []string{"k", "K", "\u212A", "s", "S", "\u017F", "\u0130", "I", "i", "\u0131", "ß", "\u1E9E", "SS", "ς", "σ", "Σ", "ǆ", "ǅ", "\U00010400", "\U00010428", "%", "_"}
	var pattern, text strings.Builder
	for range r.IntN(4) {
		pattern.WriteString(pick(r, alphabet))
	}
	for range r.IntN(4) {
		text.WriteString(pick(r, append(alphabet, "\xff", "\xe2\x84", "\xaa")))
	}
	p, err := predicate.CompileAnyCase(pattern.String(), 0)
	require.NoError(t, err)
	want := matchPoints(pattern.String(), 0, text.String(), anyCase)
	require.Equal(t, want, p.Match([]byte(text.String())), "%q ILIKE %q", text.String(), pattern.String())
}

// checkPatternFacts holds what indexes conclude from a pattern against one match.
func checkPatternFacts(t *testing.T, p *predicate.Pattern, text string, matches bool) {
	t.Helper()
	if exact, ok := p.Exact(); ok {
		require.Equal(t, exact == text, matches, "%q is exactly %q", text, p.Text)
	}
	prefix, only := p.Prefix()
	if only {
		require.Equal(t, strings.HasPrefix(text, prefix), matches)
	}
	if !matches {
		return
	}
	require.True(t, strings.HasPrefix(text, prefix), "%q has the prefix of %q", text, p.Text)
	for _, lit := range p.Literals() {
		i := strings.Index(text, lit)
		require.GreaterOrEqual(t, i, 0, "%q has the literals of %q", text, p.Text)
		text = text[i+len(lit):]
	}
}

func TestPatternErrors(t *testing.T) {
	for _, bad := range []struct {
		text   string
		escape rune
	}{{"a!", '!'}, {"!", '!'}, {"a\xff", 0}, {strings.Repeat("a", predicate.MaxPattern+1), 0}} {
		_, err := predicate.CompilePattern(bad.text, bad.escape)
		require.Equal(t, fault.Invalid, fault.ClassOf(err), "%q", bad.text)
	}
}

// TestHostilePatterns: no pattern takes more than about its length times the text's.
func TestHostilePatterns(t *testing.T) {
	text := []byte(strings.Repeat("a", 20_000))
	for _, pattern := range []string{
		strings.Repeat("%a", 5000) + "b", strings.Repeat("a%", 5000) + "b", "%" + strings.Repeat("_", 500) + "b%", strings.Repeat("%_", 5000) + "b",
		"%" + strings.Repeat("a", 500) + "b%" + strings.Repeat("a", 500) + "c%",
	} {
		p, err := predicate.CompilePattern(pattern, 0)
		require.NoError(t, err)
		require.False(t, p.Match(text))
	}
}

func FuzzPattern(f *testing.F) {
	f.Add("a%b_c", "axxbyc", int32(0))
	f.Add("!%é%", "%éé", int32('!'))
	f.Add("%_\\", "\xff\\", int32('\\'))
	f.Fuzz(func(t *testing.T, pattern, text string, escape int32) {
		p, err := predicate.CompilePattern(pattern, escape)
		if err != nil {
			return
		}
		got := p.Match([]byte(text))
		if len(pattern)*len(text) < 1<<16 && got != likeOracle(pattern, escape, text) {
			t.Fatalf("%q LIKE %q ESCAPE %q: got %v", text, pattern, escape, got)
		}
		checkPatternFacts(t, p, text, got)
	})
}
