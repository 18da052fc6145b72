package manifest

import (
	"slices"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/avro"
)

// The integers of an entry, in the order of Manifest.ints.
const (
	added = iota
	contentOf
	formatOf
	encrypted
	snapshotID
	sequence
	records
	size
	firstRow
	tuple
	equality
	offset
	length
	columns
)

// row is one entry while it is read. Bytes are views.
type row struct {
	ints             [columns]int64
	path, referenced []byte
}

var emptyRow = row{ints: [columns]int64{
	snapshotID: facts.Unknown, sequence: facts.Unknown, records: facts.Unknown, size: facts.Unknown, firstRow: facts.Unknown,
	offset: facts.Unknown, length: facts.Unknown,
}}

// builder collects entries in columns.
type builder struct {
	n                int
	ints             *[columns][]int64
	path, referenced facts.StringsBuilder
	tuples           distinct[[]Raw]
	equality         distinct[[]int]
	lastFormat       string
	lastFormatID     int64
}

func (b *builder) add(r *row) {
	for i := range b.ints {
		b.ints[i] = append(b.ints[i], r.ints[i])
	}
	b.path.Add(r.path)
	b.referenced.Add(r.referenced)
	b.n++
}

// format is the number of a file format; most entries have that of the one before.
func (b *builder) format(c *avro.Cursor, name []byte) int64 {
	if string(name) != b.lastFormat {
		b.lastFormat = string(name)
		b.lastFormatID = int64(format(c, b.lastFormat))
	}
	return b.lastFormatID
}

// distinct numbers values by the bytes that they were read from.
type distinct[T any] struct {
	values  []T
	keys    []string // of values
	numbers map[string]int64
	last    int64 // number asked for last; valid if there are values
	nothing int64 // number of none, plus 1
}

// none is the number of the zero value.
func (d *distinct[T]) none() int64 {
	if d.nothing == 0 {
		var zero T
		d.values, d.keys = append(d.values, zero), append(d.keys, "")
		d.nothing = int64(len(d.values))
	}
	return d.nothing - 1
}

func (d *distinct[T]) number(raw []byte, decode func() T) int64 {
	if d.numbers == nil {
		d.numbers = map[string]int64{}
	} else if string(raw) == d.keys[d.last] && d.last+1 != d.nothing {
		return d.last
	}
	no, known := d.numbers[string(raw)]
	if !known {
		no = int64(len(d.values))
		key := string(raw)
		d.values, d.keys = append(d.values, decode()), append(d.keys, key)
		d.numbers[key] = no
	}
	d.last = no
	return no
}

// finish packs the columns.
func (d *decoder) finish() *Manifest {
	m := d.m
	b := &d.rows
	m.Stored = d.summed()
	m.N, m.Path, m.Referenced = b.n, b.path.Strings(), b.referenced.Strings()
	if m.Tuples = b.tuples.values; len(m.Tuples) == 0 {
		m.Tuples = [][]Raw{nil}
	}
	if m.EqualityIDs = b.equality.values; len(m.EqualityIDs) == 0 {
		m.EqualityIDs = [][]int{nil}
	}
	for i, x := range m.Ints() {
		*x = facts.PackInts(b.ints[i])
	}
	m.HasDeletes = slices.ContainsFunc(b.ints[contentOf], func(c int64) bool { return Content(c) != Data })
	if m.Parts = Tuples | Base | Names; d.want == nil {
		m.Parts |= AllColumns
	}
	m.Columns = make(map[int]*facts.Metrics, len(d.columns))
	for id, col := range d.columns {
		if d.grow(col, m.N) {
			m.Columns[id] = col.metrics()
		}
		col.free()
	}
	b.free()
	return m
}

// free gives the memory of the integers away.
func (b *builder) free() {
	if cap(b.ints[0]) > maxKept {
		return
	}
	for i := range b.ints {
		b.ints[i] = b.ints[i][:0]
	}
	integers.Put(b.ints)
	b.ints = nil
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
