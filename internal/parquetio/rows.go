package parquetio

import (
	"slices"

	"github.com/skomerdb/skomer/internal/fault"
)

// flatStep is how many definition levels are unpacked at a time.
const flatStep = 4096

var errFewRows = fault.New(fault.Corrupt, "", "column chunk holds fewer rows than its row group")

// advance passes over rows up to row, within the row group.
func (r *chunkReader) advance(row int64) error {
	if row == r.row {
		return nil
	}
	r.dropSegments(row)
	if r.leaf.rep > 0 {
		return r.skipRepeated(row)
	}
	for r.row < row {
		if r.page.left == 0 {
			if ok, err := r.open(); err != nil || !ok {
				return orElse(err, errFewRows)
			}
			continue
		}
		n := int(min(row-r.row, int64(r.page.left)))
		if n == r.page.left && r.page.pending != nil {
			r.page.pending = nil // never unpacked
		} else if err := r.skipFlat(n); err != nil {
			return err
		}
		r.page.left -= n
		r.row += int64(n)
	}
	if r.row > row {
		return errIndexed
	}
	return nil
}

// dropSegments jumps over fetched runs that end at or before row.
func (r *chunkReader) dropSegments(row int64) {
	for len(r.segments) > 1 {
		next := &r.segments[1]
		if next.whole || len(next.starts) == 0 || next.row > row || r.dictionaryAhead() {
			return
		}
		r.segments, r.pageAt = r.segments[1:], 0
		r.page.left, r.page.pending, r.page.at, r.page.def = 0, nil, 0, r.page.def[:0]
		r.row = next.row
	}
}

// dictionaryAhead reports whether the first segment is an unread dictionary.
func (r *chunkReader) dictionaryAhead() bool {
	return len(r.segments[0].starts) == 0 && !r.segments[0].whole && len(r.segments[0].data) > 0
}

func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

func (r *chunkReader) skipFlat(n int) error {
	if err := r.unpack(); err != nil {
		return err
	}
	k := n
	if r.leaf.def > 0 {
		k = 0
		for left := n; left > 0; {
			step := min(left, flatStep)
			tops, err := r.page.defs.levels(r.scratch(step), r.leaf.def)
			if err != nil {
				return err
			}
			k += tops
			left -= step
		}
	}
	return r.page.values.skip(k)
}

func (r *chunkReader) scratch(n int) []uint8 {
	r.defs = slices.Grow(r.defs[:0], n)[:n]
	return r.defs
}

// read appends the next n rows to the accumulator.
func (r *chunkReader) read(n int) error {
	if r.leaf.rep > 0 {
		return r.readRepeated(n)
	}
	for n > 0 {
		if r.page.left == 0 {
			if ok, err := r.open(); err != nil || !ok {
				return orElse(err, errFewRows)
			}
			continue
		}
		if err := r.unpack(); err != nil {
			return err
		}
		k := min(n, r.page.left)
		if r.leaf.def > 0 {
			k = min(k, flatStep)
		}
		if err := r.readFlat(k); err != nil {
			return err
		}
		r.page.left -= k
		r.row += int64(k)
		n -= k
	}
	return nil
}

func (r *chunkReader) readFlat(n int) error {
	if r.leaf.def == 0 {
		if r.levels {
			r.acc.def = append(r.acc.def, make([]uint8, n)...)
			r.acc.slots += n
			return r.acc.take(&r.page.values, n, r.dict)
		}
		r.acc.room(n)
		setRange(r.acc.valid, r.acc.slots, r.acc.slots+n)
		return r.acc.rows(&r.page.values, n, n, r.dict)
	}
	if r.leaf.def == 1 && !r.levels {
		r.acc.room(n)
		valid, err := r.page.defs.bits(r.acc.valid, r.acc.slots, n)
		if err != nil {
			return err
		}
		return r.acc.rows(&r.page.values, n, valid, r.dict)
	}
	def := r.scratch(n)
	tops, err := r.page.defs.levels(def, r.leaf.def)
	if err != nil {
		return err
	}
	if r.levels {
		r.acc.def = append(r.acc.def, def...)
		r.acc.slots += n
		return r.acc.take(&r.page.values, tops, r.dict)
	}
	r.acc.mark(def, r.leaf.def)
	return r.acc.rows(&r.page.values, n, tops, r.dict)
}
