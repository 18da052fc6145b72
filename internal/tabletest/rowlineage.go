package tabletest

import (
	"slices"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
)

// RowVersion is what a data file holds of a row's lineage: its id and the sequence number of its last change; nil is null, which stands for
// what the file inherits.
type RowVersion struct{ ID, Changed *int64 }

// WithRowLineage is a schema and rows with the columns of row lineage behind their own, as a rewrite in a v3 table writes them.
func WithRowLineage(s *column.Schema, rows []Row, versions []RowVersion) (*column.Schema, []Row) {
	out := &column.Schema{Fields: append(slices.Clone(s.Fields), facts.RowID, facts.LastUpdated)}
	cell := func(n *int64) Cell {
		if n == nil {
			return Cell{Null: true}
		}
		return Cell{Val: column.IntValue(column.Long, *n)}
	}
	var full []Row
	for i, row := range rows {
		full = append(full, append(slices.Clone(row), cell(versions[i].ID), cell(versions[i].Changed)))
	}
	return out, full
}
