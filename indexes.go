package skomer

import (
	"context"
	"time"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
)

// exprOf is an index declaration as people type it.
func exprOf(d overlay.Definition) string {
	out := kinds.Declaration{Entry: kinds.Entry{Name: d.Kind}, Params: index.Params(d.Params)}
	for i, id := range d.FieldIDs {
		f := column.Field{ID: id}
		if i < len(d.Names) {
			f.Name = d.Names[i]
		}
		out.Columns = append(out.Columns, column.Path{f})
	}
	return out.String()
}

// Indexes lists the declared indexes with how much of the current snapshot each covers.
func (t *Table) Indexes(ctx context.Context) ([]Index, error) {
	st, err := t.Status(ctx)
	if err != nil {
		return nil, err
	}
	if !st.Mounted {
		_, err := t.mounted(ctx)
		return nil, err
	}
	return st.Indexes, nil
}

// dataStore is the store of the table's data files.
func (t *Table) dataStore() (store.Store, error) {
	s, _, err := t.client.stores.table(t.name)(t.metadata().MetadataPath())
	return s, err
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// columnsOf is the present paths of an index's columns; ok is false when one was dropped from the table.
func columnsOf(s *column.Schema, d overlay.Definition) (cols []column.Path, ok bool) {
	return kinds.Columns(s, d.FieldIDs, d.Params)
}
