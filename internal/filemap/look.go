package filemap

import (
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
)

// Hash is the hash of a value's key-v1 bytes: xxHash64 with seed 0.
func Hash(key []byte) uint64 { return xxhash.Sum64(key) }

// nanKey is the key of every NaN, nanHash its hash.
var (
	nanKey  = column.AppendKey(nil, column.DoubleValue(math.NaN()))
	nanHash = Hash(nanKey)
)

// Speaks reports whether a run on the column col can say something of the leaf, and whether one without a value map can: that one
// only of =, IN and Contains without a negation.
func Speaks(col column.Path, leaf *predicate.Leaf) (some, every bool) {
	if !index.About([]column.Path{col}, leaf) || leaf.Op == predicate.Contains && leaf.Negated {
		return false, false
	}
	switch leaf.Op {
	case predicate.Contains:
		return true, true
	case predicate.Equal, predicate.In:
		some, every = true, !leaf.Negated && len(leaf.Values) > 0
	case predicate.IsNull, predicate.IsNaN, predicate.Less, predicate.LessEqual, predicate.Greater, predicate.GreaterEqual,
		predicate.StartsWith, predicate.Like, predicate.ILike, predicate.Match:
		some = true
	}
	repeated := leaf.Column.Path.Repeated() // what is asked of lists otherwise is not about their elements
	return some && !repeated, every && !repeated
}

// hashesOf is the hashes of the values that a leaf without a negation asks for; false if it asks for others than single ones.
func hashesOf(leaf *predicate.Leaf, ask index.Ask) (hashes []uint64, ok bool) {
	for _, iv := range ask.In {
		if !iv.Point() {
			return nil, false
		}
		hashes = append(hashes, Hash(iv.Lo))
	}
	if index.PassesNaN(leaf) {
		hashes = append(hashes, nanHash)
	}
	slices.Sort(hashes)
	return slices.Compact(hashes), true
}

// Hit is a granule of a covered file that may hold a value.
type Hit struct {
	Slot    uint32 // in Run.Files
	Granule uint8  // 255: all its rows
}

// Look is a look-up of a leaf in a run.
type Look struct {
	run    *Run
	tests  []test   // of a value: the leaf, and those that hold of the same value
	hashes []uint64 // ascending, and with them their leaves
	leaves []int
	wanted bool // the value map
	hits   []uint32
	// All says that a value is in too many files to list: every covered file may hold it.
	All bool
}

// Look starts a look-up of a leaf that is on the column; nil if nothing can be said of it: it asks for what the run was not made for, or
// would read more than 128 leaves. Values that cannot be converted exactly to the encoding of the run are not asked for. Only rows count
// that pass the leaves of with as well, which are of the same conjunction and column; where that is a list, none.
func (x *Run) Look(leaf *predicate.Leaf, with ...*predicate.Leaf) *Look {
	some, every := Speaks(leaf.Column.Path, leaf)
	about := leaf
	if leaf.Op == predicate.Contains {
		about = index.EqualElement(leaf)
	}
	ask, ok := index.Asked(about, x.Encoding)
	if !ok || !some {
		return nil
	}
	l := &Look{run: x, tests: []test{{leaf: about, ask: ask}}}
	for _, w := range with {
		if ask, ok := index.Asked(w, x.Encoding); ok {
			l.tests = append(l.tests, test{leaf: w, ask: ask})
		}
	}
	if every {
		l.hashes, every = hashesOf(about, ask)
	}
	if every {
		l.leaves, every = x.leavesOf(l.hashes)
	}
	// fingerprints of fewer files say as much, and in which rows
	l.wanted = x.HasValues && (!every || len(x.Files) > filesCap)
	if !every && !l.wanted {
		return nil
	}
	l.All = !every
	return l
}

// leavesOf is the leaves with some hashes; false: they are too many to read.
func (x *Run) leavesOf(hashes []uint64) (out []int, ok bool) {
	for _, h := range hashes {
		i := x.shape.leafOf(h)
		if n := len(out); (n == 0 || out[n-1] != i) && x.PlaceOf(i).Len > 0 {
			if n == maxLookup {
				return nil, false
			}
			out = append(out, i)
		}
	}
	return out, true
}

// Need is the leaves to read, all in one wave, and the value map behind them; none: the look-up is done.
func (l *Look) Need() (out []Place) {
	for _, leaf := range l.leaves {
		out = append(out, l.run.PlaceOf(leaf))
	}
	if l.wanted {
		out = append(out, l.run.PlaceOf(l.run.valuesNo()))
	}
	return out
}

// Feed takes the bytes of Need. After an error nothing is known.
func (l *Look) Feed(data [][]byte) error {
	if n := len(l.Need()); len(data) != n {
		return fault.New(fault.Invalid, "file map", "fed %d leaves, needs %d", len(data), n)
	}
	err := l.find(data[:len(l.leaves)])
	if err == nil && l.wanted {
		err = l.narrow(data[len(l.leaves)])
	}
	if err != nil {
		l.hits = nil
	}
	return err
}

// find gathers what the leaves say.
func (l *Look) find(data [][]byte) error {
	for i, no := range l.leaves {
		x, err := l.run.open(no, data[i])
		if err != nil {
			return err
		}
		for _, h := range l.hashes {
			if l.run.shape.leafOf(h) != no {
				continue
			}
			if l.hits, err = x.find(l.hits, no, h); err != nil {
				return err
			}
		}
	}
	slices.Sort(l.hits)
	l.hits = slices.Compact(l.hits)
	if n := len(l.hits); n > 0 && l.hits[n-1]>>8 == tooMany {
		l.All, l.hits = true, nil
	}
	return nil
}

// narrow keeps the files that the value map leaves.
func (l *Look) narrow(raw []byte) error {
	if err := l.run.check(l.run.valuesNo(), raw); err != nil {
		return err
	}
	files, listed, err := l.run.holders(raw, l.tests)
	switch {
	case err != nil || !listed:
		return err
	case !l.All:
		l.hits = slices.DeleteFunc(l.hits, func(h uint32) bool { return files[h>>14]>>(h>>8&63)&1 == 0 })
		return nil
	}
	l.All = false
	for slot := range l.run.Files {
		if files[slot>>6]>>(slot&63)&1 == 1 {
			l.hits = append(l.hits, place(uint32(slot), wholeFile))
		}
	}
	return nil
}

// open verifies and opens leaf no.
func (x *Run) open(no int, raw []byte) (*leaf, error) {
	if err := x.check(no, raw); err != nil {
		return nil, err
	}
	return openLeaf(&x.shape, raw)
}

// check verifies leaf no.
func (x *Run) check(no int, raw []byte) error {
	p := x.PlaceOf(no)
	if int64(len(raw)) != p.Len {
		return fault.New(fault.Corrupt, "leaf of a file map", "%d bytes, expected %d", len(raw), p.Len)
	}
	return bytescan.CheckCRC("leaf of a file map", raw, p.CRC)
}

// Hits calls f for every hit, files ascending by slot and granules within a file.
func (l *Look) Hits(f func(Hit)) {
	for _, h := range l.hits {
		f(Hit{h >> 8, uint8(h)})
	}
}
