package analysis

import (
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestFoldRune: two runes fold to one exactly when they are in one orbit of simple case folding.
func TestFoldRune(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		f := FoldRune(r)
		if FoldRune(f) != f {
			t.Fatalf("%U folds to %U, which folds to %U", r, f, FoldRune(f))
		}
		if next := unicode.SimpleFold(r); FoldRune(next) != f {
			t.Fatalf("%U folds to %U and its other case %U to %U", r, f, next, FoldRune(next))
		}
		same := f == r
		for x := unicode.SimpleFold(r); x != r && !same; x = unicode.SimpleFold(x) {
			same = x == f
		}
		if !same {
			t.Fatalf("%U folds to %U, no case of it", r, f)
		}
	}
}

func TestAppendFold(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "",
		"Ärger ÄRGER":        "Ärger Ärger",
		"\u212A":             "k",            // Kelvin sign
		"\u017F":             "s",            // long s
		"\u0130 i I ı":       "\u0130 i i ı", // dotted capital I has no simple fold, dotless i none either
		"Straße STRAẞE":      "straße straße",
		"\xffA\xe2\x84Z\x80": "\xffa\xe2\x84z\x80",
	} {
		// what counts is the class, not which member stands for it
		if got, want := AppendFold(nil, []byte(text)), AppendFold(nil, []byte(want)); string(got) != string(want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzAppendFold(f *testing.F) {
	f.Add([]byte("K\u212A\xe2\x84"))
	f.Fuzz(func(t *testing.T, text []byte) {
		out := AppendFold(nil, text)
		if utf8.RuneCount(out) != utf8.RuneCount(text) {
			t.Errorf("%q has %d runes, %q has %d", text, utf8.RuneCount(text), out, utf8.RuneCount(out))
		}
		if again := AppendFold(nil, out); string(again) != string(out) {
			t.Errorf("%q folds to %q and then to %q", text, out, again)
		}
	})
}
