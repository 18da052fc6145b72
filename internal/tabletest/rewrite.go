package tabletest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
)

// Compact rewrites up to most files of one partition of a random branch as one, without the rows that deletes hide: in their order,
// or in another.
func (e *Evolving) Compact(t testing.TB, most int) {
	t.Helper()
	branch, old := e.mates(most)
	if len(old) == 0 {
		return
	}
	f, s := e.rewritten(t, e.heads[branch], old)
	if e.rng.IntN(3) == 0 {
		e.rng.Shuffle(len(f.rows), func(i, j int) { f.rows[i], f.rows[j] = f.rows[j], f.rows[i] })
	}
	e.did("compact %d files of %s", len(old), branch)
	e.replace(t, branch, old, lakewrite.Change{Operation: "replace"}, f, s)
}

// Update rewrites a file of a random branch with some of its rows changed, as a copy-on-write update does.
func (e *Evolving) Update(t testing.TB) {
	t.Helper()
	branch, old := e.mates(1)
	if len(old) == 0 {
		return
	}
	f, s := e.rewritten(t, e.heads[branch], old)
	whole := &Table{Schema: s, Leaves: f.leaves, rng: e.rng}
	d := &DataFile{}
	for _, l := range f.leaves {
		d.domains = append(d.domains, NewDomain(e.rng, l.Element(), !l.Path.Leaf().Required))
	}
	for i := range f.rows {
		if e.rng.IntN(8) == 0 {
			f.rows[i] = e.keepPartition(f, whole.row(d), f.rows[i])
		}
	}
	e.did("update a file of %s", branch)
	e.replace(t, branch, old, lakewrite.Change{Operation: "overwrite"}, f, s)
}

// Overwrite replaces up to two files of a random branch by a new one, as INSERT OVERWRITE does.
func (e *Evolving) Overwrite(t testing.TB) {
	t.Helper()
	branch := e.someBranch()
	live := e.heads[branch].files
	if len(live) == 0 {
		return
	}
	from := e.rng.IntN(len(live))
	old := live[from:min(len(live), from+1+e.rng.IntN(2))]
	f, stated := e.write(t)
	if e.Writer.FormatVersion > 1 {
		f.sequence = e.Writer.LastSequence + 1
	}
	e.did("overwrite %d files of %s", len(old), branch)
	e.commit(t, branch, append(without(live, old), f), lakewrite.Change{Add: []lakewrite.File{stated}, Remove: paths(old)})
}

// RemoveOrphans deletes the data files that no snapshot holds any more, as a cleaner of the table does, and tells how many.
func (e *Evolving) RemoveOrphans(t testing.TB) (removed int) {
	t.Helper()
	live := map[string]bool{}
	for _, m := range e.moments {
		for _, f := range m.files {
			live[f.path] = true
		}
	}
	for _, path := range e.written {
		if !live[path] {
			e.must(t, os.Remove(path))
			removed++
		}
	}
	e.written = slices.DeleteFunc(e.written, func(path string) bool { return !live[path] })
	e.did("orphans removed: %d", removed)
	return removed
}

// mates picks a branch and up to most of its files that lie in one partition of the present spec.
func (e *Evolving) mates(most int) (branch string, files []*writtenFile) {
	branch = e.someBranch()
	live := e.heads[branch].files
	for _, i := range e.rng.Perm(len(live)) {
		f := live[i]
		if f.spec != e.spec || len(files) > 0 && !sameTuple(f.tuple, files[0].tuple) {
			continue
		}
		if files = append(files, f); len(files) == 1+e.rng.IntN(most) {
			break
		}
	}
	return branch, files
}

// rewritten is a file in memory that holds the live rows of others under the present schema.
func (e *Evolving) rewritten(t testing.TB, m *moment, old []*writtenFile) (*writtenFile, *column.Schema) {
	t.Helper()
	s := &column.Schema{}
	for _, field := range e.schema.Fields {
		if field.Type.Kind != column.Unknown {
			s.Fields = append(s.Fields, field)
		}
	}
	f := &writtenFile{
		path: e.newPath(), bare: e.bareMode && e.rng.IntN(2) == 0, leaves: Leaves(s), spec: old[0].spec, tuple: old[0].tuple, partition: old[0].partition,
	}
	for _, o := range old {
		for pos, row := range e.seen(o, f.leaves) {
			if !m.gone[o][pos] {
				f.rows = append(f.rows, row)
			}
		}
	}
	return f, s
}

// keepPartition is a new row in the partition of the old one.
func (e *Evolving) keepPartition(f *writtenFile, row, old Row) Row {
	for _, p := range f.spec.Fields {
		for i, l := range f.leaves {
			if l.Path.Leaf().ID == p.SourceID {
				row[i] = old[i]
			}
		}
	}
	return row
}

// replace writes f and commits it in the place of others.
func (e *Evolving) replace(t testing.TB, branch string, old []*writtenFile, c lakewrite.Change, f *writtenFile, s *column.Schema) {
	c.Add, c.Remove = []lakewrite.File{e.put(t, f, s)}, paths(old)
	if e.Writer.FormatVersion > 1 {
		f.sequence = e.Writer.LastSequence + 1
	}
	e.commit(t, branch, append(without(e.heads[branch].files, old), f), c)
}

// newPath is a name for a data file.
func (e *Evolving) newPath() string {
	path := filepath.Join(e.Dir, "data", fmt.Sprintf("%08x", e.rng.Uint32()))
	e.written = append(e.written, path)
	return path
}

func without(files, gone []*writtenFile) []*writtenFile {
	return slices.DeleteFunc(slices.Clone(files), func(f *writtenFile) bool { return slices.Contains(gone, f) })
}

func paths(files []*writtenFile) (out []string) {
	for _, f := range files {
		out = append(out, f.path)
	}
	return out
}
