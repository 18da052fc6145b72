// Package avrorows answers: which rows does an Avro data or delete file hold, as columns of the table?
//
// Columns are found by field id, in files without ids by the table's name mapping, else by name; they come out in the table's
// types, promoted where they were written narrower, with the initial default where the file lacks them. The package knows no
// store and no snapshot: it is fed the bytes of one file. Sources: table specification, "Appendix A: Avro", "Column
// Projection" and "Schema Evolution"; Apache Avro 1.12 specification.
package avrorows

import (
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/avro"
)

// File is an open Avro file of rows.
type File struct {
	file *avro.File
	name string
	find resolver
}

// Open reads the header of the file b; name names it in faults. names is the table's name mapping, nil if it has none.
func Open(name string, b []byte, names []facts.MappedField) (*File, error) {
	f, err := avro.Open(name, b)
	if err != nil {
		return nil, err
	}
	if f.Schema.Kind != avro.Record {
		return nil, fault.New(fault.Corrupt, name, "an Avro file of a table holds records")
	}
	find := resolver{mapped: names != nil, names: names}
	for _, x := range f.Schema.Fields {
		find.ids = find.ids || x.ID >= 0
	}
	return &File{file: f, name: name, find: find}, nil
}

// Rows is the number of rows that the file's blocks state.
func (f *File) Rows() (int64, error) { return f.file.Records() }

// Holds reports whether the file has a column.
func (f *File) Holds(path column.Path) bool {
	s, find := f.file.Schema, f.find
	for i, want := range path {
		var next *avro.Schema
		for k := range s.Fields {
			if find.is(&s.Fields[k], want) {
				next = s.Fields[k].Schema.Value()
			}
		}
		if next == nil || i < len(path)-1 && next.Kind != avro.Record {
			return false
		}
		s, find = next, find.inside(want)
	}
	return true
}

// Each calls visit with all rows in their order, at most rows of them at a time, their vectors parallel to cols. A path must not
// run through a list or map. A batch is valid until visit returns.
func (f *File) Each(cols []column.Path, rows int, visit func(*column.Batch) error) error {
	var top column.Field
	for _, p := range cols {
		top.Type.Fields = addField(top.Type.Fields, p[0])
	}
	top.Type.Kind = column.Struct
	out, start := newSink(top, f.find), uint32(0)
	flush := func() error {
		if out.n == 0 {
			return nil
		}
		b := &column.Batch{Start: start, Rows: out.n}
		whole := out.vector()
		for _, p := range cols {
			b.Cols = append(b.Cols, within(whole, p))
		}
		start += uint32(out.n)
		out = newSink(top, f.find)
		return visit(b)
	}
	err := f.file.Each(func(c *avro.Cursor) error {
		if err := out.record(c, f.file.Schema); err != nil {
			return err
		}
		if out.n < rows || c.Failed() {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	return fault.About(f.name, err)
}

func addField(fields []column.Field, f column.Field) []column.Field {
	for _, have := range fields {
		if have.ID == f.ID {
			return fields
		}
	}
	return append(fields, f)
}

// within is the vector of a path. A struct's nulls are nulls of what is in it already.
func within(v *column.Vector, p column.Path) *column.Vector {
	for _, want := range p {
		for i, f := range v.Type.Fields {
			if f.ID == want.ID {
				v = v.Kids[i]
				break
			}
		}
	}
	return v
}

// resolver finds table fields among those of an Avro record.
type resolver struct {
	ids    bool
	mapped bool
	names  []facts.MappedField
}

func (r resolver) is(have *avro.Field, want column.Field) bool {
	switch {
	case r.ids:
		return have.ID == want.ID
	case !r.mapped:
		return have.Name == want.Name
	}
	for _, m := range r.names {
		if m.ID != want.ID {
			continue
		}
		for _, name := range m.Names {
			if name == have.Name {
				return true
			}
		}
	}
	return false
}

// inside is the resolver for what is below a field.
func (r resolver) inside(f column.Field) resolver {
	if r.ids || !r.mapped {
		return r
	}
	for _, m := range r.names {
		if m.ID == f.ID {
			return resolver{mapped: true, names: m.Fields}
		}
	}
	return resolver{mapped: true}
}
