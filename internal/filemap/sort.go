package filemap

import (
	"cmp"
	"slices"
)

const digit = 11 // bits of a pass

// sortEntries sorts by (hash, place): a radix sort by the 44 highest bits of the hash, and insertion for what is left, which hashes
// make rare.
func sortEntries(e []entry) {
	if len(e) < 1<<digit {
		slices.SortFunc(e, compareEntries)
		return
	}
	other := make([]entry, len(e))
	for shift := 64 - 4*digit; shift < 64; shift += digit {
		var starts [1 << digit]int
		for i := range e {
			starts[e[i].hash>>shift&(1<<digit-1)]++
		}
		at := 0
		for d, n := range starts {
			starts[d] = at
			at += n
		}
		for i := range e {
			d := e[i].hash >> shift & (1<<digit - 1)
			other[starts[d]] = e[i]
			starts[d]++
		}
		e, other = other, e
	}
	// an even number of passes: e is the caller's again
	for from := 0; from < len(e); {
		to := from + 1
		for to < len(e) && e[to].hash>>(64-4*digit) == e[from].hash>>(64-4*digit) {
			to++
		}
		if part := e[from:to]; len(part) > 1 && !slices.IsSortedFunc(part, compareEntries) {
			slices.SortFunc(part, compareEntries)
		}
		from = to
	}
}

func compareEntries(a, b entry) int {
	return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.place, b.place))
}
