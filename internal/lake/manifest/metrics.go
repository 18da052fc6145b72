package manifest

import (
	"bytes"
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/avro"
)

// Metrics are dense: one cell a file and column. A manifest may fill so many cells for its size, so that a hostile one of
// few bytes cannot ask for files times columns; metrics past that are dropped, which makes them unknown.
const (
	minCells     = 1 << 16
	maxCells     = 16 << 20
	cellsPerByte = 16
)

// columnBuilder is the metrics of one field for the entries so far.
type columnBuilder struct {
	values, nulls, nans []int64
	lower, upper        boundsBuilder
}

// boundsBuilder is bounds by where they lie in data; a length of -1 says that none is stated.
type boundsBuilder struct {
	data []byte
	at   []span
}

type span struct {
	off uint32
	len int32
}

func (b *boundsBuilder) put(i int, v []byte) {
	b.at[i] = span{uint32(len(b.data)), int32(len(v))}
	b.data = append(b.data, v...)
}

// get is bound i, nil if none is stated.
func (b *boundsBuilder) get(i int) []byte {
	s := b.at[i]
	if s.len < 0 {
		return nil
	}
	return b.data[s.off : s.off+uint32(s.len)]
}

// counts reads a map of field id to count: an array of {key, value} records, as Iceberg writes maps with number keys.
func (d *decoder) counts(c *avro.Cursor, f field) {
	d.pairs(c, f, func(i int, col *columnBuilder, value *avro.Schema) {
		n := max(long(c, value, facts.Unknown), facts.Unknown)
		switch f.id {
		case 109:
			col.values[i] = n
		case 110:
			col.nulls[i] = n
		default:
			col.nans[i] = n
		}
	})
}

func (d *decoder) bounds(c *avro.Cursor, f field) {
	d.pairs(c, f, func(i int, col *columnBuilder, value *avro.Schema) {
		v := c.Branch(value)
		if v == nil {
			return
		}
		b := c.Bytes()
		if f.id == 125 {
			col.lower.put(i, b)
		} else {
			col.upper.put(i, b)
		}
	})
}

func (d *decoder) pairs(c *avro.Cursor, f field, visit func(int, *columnBuilder, *avro.Schema)) {
	v := c.Branch(f.schema)
	if v == nil {
		return
	}
	if v.Kind != avro.Array || v.Items.Value().Kind != avro.Record || len(v.Items.Value().Fields) != 2 {
		c.Skip(v)
		return
	}
	pair := v.Items.Value().Fields
	key, value := pair[0].Schema, pair[1].Schema
	if bounds := f.id == 125 || f.id == 128; bounds && value.Value().Kind != avro.Bytes {
		c.Skip(v)
		return
	}
	c.Blocks(func() {
		if c.Branch(v.Items) == nil {
			return
		}
		col := d.column(int(long(c, key, -1)))
		if col == nil || !d.grow(col, d.rows.n+1) {
			c.Skip(value)
			return
		}
		visit(d.rows.n, col, value)
	})
}

// column is where the metrics of a field go; nil if nobody wants them.
func (d *decoder) column(id int) *columnBuilder {
	if d.last != nil && id == d.lastID {
		return d.last
	}
	col, known := d.columns[id]
	if !known {
		if d.want == nil || d.want(id) {
			col = &columnBuilder{}
		}
		if len(d.columns) < maxCells {
			d.columns[id] = col
		}
	}
	d.last, d.lastID = col, id
	return col
}

// grow makes col at least n cells long and reports whether the budget allowed it.
func (d *decoder) grow(col *columnBuilder, n int) bool {
	more := n - len(col.values)
	if more > d.cells {
		return false
	}
	d.cells -= max(more, 0)
	for len(col.values) < n {
		col.values = append(col.values, facts.Unknown)
		col.nulls = append(col.nulls, facts.Unknown)
		col.nans = append(col.nans, facts.Unknown)
		col.lower.at, col.upper.at = append(col.lower.at, span{len: -1}), append(col.upper.at, span{len: -1})
	}
	return true
}

