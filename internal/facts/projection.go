package facts

import (
	"slices"

	"github.com/skomerdb/skomer/internal/column"
)

// In is paths as they are to be read from data file i: a column that is the source of an identity partition field has the
// file's partition value in place of its initial default, for that is what its rows hold where the file lacks the column
// (table specification, "Column Projection"). paths itself stays as it is.
func (s *Snapshot) In(i int, paths []column.Path) []column.Path {
	spec := s.Specs[int(s.Files.SpecID[i])]
	if spec == nil {
		return paths
	}
	out := paths
	for _, pf := range spec.Fields {
		c := s.Files.Partition[pf.ID]
		if pf.Transform != "identity" || c == nil || i >= len(c.Known) || !c.Known[i] {
			continue
		}
		out = slices.Clone(out)
		for k := range out {
			out[k] = withInitial(out[k], pf.SourceID, c, i)
		}
	}
	return out
}

// withInitial is a path, or a copy of it, in which field id has value i of a partition column as its default.
func withInitial(p column.Path, id int, c *PartitionColumn, i int) column.Path {
	out := slices.Clone(p)
	for k := range out {
		out[k] = fieldWithInitial(out[k], id, c, i)
	}
	return out
}

func fieldWithInitial(f column.Field, id int, c *PartitionColumn, i int) column.Field {
	switch {
	case f.ID == id:
		f.Initial = nil
		if !c.Null[i] {
			f.Initial = valueAs(f.Type, c.Value[i])
		}
	case f.Type.Kind == column.Struct: // partition sources never lie in lists or maps
		f.Type.Fields = slices.Clone(f.Type.Fields)
		for k := range f.Type.Fields {
			f.Type.Fields[k] = fieldWithInitial(f.Type.Fields[k], id, c, i)
		}
	}
	return f
}

// valueAs is a partition value, which is of the column's newest type, in the type that an older schema gives it.
func valueAs(t column.Type, v column.Value) *column.Value {
	switch {
	case v.Kind == t.Kind:
	case t.Kind == column.Float:
		v = column.FloatValue(float32(v.Float64()))
	case t.Kind == column.Double:
		v = column.DoubleValue(v.Float64())
	case t.Kind == column.Int || t.Kind == column.Long:
		v = column.IntValue(t.Kind, v.Int64())
	}
	return &v
}
