package manifest

import (
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

// counts reads a map of field id to count: an array of {key, value} records, as Iceberg writes maps with number keys.
func (d *decoder) counts(c *avro.Cursor, f field) {
	d.pairs(c, f, func(i int, col *facts.ColumnFacts, value *avro.Schema) {
		n := max(long(c, value, facts.Unknown), facts.Unknown)
		switch f.id {
		case 109:
			col.Values[i] = n
		case 110:
			col.Nulls[i] = n
		default:
			col.NaNs[i] = n
		}
	})
}

func (d *decoder) bounds(c *avro.Cursor, f field) {
	d.pairs(c, f, func(i int, col *facts.ColumnFacts, value *avro.Schema) {
		v := c.Branch(value)
		if v == nil {
			return
		}
		b := c.Bytes()
		if b == nil {
			b = []byte{}
		}
		if f.id == 125 {
			col.Lower[i] = b
		} else {
			col.Upper[i] = b
		}
	})
}

func (d *decoder) pairs(c *avro.Cursor, f field, visit func(int, *facts.ColumnFacts, *avro.Schema)) {
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
	row := len(d.m.Files)
	c.Blocks(func() {
		if c.Branch(v.Items) == nil {
			return
		}
		id := int(long(c, key, -1))
		col := d.column(id)
		if !d.grow(col, row+1) {
			c.Skip(value)
			return
		}
		visit(row, col, value)
	})
}

func (d *decoder) column(id int) *facts.ColumnFacts {
	if d.last != nil && id == d.lastID {
		return d.last
	}
	col := d.m.Columns[id]
	if col == nil {
		col = &facts.ColumnFacts{}
		d.m.Columns[id] = col
	}
	d.last, d.lastID = col, id
	return col
}

// grow makes col at least n cells long and reports whether the budget allowed it.
func (d *decoder) grow(col *facts.ColumnFacts, n int) bool {
	more := n - len(col.Values)
	if more > d.cells {
		return false
	}
	d.cells -= max(more, 0)
	for len(col.Values) < n {
		col.Lower, col.Upper = append(col.Lower, nil), append(col.Upper, nil)
		col.Values = append(col.Values, facts.Unknown)
		col.Nulls = append(col.Nulls, facts.Unknown)
		col.NaNs = append(col.NaNs, facts.Unknown)
	}
	return true
}

const (
	columnRowBytes = 72  // of a ColumnFacts
	fileBytes      = 256 // of a File with its strings' headers
)

// finish squares the columns and sums the memory. Bounds are views, so that they keep the decoded blocks alive.
func (d *decoder) finish(decoded int64) *Manifest {
	d.m.Bytes = decoded
	for id, col := range d.m.Columns {
		if !d.grow(col, len(d.m.Files)) {
			delete(d.m.Columns, id)
			continue
		}
		d.m.Bytes += int64(len(col.Values)) * columnRowBytes
	}
	for i := range d.m.Files {
		f := &d.m.Files[i]
		d.m.Bytes += fileBytes + int64(len(f.Path)+len(f.Referenced)) + int64(len(f.Partition))*32
	}
	return d.m
}
