package skomer

import (
	"context"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/maintain"
	"github.com/skomerdb/skomer/internal/overlay"
)

// Mount makes an overlay for the table, detached from it: the table is only ever read. Mounting again is no error.
func (t *Table) Mount(ctx context.Context) error {
	table := t.metadata()
	if err := t.apart(t.where); err != nil {
		return err
	}
	s, err := t.snapshot(ctx, "")
	if err != nil {
		return err
	}
	receipt, err := t.overlay.Commit(ctx, nil, overlay.Mount(
		overlay.Table{UUID: table.UUID(), Location: table.Location(), Name: t.name}, maintain.Upstream(s, time.Time{})))
	if err != nil {
		return err
	}
	t.saw(receipt.Version)
	return nil
}

// apart refuses a place for an overlay that is not apart from the table, by its location and by where its metadata lies.
func (t *Table) apart(where string) error {
	table := t.metadata()
	if err := overlay.CheckApart(where, table.Location()); err != nil {
		return err
	}
	path, ok := lake.LocalPath(table.MetadataPath())
	if !ok || !strings.Contains(path, "/metadata/") {
		return nil
	}
	return overlay.CheckApart(where, path[:strings.LastIndex(path, "/metadata/")])
}

// Unmount ends the mount. Indexes and artifacts stay, and mounting again finds them.
func (t *Table) Unmount(ctx context.Context) error {
	if _, err := t.mounted(ctx); err != nil {
		return err
	}
	if _, err := t.overlay.Commit(ctx, nil, overlay.Unmount()); err != nil {
		return err
	}
	t.saw(nil)
	return nil
}

// AddIndex declares an index, written kind(columns) key=value, in one commit. Queries use it at once for what is built; Sync
// builds it. An equal index that exists already is returned.
func (t *Table) AddIndex(ctx context.Context, expr string) (*Index, error) {
	v, err := t.mounted(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.refresh(ctx); err != nil {
		return nil, err
	}
	d, err := kinds.ParseExpr(expr, t.metadata().Schema())
	if err != nil {
		return nil, err
	}
	receipt, err := t.overlay.Commit(ctx, v, overlay.AddIndex(definition(d)))
	if err != nil {
		return nil, err
	}
	t.saw(receipt.Version)
	return t.index(ctx, receipt.Indexes[0])
}

func definition(d kinds.Declaration) overlay.Definition {
	out := overlay.Definition{Kind: d.Name, KindVersion: d.Version, Params: d.Params}
	for _, c := range d.Columns {
		out.FieldIDs = append(out.FieldIDs, c.Leaf().ID)
		out.Names = append(out.Names, c.Base().Name())
	}
	return out
}

func (t *Table) index(ctx context.Context, id string) (*Index, error) {
	all, err := t.Indexes(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].ID == id {
			return &all[i], nil
		}
	}
	return nil, fault.New(fault.NotFound, id, "was dropped meanwhile")
}

// DropIndex ends an index, named by id or by its expression, in one commit. Nothing is deleted; its artifacts do not speak
// from the next query on.
func (t *Table) DropIndex(ctx context.Context, name string) (*Index, error) {
	v, err := t.mounted(ctx)
	if err != nil {
		return nil, err
	}
	x, err := t.find(ctx, name)
	if err != nil {
		return nil, err
	}
	receipt, err := t.overlay.Commit(ctx, v, overlay.DropIndex(x.ID))
	if err != nil {
		return nil, err
	}
	v.Each(func(a overlay.ArtifactInfo) bool {
		if a.IndexID == x.ID {
			t.client.readers.Drop(a.Bundle)
		}
		return true
	})
	t.saw(receipt.Version)
	return x, nil
}

// find looks an index up by id or expression.
func (t *Table) find(ctx context.Context, name string) (*Index, error) {
	all, err := t.Indexes(ctx)
	if err != nil {
		return nil, err
	}
	var known []string
	for i := range all {
		if all[i].ID == name || all[i].Expr == name {
			return &all[i], nil
		}
		known = append(known, all[i].Expr)
	}
	if d, err := kinds.ParseExpr(name, t.metadata().Schema()); err == nil {
		want := d.String()
		for i := range all {
			if all[i].Expr == want {
				return &all[i], nil
			}
		}
	}
	if len(known) == 0 {
		return nil, fault.New(fault.NotFound, name, "no such index: the table has none").WithFix("skomer index add %s 'bloom(column)'", t.name)
	}
	return nil, fault.New(fault.NotFound, name, "no such index").WithFix("the table has: %s", strings.Join(known, ", "))
}

// ShowIndex describes one index, named by id or expression.
func (t *Table) ShowIndex(ctx context.Context, name string) (*Index, error) {
	if _, err := t.mounted(ctx); err != nil {
		return nil, err
	}
	return t.find(ctx, name)
}
