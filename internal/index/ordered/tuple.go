package ordered

import (
	"bytes"
	"math"
	"slices"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
)

// A tuple is the key of a row in an index on several columns: the columns' parts one after the other, so that the order of tuples is
// that of the first column, then of the second, and so on (the encoding of FoundationDB's tuple layer, whose strings end the same
// way).
//
//	part    u8 0                     null
//	        u8 1, key                a value whose keys have one length
//	        u8 1, key, u8 0          a value whose keys vary in length; a zero byte in it is followed by ff
//	        u8 2                     NaN
//
// Behind a part comes another, which starts with 0, 1 or 2, or nothing: ff lies above every tuple that starts with a given part.
const (
	partNull  = 0
	partValue = 1
	partNaN   = 2
	partEnd   = 0xff
)

// maxColumns bounds the columns of one index.
const maxColumns = 8

// tupleEncoding is the encoding of tuples as keys.
var tupleEncoding = index.Encoding{Kind: column.Binary}

// part is a column of tuples.
type part struct {
	id  int // field id
	enc index.Encoding
}

// partsOf is the columns as parts, or why they cannot be indexed.
func partsOf(cols []column.Path) ([]part, error) {
	if len(cols) > maxColumns {
		return nil, fault.New(fault.Invalid, name, "takes at most %d columns, got %d", maxColumns, len(cols))
	}
	out := make([]part, max(len(cols), 1))
	for i := range out {
		e, err := index.OneColumn(name, cols[min(i, len(cols)):min(i+1, len(cols))])
		if err != nil {
			return nil, err
		}
		id := cols[i].Leaf().ID
		if len(cols) > 1 && cols[i].Derived() {
			return nil, fault.New(fault.Unsupported, cols[i].Name(), "is an expression; an index on several columns takes plain ones").
				WithFix("index the expression alone")
		}
		if slices.ContainsFunc(out[:i], func(p part) bool { return p.id == id }) {
			return nil, fault.New(fault.Invalid, cols[i].Name(), "is given twice")
		}
		out[i] = part{id: id, enc: e}
	}
	return out, nil
}

// appendKey appends a value's key as a part has it, without an end.
func appendKey(dst []byte, e index.Encoding, key []byte) []byte {
	if !variable(e) {
		return append(dst, key...)
	}
	for {
		i := bytes.IndexByte(key, 0)
		if i < 0 {
			return append(dst, key...)
		}
		dst = append(append(dst, key[:i+1]...), partEnd)
		key = key[i+1:]
	}
}

// appendWhole is appendKey with an end.
func appendWhole(dst []byte, e index.Encoding, key []byte) []byte {
	dst = appendKey(dst, e, key)
	if variable(e) {
		dst = append(dst, 0)
	}
	return dst
}

// tuples makes tuples of vectors.
type tuples struct {
	keys []*index.Keys
	key  []byte
}

func newTuples(parts []part) *tuples {
	t := &tuples{}
	for _, p := range parts {
		t.keys = append(t.keys, index.NewKeys(p.enc))
	}
	return t
}

func (t *tuples) load(cols []*column.Vector) error {
	for i, v := range cols {
		if err := t.keys[i].Load(v); err != nil {
			return err
		}
		if v.Len != cols[0].Len {
			return fault.New(fault.Invalid, "index build", "fed columns of %d and %d rows", cols[0].Len, v.Len)
		}
	}
	return nil
}

// of is the tuple of row i, a view that the next call ends.
func (t *tuples) of(i int) []byte {
	t.key = t.key[:0]
	for _, k := range t.keys {
		switch {
		case k.Null(i):
			t.key = append(t.key, partNull)
		case k.NaN(i):
			t.key = append(t.key, partNaN)
		case k.Encoding.Narrow():
			t.key = k.Encoding.AppendNarrow(append(t.key, partValue), k.Narrow[i])
		default:
			t.key = appendWhole(append(t.key, partValue), k.Encoding, k.Wide(i))
		}
	}
	return t.key
}

// startTuples writes the start of a root of tuples.
func startTuples(parts []part) *bytescan.Writer {
	w := &bytescan.Writer{}
	w.U8(versionTuples)
	w.Uvarint(uint64(len(parts)))
	for _, p := range parts {
		w.Uvarint(uint64(p.id))
		p.enc.Append(w)
	}
	return w
}

// readParts reads what startTuples wrote.
func readParts(r *bytescan.Reader) []part {
	r.U8()
	n := r.Count(maxColumns, 4)
	if r.Err() == nil && n < 2 {
		r.Fail("tuples of %d columns", n)
	}
	out := make([]part, 0, n)
	for range n {
		id := r.Uvarint()
		if id > math.MaxInt32 {
			r.Fail("field id %d", id)
		}
		out = append(out, part{int(id), index.ReadEncoding(r)})
	}
	return out
}

// keyEncoding is the encoding of the keys of an index on these columns.
func keyEncoding(parts []part) index.Encoding {
	if len(parts) > 1 {
		return tupleEncoding
	}
	return parts[0].enc
}

// widen reports whether tuples of the parts from are tuples of the parts to, whose columns may have been promoted since. Parts of one
// column are no tuples.
func widen(from, to []part) bool {
	if len(to) == 1 {
		return len(from) == 0
	}
	return slices.EqualFunc(from, to, func(a, b part) bool { return a.id == b.id && a.enc.WidensTo(b.enc) })
}
