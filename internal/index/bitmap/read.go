package bitmap

import (
	"bytes"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
)

// Open parses a root of at most 2 MiB, which it keeps, into at most 2 MiB beside it.
func (Kind) Open(root []byte, rows uint32) (index.Reader, error) {
	x, err := open(root, rows, nil)
	if err != nil {
		return nil, err
	}
	return x, nil
}

// open parses a root and leaves a page that lives in it to d, unless that is nil.
func open(root []byte, rows uint32, d *dictionary) (*reader, error) {
	r, enc, err := index.OpenRoot(name, root, version, maxRoot)
	if err != nil {
		return nil, err
	}
	x := &reader{rows: rows, enc: enc, ofList: index.ReadShape(r)}
	if n := r.Uvarint(); r.Err() == nil && n != uint64(rows) {
		r.Fail("covers %d rows, asked to cover %d", n, rows)
	}
	x.bodySize = index.ReadSize(r)
	x.nulls = index.ReadUnordered(r, rows, x.bodySize)
	if x.enc.Kind.Floating() && !x.ofList {
		x.nans = index.ReadUnordered(r, rows, x.bodySize)
	}
	if without := uint64(x.nulls.Count) + uint64(x.nans.Count); r.Err() == nil && without > uint64(rows) {
		r.Fail("%d null and NaN rows of %d", without, rows)
	} else if x.ofList || without < uint64(rows) {
		x.readDictionary(r, root, d)
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	return x, nil
}

type reader struct {
	rows        uint32
	enc         index.Encoding
	bodySize    int64
	nulls, nans index.Unordered
	ofList      bool // nulls are then null lists and lists with a null element
	tooMany     bool // values that were not listed
	values      int
	inline      []byte // form 0: the page
	pages       []page // form 1
}

// Silent is the whole artifact where there were too many values to list.
func (x *reader) Silent() (silent, parts int) {
	if x.tooMany {
		return 1, 1
	}
	return 0, 1
}

// page describes a page of the body.
type page struct {
	values int
	first  []byte
	unit   index.Unit
}

// rowSet is the rows of a value; where every row holds it there is no unit.
type rowSet struct {
	count uint32
	unit  index.Unit
}

func (x *reader) readDictionary(r *bytescan.Reader, root []byte, d *dictionary) {
	listed := r.Count(maxCap+1, 0)
	if listed == 1 && !x.ofList {
		r.Fail("no value in rows that have one")
	}
	if x.tooMany = listed == 0; x.tooMany || listed == 1 {
		return
	}
	x.values = listed - 1
	switch form := r.U8(); form {
	case formInline:
		if len(root) > inlineRoot {
			r.Fail("%d bytes with the dictionary inside, above the limit of %d", len(root), inlineRoot)
		}
		from, sum := r.Offset(), uint64(x.nulls.Count)+uint64(x.nans.Count)
		if d != nil {
			sum += d.read(x, r, x.values)
		} else {
			x.readPage(r, x.values, func([]byte) bool { return true }, func(s rowSet, _ bool) { sum += uint64(s.count) })
		}
		if r.Err() == nil {
			x.inline = root[from:r.Offset()]
			if sum != uint64(x.rows) && !x.ofList {
				r.Fail("row sets hold %d rows of %d", sum, x.rows)
			}
		}
	case formPages:
		x.readPages(r)
	default:
		r.Fail("dictionary form %d is none", form)
	}
}

func (x *reader) readPages(r *bytescan.Reader) {
	n, left := r.Count(x.values, 8), x.values
	x.pages = make([]page, 0, n)
	for i := range n {
		p := page{values: r.Count(left, 0), first: r.Blob(maxKeys), unit: index.ReadUnit(r, x.bodySize, maxPage)}
		if r.Err() == nil && (p.values == 0 || i > 0 && bytes.Compare(p.first, x.pages[i-1].first) <= 0) {
			r.Fail("page %d of %d values does not ascend", i, p.values)
		}
		if r.Err() != nil {
			return
		}
		left -= p.values
		x.pages = append(x.pages, p)
	}
	if left != 0 {
		r.Fail("%d values lie in no page", left)
	}
}

// readPage reads a page of n values: test judges each key, take gets each value's rows with the judgement.
func (x *reader) readPage(r *bytescan.Reader, n int, test func(key []byte) bool, take func(rows rowSet, passed bool)) {
	passed := make([]bool, n)
	index.ReadKeys(r, x.enc, n, maxKeys, func(i int, key []byte) { passed[i] = test(key) })
	off := r.Uvarint()
	for i := range n {
		s, count := rowSet{}, r.Uvarint()
		if r.Err() == nil && (count == 0 || count > uint64(x.rows)) {
			r.Fail("value %d has %d rows of %d", i, count, x.rows)
		}
		s.count = uint32(count)
		if count < uint64(x.rows) {
			length := r.Uvarint()
			s.unit = index.Unit{Span: index.Span{Off: int64(off), Len: int64(length)}, CRC: r.U32()}
			if r.Err() == nil && (length == 0 || length > maxRowSet || off > uint64(x.bodySize) || length > uint64(x.bodySize)-off) {
				r.Fail("row set of %d bytes at %d does not fit in a body of %d bytes", length, off, x.bodySize)
			}
			off += length
		}
		if r.Err() != nil {
			return
		}
		take(s, passed[i])
	}
}
