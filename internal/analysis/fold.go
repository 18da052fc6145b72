// Package analysis answers: which words does a text hold, and which texts differ in case only?
//
// An analyzer is known by name and version: the pair stands in the lineage of what was built with it and in the identity of
// what a query asks, so that words cut in two ways are never compared. A changed result is a new version. The package knows
// no columns, predicates or indexes.
package analysis

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// FoldRune maps runes that differ in case only to one of them: simple case folding (Unicode, CaseFolding.txt, statuses C and S;
// the orbits of unicode.SimpleFold), one rune to one rune. The Kelvin sign folds to k and ſ to s; İ and ß have no other case
// but ẞ.
func FoldRune(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	if r < foldTableSize {
		return rune(foldTable()[r])
	}
	return leastOfOrbit(r)
}

const foldTableSize = 1 << 16

var foldTable = sync.OnceValue(func() *[foldTableSize]uint16 {
	var t [foldTableSize]uint16
	for r := range rune(foldTableSize) {
		t[r] = uint16(r)
		if f := leastOfOrbit(r); f < foldTableSize {
			t[r] = uint16(f)
		}
	}
	return &t
})

// leastOfOrbit is the least rune among those that differ from r in case only, an ASCII letter in lower case.
func leastOfOrbit(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	if 'A' <= least && least <= 'Z' {
		least += 'a' - 'A'
	}
	return least
}

// AppendFold appends text with every rune folded. Bytes that are not UTF-8 stay as they are, so that runes keep their number and
// order.
func AppendFold(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			dst = append(dst, c)
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			dst = append(dst, c)
		} else {
			dst = utf8.AppendRune(dst, FoldRune(r))
		}
		i += n
	}
	return dst
}
