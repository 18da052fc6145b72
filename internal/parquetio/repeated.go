package parquetio

import (
	"slices"

	"github.com/skomerdb/skomer/internal/fault"
)

// maxBatchLevels bounds the levels that one batch of a nested column may hold.
const maxBatchLevels = 1 << 27

var errNoRowStart = fault.New(fault.Corrupt, "", "column chunk starts inside a row")

// unpackRepeated opens a page of a repeated leaf with all its levels: only they tell where rows begin.
func (r *chunkReader) unpackRepeated() error {
	p := &r.page
	if p.left > maxPageValues {
		return fault.New(fault.Exhausted, "", "page of %d repeated values, the limit is %d", p.left, maxPageValues)
	}
	if err := r.unpack(); err != nil {
		return err
	}
	p.at = 0
	if r.leaf.def == 0 {
		p.def = append(p.def[:0], make([]uint8, p.left)...)
		return nil
	}
	return r.readLevels(&p.def, &p.defs, r.leaf.def)
}

// readLevels reads the levels of the whole page, growing as they come: a claim alone allocates little.
func (r *chunkReader) readLevels(dst *[]uint8, from *hybrid, top uint8) error {
	out := (*dst)[:0]
	for left := r.page.left; left > 0; {
		n := min(left, 1<<16)
		at := len(out)
		out = slices.Grow(out, n)[:at+n]
		if _, err := from.levels(out[at:], top); err != nil {
			return err
		}
		left -= n
	}
	*dst = out
	return nil
}

// begun is the rows that begin in the page; -1 where that is after the end of another.
func (p *page) begun() (rows int64) {
	for _, level := range p.rep {
		if level == 0 {
			rows++
		}
	}
	if rows > 0 && p.rep[0] != 0 {
		return -1
	}
	return rows
}

// walk consumes entries until n more rows have begun and the next one is about to, or the chunk ends. take gets each page's share.
func (r *chunkReader) walk(n int64, take func(from, to, values int) error) error {
	begun := int64(0)
	for {
		p := &r.page
		from, values := p.at, 0
		for ; p.at < len(p.def); p.at++ {
			if p.rep[p.at] == 0 {
				if begun == n {
					break
				}
				begun++
			} else if begun == 0 {
				return errNoRowStart
			}
			if p.def[p.at] == r.leaf.def {
				values++
			}
		}
		if err := take(from, p.at, values); err != nil {
			return err
		}
		p.left = len(p.def) - p.at
		if p.left > 0 {
			break
		}
		more, err := r.openAfter(begun)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	r.row += begun
	if begun < n {
		return errFewRows
	}
	return nil
}

// openAfter opens the next page while begun rows of the walk are not yet counted in r.row. A jump to a later run ends the row.
func (r *chunkReader) openAfter(begun int64) (bool, error) {
	r.page.def, r.page.rep, r.page.at, r.page.left = r.page.def[:0], r.page.rep[:0], 0, 0
	if len(r.segments) > 0 && len(r.segments[0].data) == 0 && len(r.segments) > 1 && begun > 0 {
		return false, nil
	}
	r.row += begun
	ok, err := r.open()
	r.row -= begun
	return ok, err
}

func (r *chunkReader) skipRepeated(row int64) error {
	if r.page.at == len(r.page.def) { // the next page may lie behind a gap
		if ok, err := r.openAfter(0); err != nil || !ok {
			return orElse(err, errFewRows)
		}
	}
	if r.row > row {
		return errIndexed
	}
	return r.walk(row-r.row, func(_, _, values int) error { return r.page.skipValues(values) })
}

func (p *page) skipValues(k int) error {
	if k == 0 {
		return nil
	}
	return p.values.skip(k)
}

func (r *chunkReader) readRepeated(n int) error {
	return r.walk(int64(n), func(from, to, values int) error {
		a := r.acc
		if len(a.def)+to-from > maxBatchLevels {
			return fault.New(fault.Exhausted, "", "one batch holds more than %d list elements", maxBatchLevels).WithFix("ask for fewer rows a batch")
		}
		a.def = append(a.def, r.page.def[from:to]...)
		a.rep = append(a.rep, r.page.rep[from:to]...)
		a.slots += to - from
		return a.take(&r.page.values, values, r.dict)
	})
}