// cut forgets all cells from n on.
func (col *columnBuilder) cut(n int) {
	if len(col.values) > n {
		col.values, col.nulls, col.nans = col.values[:n], col.nulls[:n], col.nans[:n]
		col.lower.at, col.upper.at = col.lower.at[:n], col.upper.at[:n]
	}
}

// metrics packs the cells of n files.
func (col *columnBuilder) metrics(n int) *facts.Metrics {
	m := &facts.Metrics{
		Whole: true, Values: facts.PackInts(col.values), Nulls: facts.PackInts(col.nulls), NaNs: facts.PackInts(col.nans),
	}
	m.Keys.Form = col.form()
	for _, x := range col.nans {
		m.Keys.NaNs = m.Keys.NaNs || x > 0
	}
	w := m.Keys.Form.Width()
	if w == 0 {
		return m
	}
	m.Keys.Lower, m.Keys.Upper = make([]byte, n*w), make([]byte, n*w)
	m.Lower, m.Upper = col.lower.pack(m.Keys.Form), col.upper.pack(m.Keys.Form)
	sure := newBits(n)
	m.Keys.Text = true
	for i := range n {
		lower, upper := col.lower.get(i), col.upper.get(i)
		copy(m.Keys.Lower[i*w:(i+1)*w], lower)
		copy(m.Keys.Upper[i*w:(i+1)*w], upper)
		plain := plainText(lower, upper)
		m.Keys.Text = m.Keys.Text && plain
		if lower != nil && upper != nil && (plain || m.Keys.Form != facts.Prefix8) {
			sure[i/64] |= 1 << (i % 64)
		}
	}
	m.Keys.Sure = orAll(sure, n)
	return m
}

// form is how the bounds are laid out.
func (col *columnBuilder) form() facts.Form {
	width := int32(-1)
	for _, b := range []*boundsBuilder{&col.lower, &col.upper} {
		for _, s := range b.at {
			switch {
			case s.len < 0 || s.len == width:
			case width < 0 && (s.len == 4 || s.len == 8):
				width = s.len
			default:
				return facts.Prefix8
			}
		}
	}
	switch width {
	case 4:
		return facts.Raw4
	case 8:
		return facts.Raw8
	default:
		return facts.NoKeys
	}
}

// pack is the bounds as stated, without those that keys hold.
func (b *boundsBuilder) pack(f facts.Form) facts.Bounds {
	stated := newBits(len(b.at))
	for i, s := range b.at {
		if s.len >= 0 {
			stated[i/64] |= 1 << (i % 64)
		}
	}
	out := facts.Bounds{Stated: orAll(stated, len(b.at))}
	if f != facts.Prefix8 {
		return out
	}
	out.Off, out.Data = make([]uint32, 1, len(b.at)+1), make([]byte, 0, len(b.data))
	for i := range b.at {
		out.Data = append(out.Data, b.get(i)...)
		out.Off = append(out.Off, uint32(len(out.Data)))
	}
	return out
}

// replacement is U+FFFD, which stands where a writer cut a character.
const replacement = "\uFFFD"

// plainText reports whether bounds of text are what they seem: not crossed, not empty above, not cut inside a character.
func plainText(lower, upper []byte) bool {
	return len(upper) > 0 && lower != nil && utf8.Valid(upper) && bytes.Compare(lower, upper) <= 0 &&
		!bytes.HasSuffix(lower, []byte(replacement)) && !bytes.HasSuffix(upper, []byte(replacement))
}

func newBits(n int) facts.Bits { return make(facts.Bits, (n+63)/64) }

// orAll is the set, or nil if it holds all n rows.
func orAll(b facts.Bits, n int) facts.Bits {
	for i := range n {
		if !b.Has(i) {
			return b
		}
	}
	return nil
}
