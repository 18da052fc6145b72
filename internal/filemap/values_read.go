package filemap

import (
	"bytes"
	"math/bits"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// storedValues is the parts of a stored value map.
type storedValues struct {
	files int
	sets  []set // of the null files, and per value
}

// set is a stored set of files.
type set struct {
	head uint64
	body []byte
}

// openValues finds the parts of a value map whose checksum is right, and shows each key to visit, whose slice the next one ends.
func openValues(e index.Encoding, files int, raw []byte, visit func(i int, key []byte)) (*storedValues, error) {
	r := bytescan.NewReader("value map", raw)
	if len(raw) > maxValueMap {
		r.Fail("%d bytes, above the limit of %d", len(raw), maxValueMap)
	}
	n := r.Count(maxValues, 2)
	index.ReadKeys(r, e, n, maxValueBytes, visit)
	x := &storedValues{files: files}
	if r.Err() != nil {
		return nil, r.Err()
	}
	x.sets = make([]set, n+1)
	for i := range x.sets {
		x.sets[i].head = r.Uvarint()
	}
	for i := range x.sets {
		s := &x.sets[i]
		switch s.head {
		case setMany:
		case setBits:
			s.body = r.Bytes((files + 7) / 8)
		default:
			s.body = r.Bytes(int(min(s.head-setList, maxValueMap)))
		}
	}
	return x, r.Done()
}

// count is how many files the set lists.
func (s *set) count() (n int) {
	for _, b := range s.body {
		switch {
		case s.head == setBits:
			n += bits.OnesCount8(b)
		case b < 0x80: // the last byte of a varint
			n++
		}
	}
	return n
}

// each calls f for every file of set i, ascending; false: they are too many to list.
func (x *storedValues) each(i int, f func(slot uint32)) (listed bool, err error) {
	s := &x.sets[i]
	if s.head == setMany {
		return false, nil
	}
	if s.head == setBits {
		for at, b := range s.body {
			for ; b != 0; b &= b - 1 {
				slot := at<<3 | bits.TrailingZeros8(b)
				if slot >= x.files {
					return true, index.Broken("value map", "slot %d of %d files", slot, x.files)
				}
				f(uint32(slot))
			}
		}
		return true, nil
	}
	r := bytescan.NewReader("value map", s.body)
	for next := uint64(0); r.Left() > 0; {
		d := r.Uvarint()
		if r.Err() == nil && d >= uint64(x.files)-next {
			r.Fail("slot %d behind %d of %d files", d, next, x.files)
		}
		if r.Err() != nil {
			return true, r.Err()
		}
		f(uint32(next + d))
		next += d + 1
	}
	return true, nil
}

// whole reads all of a map, for merges.
func (x *Run) whole(raw []byte) (*valueMap, error) {
	m := &valueMap{gone: x.gone}
	sets, err := openValues(x.Encoding, len(x.Files), raw, func(_ int, key []byte) { m.keys = append(m.keys, string(key)) })
	if err != nil {
		return nil, err
	}
	pairs := 0
	m.held = make([]slots, len(m.keys))
	for i := range sets.sets {
		to, n := &m.null, sets.sets[i].count()
		if i > 0 {
			to = &m.held[i-1]
		}
		if pairs += n; n > valueFiles || pairs > maxPairs {
			return nil, index.Broken("value map", "%d files of a value, %d pairs of both", n, pairs)
		}
		if n > 0 {
			to.list = make([]uint32, 0, n)
		}
		listed, err := sets.each(i, to.add)
		if err != nil {
			return nil, err
		}
		to.many = !listed
	}
	return m, nil
}

// test is a leaf about one value, and what it asks of keys.
type test struct {
	leaf  *predicate.Leaf
	ask   index.Ask
	tally index.Tally // every value is a row, and null one more
}

// holders is the files that hold a value which passes all tests, as a bit each. listed is false where such a value is in too many.
func (x *Run) holders(raw []byte, tests []test) (files []uint64, listed bool, err error) {
	n := uint32(0)
	sets, err := openValues(x.Encoding, len(x.Files), raw, func(_ int, key []byte) {
		g := index.Granule{Start: n, Rows: 1}
		if x.Encoding.Kind.Floating() && bytes.Equal(key, nanKey) {
			g.NaNs = 1
		}
		for i := range tests {
			t := &tests[i]
			holds := g.NaNs == 0 && t.ask.Holds(t.leaf, key)
			t.tally.Add(g, holds, holds)
		}
		n++
	})
	if err != nil {
		return nil, false, err
	}
	passes := rowset.All(n + 1)
	for i := range tests {
		t := &tests[i]
		t.tally.Add(index.Granule{Start: n, Rows: 1, Nulls: 1}, false, false)
		passes = rowset.And(passes, index.Sign(t.leaf, t.tally.Known(n+1)).May)
	}
	files = make([]uint64, (len(x.Files)+63)/64)
	for i := range sets.sets {
		row := n // of null
		if i > 0 {
			row = uint32(i - 1)
		}
		if !passes.Contains(row) {
			continue
		}
		listed, err := sets.each(i, func(slot uint32) { files[slot>>6] |= 1 << (slot & 63) })
		if err != nil || !listed {
			return nil, false, err
		}
	}
	return files, true, nil
}
