package skomer

import (
	"context"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/maintain"
	"github.com/skomerdb/skomer/internal/mask"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/predicate/sqltext"
	"github.com/skomerdb/skomer/internal/scan"
)

// bindErased binds a filter to the present schema, where the table has its columns, else to the snapshot's.
func bindErased(where string, now, s *facts.Snapshot) (*predicate.Tree, *column.Schema, error) {
	tree, err := sqltext.Parse(where, now.Schema)
	if err == nil {
		return tree, now.Schema, nil
	}
	if old, again := sqltext.Parse(where, s.Schema); again == nil && s.ID != now.ID {
		return old, s.Schema, nil
	}
	return nil, nil, err
}

// physical is a snapshot in which no row is deleted.
func physical(s *facts.Snapshot, schema *column.Schema) *facts.Snapshot {
	out := *s
	out.Schema, out.Deletes = schema, facts.Deletes{}
	return &out
}

// holdersIn looks for rows that match in the files of a snapshot that are not known yet. It tells whether any file of it, known before or
// not, has one.
func (t *Table) holdersIn(ctx context.Context, s *facts.Snapshot, tree *predicate.Tree, known map[maintain.DataFile]bool, out *EraseReport) (holds bool, err error) {
	plan, reader, err := t.unindexed(ctx, s, tree)
	if err != nil {
		return false, err
	}
	fileOf := func(i int) maintain.DataFile {
		return maintain.DataFile{Path: s.Files.Stated[i], Size: s.Files.Size[i], Records: s.Files.Records[i]}
	}
	for k := range plan.Files {
		f := fileOf(plan.Files[k].Ordinal)
		match, done := known[f]
		if !done {
			one := *plan
			one.Files = plan.Files[k : k+1]
			counters, err := reader.Count(ctx, &one)
			if err != nil {
				return false, err
			}
			if match = counters.Rows > 0; match {
				out.Files = append(out.Files, f.Path)
			}
			known[f] = match
		}
		holds = holds || match
	}
	for i := range s.Files.Len() {
		if f := fileOf(i); !known[f] {
			known[f] = false
		}
	}
	return holds, nil
}

// stillShown counts the rows of a snapshot that match and are not deleted. In the current one there may be none.
func (t *Table) stillShown(ctx context.Context, s *facts.Snapshot, schema *column.Schema, tree *predicate.Tree, current bool, out *EraseReport) error {
	shown := *s
	shown.Schema = schema
	plan, reader, err := t.unindexed(ctx, &shown, tree)
	if err != nil {
		return err
	}
	rows := int64(0)
	for k := range plan.Files {
		one := *plan
		one.Files = plan.Files[k : k+1]
		counters, err := reader.Count(ctx, &one)
		if err != nil {
			return err
		}
		if current && counters.Rows > 0 {
			return fault.New(fault.Refused, t.name, "the table still has rows that match, %d of them in %s", counters.Rows, plan.Files[k].Path).
				WithFix("delete them in the table first: DELETE FROM ... WHERE %s", out.Where)
		}
		rows += counters.Rows
	}
	if rows > 0 {
		out.TableHas = append(out.TableHas, TableHolds{SnapshotID: s.ID, Rows: rows})
	}
	return nil
}

// unindexed plans without any index, and without what this process remembers of footers.
func (t *Table) unindexed(ctx context.Context, s *facts.Snapshot, tree *predicate.Tree) (*scan.Plan, *scan.Reader, error) {
	data, err := t.dataStore()
	if err != nil {
		return nil, nil, err
	}
	plan, err := (&scan.Planner{Data: data}).Plan(ctx, s, tree, nil, scan.Options{NoIndex: true})
	if err != nil {
		return nil, nil, err
	}
	c := t.client.config
	footers := parquetio.NewFooters(c.CacheBytes / 8)
	return plan, &scan.Reader{
		Store: data, Footers: footers, Workers: c.Workers, Memory: c.Memory / 4,
		Masks: &mask.Masker{Store: data, Footers: footers, Cache: mask.NewCache(c.CacheBytes / 8), Map: t.mapping.Apply, Workers: c.Workers, Memory: c.Memory / 4},
	}, nil
}
