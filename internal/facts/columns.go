package facts

import (
	"maps"
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/column"
)

// Column is the path of a field id: in the snapshot's schema, else in the newest of the table's schemas that has it, for its data files hold
// columns that were dropped, and others than an older snapshot knows. Nil if no schema that the metadata keeps has it.
func (s *Snapshot) Column(id int) column.Path {
	if path := s.Schema.ByID(id); path != nil {
		return path
	}
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(s.Schemas))) {
		if path := s.Schemas[n].ByID(id); path != nil {
			return path
		}
	}
	return nil
}

// Restorable reports whether whoever may write the table's data files may also give a changed one the entity tag that it had, as
// modification times of local files can be set: then only content tells.
func (s *Snapshot) Restorable() bool {
	return !strings.Contains(s.Location, "://") || strings.HasPrefix(s.Location, "file:")
}
