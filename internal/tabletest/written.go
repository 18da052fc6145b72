package tabletest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
)

// writtenFile is a data file as it was written: its columns by the ids, names and types of then.
type writtenFile struct {
	path     string
	bare     bool // without field ids
	leaves   []Leaf
	rows     []Row
	spec     *facts.Spec
	tuple    []facts.PartitionValue
	sequence int64
	// partition is the values of identity partition fields by source, nil for null. They stand in for columns that the
	// file lacks.
	partition map[int]*column.Value
}

// write makes a data file of the present schema and partition.
func (e *Evolving) write(tb testing.TB) (*writtenFile, lakewrite.File) {
	tb.Helper()
	f := &writtenFile{
		path: e.newPath(), bare: e.bareMode && e.rng.IntN(2) == 0,
		partition: map[int]*column.Value{},
	}
	whole := &Table{Schema: e.schema, Leaves: Leaves(e.schema), rng: e.rng}
	d := &DataFile{}
	for _, l := range whole.Leaves {
		d.domains = append(d.domains, NewDomain(e.rng, l.Element(), !l.Path.Leaf().Required))
	}
	for range e.rng.IntN(150) {
		f.rows = append(f.rows, whole.row(d))
	}
	f.spec, f.tuple = e.spec, e.place(f, whole.Leaves)
	return f, e.put(tb, f, e.omit(f, whole))
}

// put writes the file as it is in memory, under a schema of its leaves, and states it.
func (e *Evolving) put(tb testing.TB, f *writtenFile, schema *column.Schema) lakewrite.File {
	stated := lakewrite.File{Path: f.path, Format: facts.Parquet, Records: int64(len(f.rows)), Partition: f.tuple, Metrics: map[int]lakewrite.Metric{}}
	for i, l := range f.leaves {
		if m, ok := metric(e.rng, l, f.rows, i); ok {
			stated.Metrics[l.Path.Leaf().ID] = m
		}
	}
	e.must(tb, f.holdsWhatIsRequired())
	if f.bare {
		schema = &column.Schema{Fields: withoutIDs(schema.Fields)}
	}
	e.must(tb, os.MkdirAll(filepath.Dir(f.path), 0o755))
	if e.rng.IntN(5) == 0 {
		stated.Format = facts.Avro
		e.must(tb, os.WriteFile(f.path, avroFile(schema, f.rows), 0o600))
	} else {
		e.must(tb, WriteParquet(f.path, schema, f.rows, NewLayout(e.rng)))
	}
	info, err := os.Stat(f.path)
	e.must(tb, err)
	stated.Size = info.Size()
	return stated
}

// holdsWhatIsRequired fails on a null of a required column, of which a Parquet file would make a zero.
func (f *writtenFile) holdsWhatIsRequired() error {
	for i, l := range f.leaves {
		for _, row := range f.rows {
			if l.Path.Leaf().Required && row[i].Null && !row[i].Outer {
				return fmt.Errorf("a null of the required column %s", l.Path.Name())
			}
		}
	}
	return nil
}

func withoutIDs(fields []column.Field) []column.Field {
	out := slices.Clone(fields)
	for i := range out {
		out[i].ID, out[i].Type.Fields = 0, withoutIDs(out[i].Type.Fields)
	}
	return out
}

// omit leaves columns of identity partitions out of some files, as files of migrated tables lack them, and columns without a
// type out of all.
func (e *Evolving) omit(f *writtenFile, whole *Table) *column.Schema {
	out := &column.Schema{}
	gone := map[int]bool{}
	for _, field := range whole.Schema.Fields {
		if _, identity := f.partition[field.ID]; identity && e.rng.IntN(2) == 0 || field.Type.Kind == column.Unknown {
			gone[field.ID] = true
			continue
		}
		out.Fields = append(out.Fields, field)
	}
	f.leaves = Leaves(out)
	for r, row := range f.rows {
		var kept Row
		for i, l := range whole.Leaves {
			if !gone[l.Path[0].ID] {
				kept = append(kept, row[i])
			}
		}
		f.rows[r] = kept
	}
	return out
}

// seen is the rows of a file under other leaves.
func (e *Evolving) seen(f *writtenFile, leaves []Leaf) []Row {
	out := make([]Row, len(f.rows))
	for _, l := range leaves {
		at, beside := e.find(f, l)
		for r, row := range f.rows {
			var c Cell
			switch {
			case at >= 0:
				c = promotedCell(l.Element(), row[at])
			case beside >= 0 && row[beside].Outer:
				c = Cell{Null: true, Outer: true}
			default:
				c = f.lacking(l, beside >= 0)
			}
			out[r] = append(out[r], c)
		}
	}
	return out
}

// find is the place of a leaf in a file, -1 if the file lacks it, and that of any leaf of the struct that the leaf lies in.
func (e *Evolving) find(f *writtenFile, want Leaf) (at, beside int) {
	at, beside = -1, -1
	for i, have := range f.leaves {
		if !e.same(f, have.Path[0], want.Path[0]) || len(have.Path) != len(want.Path) {
			continue
		}
		if len(want.Path) == 1 {
			return i, -1
		}
		beside = i
		if e.same(f, have.Path[1], want.Path[1]) {
			at = i
			break
		}
	}
	return at, beside
}

// same reports whether a file's field is a table's: by id, in files without ids by the names that the mapping gives it now.
func (e *Evolving) same(f *writtenFile, have, want column.Field) bool {
	if f.bare {
		return slices.Contains(e.names[want.ID], have.Name)
	}
	return have.ID == want.ID
}

// lacking is the value of a column that a file lacks: of its partition, else the initial default, else null. A struct that the
// file lacks is null itself.
func (f *writtenFile) lacking(l Leaf, structThere bool) Cell {
	leaf := l.Path.Leaf()
	value, partitioned := f.partition[leaf.ID]
	if !partitioned {
		value = leaf.Initial
	}
	switch {
	case len(l.Path) > 1 && !structThere:
		return Cell{Null: true, Outer: true}
	case value == nil:
		return Cell{Null: true}
	default:
		return Cell{Val: promoted(leaf.Type, *value)}
	}
}

func promotedCell(t column.Type, c Cell) Cell {
	if c.Null {
		return c
	}
	if c.List == nil {
		c.Val = promoted(t, c.Val)
		return c
	}
	list := []Cell{}
	for _, x := range c.List {
		list = append(list, promotedCell(t, x))
	}
	return Cell{List: list}
}

// promoted is a value in a type that its own can be promoted to.
func promoted(t column.Type, v column.Value) column.Value {
	switch {
	case t.Kind == column.Long && v.Kind == column.Int:
		return column.IntValue(column.Long, v.Int64())
	case t.Kind == column.Timestamp && v.Kind == column.Date:
		return column.IntValue(t.Kind, v.Int64()*86_400_000_000)
	case t.Kind == column.TimestampNS && v.Kind == column.Date:
		return column.IntValue(t.Kind, v.Int64()*86_400_000_000_000)
	case t.Kind == column.Double && v.Kind == column.Float:
		return column.DoubleValue(number(v))
	default:
		return v
	}
}
