package manifest

import (
	"sync"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/avro"
)

// Metrics are dense: one cell a file and column. A manifest may fill so many cells for its size, so that a hostile one of
// few bytes cannot ask for files times columns; metrics past that are dropped, which makes them unknown.
const (
	minCells     = 1 << 16
	maxCells     = 16 << 20
	cellsPerByte = 16
	maxColumns   = 1 << 16
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
	switch {
	case s.len < 0:
		return nil
	case s.len == 0:
		return []byte{}
	}
	return b.data[s.off : s.off+uint32(s.len) : s.off+uint32(s.len)]
}

// counts reads a map of field id to count: an array of {key, value} records, as Iceberg writes maps with number keys.
func (d *decoder) counts(c *avro.Cursor, f field) {
	put := func(col *columnBuilder, n int64) {
		i := d.rows.n
		switch f.id {
		case 109:
			col.values[i] = max(n, facts.Unknown)
		case 110:
			col.nulls[i] = max(n, facts.Unknown)
		default:
			col.nans[i] = max(n, facts.Unknown)
		}
	}
	plain := func() {
		c.LongPairs(func(id, n int64) {
			if col := d.cell(int(id)); col != nil {
				put(col, n)
			}
		})
	}
	d.pairs(c, f, avro.Long, plain, func(col *columnBuilder, value *avro.Schema) { put(col, long(c, value, facts.Unknown)) })
}

func (d *decoder) bounds(c *avro.Cursor, f field) {
	put := func(col *columnBuilder, b []byte) {
		if f.id == 125 {
			col.lower.put(d.rows.n, b)
		} else {
			col.upper.put(d.rows.n, b)
		}
	}
	plain := func() {
		c.BytesPairs(func(id int64, b []byte) {
			if col := d.cell(int(id)); col != nil {
				put(col, b)
			}
		})
	}
	d.pairs(c, f, avro.Bytes, plain, func(col *columnBuilder, value *avro.Schema) {
		if c.Branch(value) != nil {
			put(col, c.Bytes())
		}
	})
}

// pairs reads a map of field ids: all of it by plain where its schema is the specification's, with values of this kind and no unions;
// else visit is called at the value of a column that is wanted.
func (d *decoder) pairs(c *avro.Cursor, f field, kind avro.Kind, plain func(), visit func(*columnBuilder, *avro.Schema)) {
	v := c.Branch(f.schema)
	if v == nil {
		return
	}
	key, value := pairOf(v)
	if key == nil || kind == avro.Bytes && value.Value().Kind != avro.Bytes {
		c.Skip(v)
		return
	}
	if v.Items.Kind == avro.Record && key.Kind == avro.Int && value.Kind == kind {
		plain()
		return
	}
	c.Blocks(func() {
		if c.Branch(v.Items) == nil {
			return
		}
		if col := d.cell(int(long(c, key, -1))); col != nil {
			visit(col, value)
		} else {
			c.Skip(value)
		}
	})
}

// pairOf is the schemas of a map's keys and values; nil where v is no array of records with a key and a value behind it.
func pairOf(v *avro.Schema) (key, value *avro.Schema) {
	if v.Kind != avro.Array || v.Items.Value().Kind != avro.Record {
		return nil, nil
	}
	pair := v.Items.Value().Fields
	if len(pair) != 2 || pair[0].Name == "value" {
		return nil, nil
	}
	return pair[0].Schema, pair[1].Schema
}

// sizes sums up the map of field id to bytes.
func (d *decoder) sizes(c *avro.Cursor, f field) {
	v := c.Branch(f.schema)
	if v == nil {
		return
	}
	if key, value := pairOf(v); key == nil || v.Items.Kind != avro.Record || key.Kind != avro.Int || value.Kind != avro.Long {
		c.Skip(v)
		return
	}
	c.LongPairs(func(id, n int64) {
		if id >= 0 && id < direct && n > 0 && n < maxStored-d.stored[id] {
			d.stored[id] += n
		}
	})
}

// maxStored bounds the sum of what manifests state.
const maxStored = 1 << 62

// summed is the fields of which bytes are stated.
func (d *decoder) summed() map[int]int64 {
	var out map[int]int64
	for id, n := range d.stored {
		if n > 0 {
			if out == nil {
				out = map[int]int64{}
			}
			out[id] = n
		}
	}
	return out
}

// direct is the number of field ids whose columns are found without a map.
const direct = 1024

// column is where the metrics of a field go; nil if nobody wants them.
func (d *decoder) column(id int) *columnBuilder {
	if id < 0 || id >= direct {
		return d.columnOf(id)
	}
	if col := d.near[id]; col != nil || d.unwanted[id] {
		return col
	}
	d.near[id] = d.columnOf(id)
	d.unwanted[id] = d.near[id] == nil
	return d.near[id]
}

func (d *decoder) columnOf(id int) *columnBuilder {
	if d.want != nil && !d.want(id) {
		return nil
	}
	col := d.columns[id]
	if col == nil && len(d.columns) < maxColumns {
		col = columnBuilders.Get().(*columnBuilder)
		d.columns[id] = col
	}
	return col
}

// cell is the column of a field with a cell for the entry that is read; nil if nobody wants it or the budget does not allow it.
func (d *decoder) cell(id int) *columnBuilder {
	col := d.column(id)
	if col == nil || len(col.values) <= d.rows.n && !d.grow(col, d.rows.n+1) {
		return nil
	}
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

// metrics packs the cells.
func (col *columnBuilder) metrics() *facts.Metrics {
	return facts.PackMetrics(col.values, col.nulls, col.nans, col.lower.get, col.upper.get)
}

// The memory of builders is used again, that of large ones excepted.
var (
	columnBuilders = sync.Pool{New: func() any { return &columnBuilder{} }}
	integers       = sync.Pool{New: func() any { return &[columns][]int64{} }}
)

const maxKept = 1 << 16 // entries of a builder that is kept

// free gives the memory of a column away.
func (col *columnBuilder) free() {
	if cap(col.values) > maxKept || cap(col.lower.data)+cap(col.upper.data) > 32*maxKept {
		return
	}
	col.cut(0)
	col.lower.data, col.upper.data = col.lower.data[:0], col.upper.data[:0]
	columnBuilders.Put(col)
}
