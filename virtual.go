package skomer

import (
	"slices"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/scan"
)

// virtual is a column that every table has beside its own.
type virtual int

const (
	stored   virtual = iota // no virtual column: as the scan read it
	filePath                // _file, the data file's path as the table states it
	position                // _pos, the row's position in the data file
	rowID                   // _row_id, from format version 3 on
	updated                 // _last_updated_sequence_number, likewise
)

var virtuals = map[string]virtual{"_file": filePath, "_pos": position, "_row_id": rowID, "_last_updated_sequence_number": updated}

var lineageFields = map[virtual]column.Field{rowID: facts.RowID, updated: facts.LastUpdated}

// virtualColumn is the virtual column of a name; a table's own column of that name hides it.
func virtualColumn(s *column.Schema, name string) virtual {
	kind := virtuals[name]
	if kind == stored {
		return stored
	}
	if path, _ := s.ByName(name); path != nil {
		return stored
	}
	return kind
}

func ownColumns(s *column.Schema, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return virtualColumn(s, n) != stored })
}

// slot is where a column of the answer comes from.
type slot struct {
	virtual virtual
	project int // place among the projected columns; of virtual columns only those of row lineage have one
}

// fill makes the column of a batch.
func (s slot) fill(files *facts.Files, f *scan.File, b *column.Batch) *Vector {
	switch s.virtual {
	case filePath:
		path := column.StringValue(files.Stated[f.Ordinal])
		return column.Constant(column.Of(column.String), &path, b.Rows)
	case position:
		return longs(b.Rows, func(i int) int64 { return int64(b.Position(i)) })
	case rowID, updated:
		return s.lineage(files, f, b)
	default:
		return b.Cols[s.project]
	}
}

// lineage fills what the file leaves null: a row that was never rewritten has its first row's id plus its position, and the
// sequence number of its file. Files that no row ids were assigned to have neither.
func (s slot) lineage(files *facts.Files, f *scan.File, b *column.Batch) *Vector {
	own, first := b.Cols[s.project], files.FirstRowID[f.Ordinal]
	if first == facts.Unknown {
		return column.Constant(column.Of(column.Long), nil, b.Rows)
	}
	return longs(b.Rows, func(i int) int64 {
		if v, ok := own.Value(i); ok {
			return v.Int64()
		}
		if s.virtual == updated {
			return files.Sequence[f.Ordinal]
		}
		return first + int64(b.Position(i))
	})
}

func longs(n int, value func(i int) int64) *Vector {
	out := make([]int64, n)
	for i := range out {
		out[i] = value(i)
	}
	return &Vector{Type: column.Of(column.Long), Len: n, Fixed: column.BytesOf(out)}
}
