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

// nanHash is the hash of every NaN.
var nanHash = Hash(column.AppendKey(nil, column.DoubleValue(math.NaN())))

// Speaks reports whether a run on the column col can say something of the leaf: =, IN and Contains without a negation.
func Speaks(col column.Path, leaf *predicate.Leaf) bool {
	if leaf.Negated || !index.About([]column.Path{col}, leaf) {
		return false
	}
	switch leaf.Op {
	case predicate.Equal, predicate.In:
		return len(leaf.Values) > 0
	case predicate.Contains:
		return true
	default:
		return false
	}
}

// Ask is the hashes of the values that a leaf asks for, which Speaks says something of. ok is false where they cannot be converted
// exactly to the encoding of a run: then nothing is known.
func Ask(leaf *predicate.Leaf, e index.Encoding) (hashes []uint64, ok bool) {
	if leaf.Op == predicate.Contains {
		leaf = index.EqualElement(leaf)
	}
	ask, ok := index.Asked(leaf, e)
	if !ok {
		return nil, false
	}
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

// Look is a look-up of some hashes in a run.
type Look struct {
	run    *Run
	hashes []uint64 // ascending, and with them their leaves
	leaves []int
	hits   []uint32
	// All says that a value is in too many files to list: every covered file may hold it.
	All bool
}

// Look starts a look-up; nil if it would read more than 128 leaves.
func (x *Run) Look(hashes []uint64) *Look {
	l := &Look{run: x, hashes: hashes}
	for _, h := range hashes {
		i := x.shape.leafOf(h)
		if n := len(l.leaves); (n == 0 || l.leaves[n-1] != i) && x.PlaceOf(i).Len > 0 {
			if n == maxLookup {
				return nil
			}
			l.leaves = append(l.leaves, i)
		}
	}
	return l
}

// Need is the leaves to read, all in one wave; none: the look-up is done.
func (l *Look) Need() []Place {
	out := make([]Place, len(l.leaves))
	for i, leaf := range l.leaves {
		out[i] = l.run.PlaceOf(leaf)
	}
	return out
}

// Feed takes the bytes of Need. After an error nothing is known.
func (l *Look) Feed(data [][]byte) error {
	if len(data) != len(l.leaves) {
		return fault.New(fault.Invalid, "file map", "fed %d leaves, needs %d", len(data), len(l.leaves))
	}
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

// open verifies and opens leaf no.
func (x *Run) open(no int, raw []byte) (*leaf, error) {
	p := x.PlaceOf(no)
	if int64(len(raw)) != p.Len {
		return nil, fault.New(fault.Corrupt, "leaf of a file map", "%d bytes, expected %d", len(raw), p.Len)
	}
	if err := bytescan.CheckCRC("leaf of a file map", raw, p.CRC); err != nil {
		return nil, err
	}
	return openLeaf(&x.shape, raw)
}

// Hits calls f for every hit, files ascending by slot and granules within a file.
func (l *Look) Hits(f func(Hit)) {
	for _, h := range l.hits {
		f(Hit{h >> 8, uint8(h)})
	}
}
