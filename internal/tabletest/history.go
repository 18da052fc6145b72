package tabletest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
)

// Append adds up to most data files of the present schema and partitioning to a random branch.
func (e *Evolving) Append(t testing.TB, most int) {
	t.Helper()
	branch := "main"
	if e.rng.IntN(4) == 0 {
		branch = e.someBranch()
	}
	var files []*writtenFile
	var stated []lakewrite.File
	for range 1 + e.rng.IntN(most) {
		f, s := e.write(t)
		if e.Writer.FormatVersion > 1 {
			f.sequence = e.Writer.LastSequence + 1
		}
		files, stated = append(files, f), append(stated, s)
	}
	e.did("append %d files to %s", len(files), branch)
	e.commit(t, branch, append(slices.Clone(e.heads[branch].files), files...), lakewrite.Change{Add: stated})
}

func (e *Evolving) someBranch() string {
	all := slices.Sorted(maps.Keys(e.heads))
	return all[e.rng.IntN(len(all))]
}

func (e *Evolving) commit(t testing.TB, branch string, files []*writtenFile, c lakewrite.Change) {
	e.snapshot++
	c.Branch, c.ID = branch, e.snapshot
	_, err := e.Writer.Commit(context.Background(), c)
	e.must(t, err)
	m := &moment{id: e.snapshot, schema: e.schema, files: files, gone: maps.Clone(e.heads[branch].gone)}
	e.moments = append(e.moments, m)
	e.heads[branch] = m
}

func (e *Evolving) remove(t testing.TB) {
	branch := e.someBranch()
	live := e.heads[branch].files
	if len(live) == 0 {
		return
	}
	i := e.rng.IntN(len(live))
	e.did("remove a file from %s", branch)
	e.commit(t, branch, slices.Delete(slices.Clone(live), i, i+1), lakewrite.Change{Remove: []string{live[i].path}})
}

func (e *Evolving) branch(t testing.TB) {
	if len(e.moments) == 0 {
		return
	}
	m, name := e.moments[e.rng.IntN(len(e.moments))], fmt.Sprintf("branch-%d", e.rng.IntN(3))
	e.did("%s at %d", name, m.id)
	e.must(t, e.Writer.Branch(context.Background(), name, m.id))
	e.heads[name] = m
}

func (e *Evolving) tag(t testing.TB) {
	if len(e.moments) == 0 {
		return
	}
	m, name := e.moments[e.rng.IntN(len(e.moments))], fmt.Sprintf("tag-%d", e.rng.IntN(3))
	e.did("%s at %d", name, m.id)
	e.must(t, e.Writer.Tag(context.Background(), name, m.id))
	e.tags[name] = m
}

func (e *Evolving) rollback(t testing.TB) {
	if len(e.moments) == 0 {
		return
	}
	m := e.moments[e.rng.IntN(len(e.moments))]
	e.did("back to %d", m.id)
	e.must(t, e.Writer.SetCurrent(context.Background(), m.id))
	e.heads["main"] = m
}

func (e *Evolving) expire(t testing.TB) {
	for i, m := range e.moments {
		held := slices.Contains(slices.Collect(maps.Values(e.heads)), m) || slices.Contains(slices.Collect(maps.Values(e.tags)), m)
		if held || e.rng.IntN(3) > 0 {
			continue
		}
		e.did("expire %d", m.id)
		e.must(t, e.Writer.Expire(context.Background(), m.id))
		e.expired = append(e.expired, m.id)
		e.moments = slices.Delete(e.moments, i, i+1)
		return
	}
}

// Expired is the ids of snapshots that are no more.
func (e *Evolving) Expired() []int64 { return e.expired }

// Current is the table as a plain query sees it.
func (e *Evolving) Current() View { return e.view("", e.schema, e.heads["main"]) }

// Past is some older snapshot, branch or tag: branches under the table's schema, the others under their own.
func (e *Evolving) Past() View {
	switch n := e.rng.IntN(4); {
	case n == 0:
		name := e.someBranch()
		if m := e.heads[name]; len(m.files) > 0 {
			return e.view(name, e.schema, m)
		}
	case n == 1 && len(e.tags) > 0:
		names := slices.Sorted(maps.Keys(e.tags))
		name := names[e.rng.IntN(len(names))]
		return e.view(name, e.tags[name].schema, e.tags[name])
	case len(e.moments) > 0:
		m := e.moments[e.rng.IntN(len(e.moments))]
		return e.view(strconv.FormatInt(m.id, 10), m.schema, m)
	}
	return e.Current()
}

// view is the rows of a snapshot under a schema.
func (e *Evolving) view(at string, s *column.Schema, m *moment) View {
	v := View{At: at, Table: &Table{Dir: e.Dir, Schema: s, Leaves: Leaves(s), Writer: e.Writer, rng: e.rng}}
	for _, f := range m.files {
		d := DataFile{Path: f.path, Rows: e.seen(f, v.Leaves), gone: deleted{positions: m.gone[f]}}
		for _, l := range v.Leaves {
			d.domains = append(d.domains, Domain{Type: l.Element(), Low: -500, N: 1000})
		}
		v.Files = append(v.Files, d)
	}
	return v
}
