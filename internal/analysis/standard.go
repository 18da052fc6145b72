package analysis

import (
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
)

// Standard is the name and version of the analyzer that cuts texts of any language into words. The version grows with the rules; the
// version of Unicode's tables belongs to it, since new characters come with new letters and new cases.
//
// A text is cut at the word boundaries of Unicode Standard Annex #29 (by uax29, Unicode 17), and there again at every sign but
// apostrophes and underscores, so that "disk.full" and "error:timeout" are two words each. What holds neither a letter nor a number is
// dropped, and runes are folded (FoldRune). Scripts that are written without spaces (Han, Hiragana, Katakana, Thai, Lao, Khmer,
// Myanmar) give no words: of a run of them every rune and every two neighbours are a word.
const Standard = "standard.1-unicode" + unicode.Version

// Word is a word of a text.
type Word struct {
	Text []byte // folded; valid during the call that it is given to
	// Single marks a rune of a run of two or more without spaces, which its pairs say more precisely: a question leaves it out.
	Single bool
}

// EachWord visits the words of a text in order, repeated ones too. Bytes that are not UTF-8 are in no word.
func EachWord(text []byte, visit func(Word)) {
	var w cutter
	w.visit = visit
	if ascii(text) {
		w.ascii(text)
		return
	}
	for it := words.FromBytes(text); it.Next(); {
		w.segment(it.Value())
	}
	w.endRun()
}

// Words is the distinct words that a text must hold to hold this one, in order of appearance: pairs instead of single runes where
// there are pairs.
func Words(text string) []string {
	var out []string
	seen := map[string]bool{}
	EachWord([]byte(text), func(w Word) {
		if s := string(w.Text); !w.Single && !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	})
	return out
}

func ascii(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// cutter cuts segments into words.
type cutter struct {
	visit func(Word)
	word  []byte
	run   []rune // of runes without spaces, folded
}

const (
	other = iota
	letter
	digit
	underscore
)

// classes and lower are of ASCII; of other bytes they say nothing.
var classes, lower = asciiTables()

func asciiTables() (classes [256]uint8, lower [256]byte) {
	for c := range 256 {
		lower[c] = byte(c)
		switch {
		case 'a' <= c && c <= 'z':
			classes[c] = letter
		case 'A' <= c && c <= 'Z':
			classes[c], lower[c] = letter, byte(c)+'a'-'A'
		case '0' <= c && c <= '9':
			classes[c] = digit
		case c == '_':
			classes[c] = underscore
		}
	}
	return classes, lower
}

// ascii is the rules of UAX #29 for ASCII: letters, digits and underscores stick together, an apostrophe between two letters or two
// digits too.
func (w *cutter) ascii(text []byte) {
	for i := 0; i < len(text); {
		if classes[text[i]] == other {
			i++
			continue
		}
		from, some := i, false
		for ; i < len(text); i++ {
			class := classes[text[i]]
			if class == other && !(text[i] == '\'' && i+1 < len(text) && joined(text[i-1], text[i+1])) {
				break
			}
			some = some || class == letter || class == digit
		}
		if !some {
			continue
		}
		w.word = append(w.word[:0], text[from:i]...)
		for k, c := range w.word {
			w.word[k] = lower[c]
		}
		w.visit(Word{Text: w.word})
	}
}

func joined(before, after byte) bool {
	class := classes[before]
	return (class == letter || class == digit) && class == classes[after]
}

// segment takes a segment of UAX #29.
func (w *cutter) segment(s []byte) {
	w.word = w.word[:0]
	some := false
	end := func() {
		if some {
			w.visit(Word{Text: w.word})
		}
		w.word, some = w.word[:0], false
	}
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		s = s[n:]
		broken := r == utf8.RuneError && n == 1
		switch {
		case !broken && unspaced(r):
			end()
			w.run = append(w.run, FoldRune(r))
			continue
		case !broken && len(w.run) > 0 && unicode.Is(unicode.M, r) && len(w.word) == 0:
			w.run = append(w.run, r)
			continue
		}
		w.endRun()
		switch {
		case r < utf8.RuneSelf && classes[r] != other:
			w.word = append(w.word, lower[r])
			some = some || classes[r] != underscore
		case broken || !inWord(r):
			end()
		default:
			w.word = utf8.AppendRune(w.word, FoldRune(r))
			some = some || unicode.IsLetter(r) || unicode.IsNumber(r)
		}
	}
	end()
}

// inWord reports whether a rune of a segment belongs to its word.
func inWord(r rune) bool {
	return unicode.IsLetter(r) || r == '\'' || r == '\u2019' || unicode.IsNumber(r) || unicode.Is(unicode.M, r) || unicode.Is(unicode.Pc, r)
}

var withoutSpaces = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

// unspaced reports whether a rune is a letter, mark or number of a script without spaces, or the mark that lengthens Japanese vowels.
func unspaced(r rune) bool {
	if r < 0x0e00 {
		return false
	}
	return r == '\u30fc' || unicode.In(r, withoutSpaces...) && unicode.In(r, unicode.L, unicode.M, unicode.N)
}

// endRun visits the runes and pairs of the run at hand.
func (w *cutter) endRun() {
	var buf [2 * utf8.UTFMax]byte
	for i, r := range w.run {
		one := utf8.AppendRune(buf[:0], r)
		w.visit(Word{Text: one, Single: len(w.run) > 1})
		if i+1 < len(w.run) {
			w.visit(Word{Text: utf8.AppendRune(one, w.run[i+1])})
		}
	}
	w.run = w.run[:0]
}
