package build

import (
	"context"
	"fmt"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/lineage"
)

// hashed tells that the chunks of the unit's columns are read, so that artifacts can record their hashes.
func (w *writing) hashed() bool { return w.origins == nil || w.unit.Snapshot.Restorable() }

// hashColumns hashes the chunks of the unit's columns in all of its files.
func (w *writing) hashColumns(ctx context.Context) error {
	for _, s := range w.files {
		n, err := w.hash(ctx, s)
		w.result.BytesRead += n
		if err != nil {
			return err
		}
	}
	return nil
}

// merged makes every artifact of those of files that left, by where the rows were: no value of an indexed column is read, but for file maps;
// and no byte of it, but where only content tells whether a file was overwritten.
func (w *writing) merged(ctx context.Context) error {
	if w.hashed() {
		if err := w.hashColumns(ctx); permanent(err) {
			return errNotCarried // who builds of it says why
		} else if err != nil {
			return err
		}
	}
	for _, x := range w.unit.Indexes {
		if x.Kind.Scope == index.Tiered {
			if err := w.move(ctx, x, w.unitSpec(), w.files, 0); err != nil {
				return err
			}
			continue
		}
		for _, s := range w.files {
			if err := w.move(ctx, x, w.fileSpec(s, x), []*source{s}, s.first); err != nil {
				return err
			}
		}
	}
	if len(w.done) == 0 {
		return errNotCarried
	}
	err := w.mapValues(ctx)
	if permanent(err) {
		return errNotCarried // a file changed meanwhile, or cannot be read: who builds of it says which
	}
	if err != nil {
		return err
	}
	return w.seal()
}

// mapValues reads the columns of file maps alone.
func (w *writing) mapValues(ctx context.Context) error {
	if err := w.beginMaps(); err != nil || len(w.maps) == 0 {
		return err
	}
	mapped := Unit{Maps: w.unit.Maps}
	for _, s := range w.files {
		for _, m := range w.maps {
			if err := m.startFile(s); err != nil {
				return err
			}
		}
		own := *s
		var err error
		if own.binding, err = s.opened.File.Bind(w.unit.Snapshot.In(s.Ordinal, mapped.reads()), w.unit.Snapshot.NameMapping); err != nil {
			return err
		}
		err = w.each(ctx, &own, func(p part, data [][]byte) error {
			w.result.BytesRead += p.bytes
			if p.rows.Empty() {
				return nil
			}
			return own.binding.Decode(ctx, data, p.rows, 0, func(b *column.Batch) error {
				for _, m := range w.maps {
					if err := m.collector.Add(b.Cols[mapped.columnNo(m.index.Columns[0])]); err != nil {
						return err
					}
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
	}
	return w.finishMaps()
}

// move makes one artifact, of rows of the unit from first on.
func (w *writing) move(ctx context.Context, x Index, spec index.Spec, files []*source, first uint32) error {
	spec.Columns, spec.Params = x.Columns, x.Definition.Params
	m := &making{index: x, files: files, cols: w.places(x)}
	mover := &mover{
		ctx: ctx, index: x, spec: spec, budget: w.budget(1, w.temp), origins: w.origins, first: first,
		cols: w.found(x, files[0]), sources: w.unit.Carry[x.Definition.ID],
	}
	if w.hashed() {
		mover.unchanged = w.unchanged
	}
	m.builder = mover
	return w.finish(m)
}

// mover stands for the builder of an artifact whose rows were moved from others.
type mover struct {
	ctx     context.Context //nolint:containedctx // builders have none, and a mover reads when it finishes
	index   Index
	spec    index.Spec
	budget  index.Budget
	origins *origins
	first   uint32 // of its rows in the unit
	cols    []lineage.Column
	sources []*Carried
	// unchanged tells of a file that left whether it still is what an artifact was made of, by its content. Nil: its tag tells.
	unchanged func(ctx context.Context, no uint32, rec *lineage.Record, f *lineage.File) (bool, error)
}

// Add implements index.Builder: a mover is given no values.
func (m *mover) Add([]*column.Vector) error {
	return fault.New(fault.Invalid, m.index.Definition.ID, "values for an artifact that is made of others")
}

// Close implements index.Builder.
func (m *mover) Close() error { return nil }

// Finish implements index.Builder.
func (m *mover) Finish(body index.Sink) ([]byte, string, error) {
	used, source, old := m.trace()
	if len(used) == 0 {
		return nil, notCarried, nil
	}
	if ok, err := m.proven(used); !ok || err != nil {
		return nil, notCarried, err
	}
	rows, sources := make([]uint32, len(used)), make([]index.Source, len(used))
	for i, k := range used {
		src, closer, err := m.sources[k].Open(m.ctx)
		if err != nil {
			if permanent(err) {
				return nil, notCarried, nil
			}
			return nil, "", err
		}
		defer closer.Close()
		rows[i], sources[i] = m.sources[k].Rows, src
	}
	ordinals, err := index.Originating(rows, source, old)
	if err != nil { // two rows were one
		return nil, notCarried, nil
	}
	root, _, err := m.index.Kind.Kind.Merge(m.spec, sources, ordinals, m.budget, body)
	if unmerged(root, err) {
		return nil, notCarried, nil
	}
	return root, "", err
}

// trace finds every row in an artifact: row i was row old[i] of the source used[source[i]]. Nothing is used unless all are found, and are at
// least half of the rows of the sources together, all of which a merge reads.
func (m *mover) trace() (used []int, source, old []uint32) {
	type place struct {
		source int
		first  uint32
	}
	places := map[uint32]place{}
	for k, s := range m.sources {
		if !s.alike(m.index, m.cols) {
			continue
		}
		at := uint64(0)
		for i := range s.Record.Files {
			f := &s.Record.Files[i]
			if no, ok := m.origins.at[f.Path]; ok && m.origins.is(no, f) {
				places[no] = place{k, uint32(at)}
			}
			at += uint64(max(f.Records, 0))
		}
		if at != uint64(s.Rows) {
			return nil, nil, nil
		}
	}
	number, all := map[int]uint32{}, uint64(0)
	source, old = make([]uint32, m.spec.Rows), make([]uint32, m.spec.Rows)
	for i := range m.spec.Rows {
		p, ok := places[m.origins.file[m.first+i]]
		if !ok {
			return nil, nil, nil
		}
		n, seen := number[p.source]
		if !seen {
			n = uint32(len(used))
			number[p.source], used, all = n, append(used, p.source), all+uint64(m.sources[p.source].Rows)
		}
		source[i], old[i] = n, p.first+m.origins.old[m.first+i]
	}
	if all > 2*uint64(m.spec.Rows) {
		return nil, nil, nil
	}
	return used, source, old
}

// proven tells whether the files that left are those of which the used artifacts were made.
func (m *mover) proven(used []int) (bool, error) {
	if m.unchanged == nil {
		return true, nil
	}
	for _, k := range used {
		rec := m.sources[k].Record
		for i := range rec.Files {
			f := &rec.Files[i]
			no, left := m.origins.at[f.Path]
			if !left || !m.origins.is(no, f) {
				continue // none of its rows is used
			}
			if ok, err := m.unchanged(m.ctx, no, rec, f); !ok || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// unchanged hashes the columns of a file that left as the build of an artifact did, once a set of columns.
func (w *writing) unchanged(ctx context.Context, no uint32, rec *lineage.Record, f *lineage.File) (bool, error) {
	key := fmt.Sprint(no, rec.ReadFieldIDs)
	now, known := w.left[key]
	if !known {
		var err error
		if now, err = w.rehashLeft(ctx, no, rec.ReadFieldIDs); err != nil && !permanent(err) {
			return false, err
		}
		w.left[key] = now
	}
	return now.ColumnsSHA256 != "" && now.Tag == string(w.origins.tags[no]) &&
		now.ColumnsSHA256 == f.ColumnsSHA256 && now.FooterSHA256 == f.FooterSHA256, nil
}

// rehashLeft is a file that left as a build would record it now that reads some columns, zero if they are not known.
func (w *writing) rehashLeft(ctx context.Context, no uint32, ids []int) (lineage.File, error) {
	var columns []column.Path
	for _, id := range ids {
		path := w.unit.Snapshot.Column(id)
		if path == nil {
			return lineage.File{}, nil
		}
		columns = append(columns, path)
	}
	if len(columns) == 0 {
		return lineage.File{}, nil
	}
	out, read, err := w.rehash(ctx, w.unit.Snapshot, w.origins.left[no].File, columns)
	w.result.BytesRead += read
	return out, err
}

// is tells whether an artifact was made of a file that left as it was found now.
func (o *origins) is(no uint32, f *lineage.File) bool {
	was := &o.left[no]
	return f.Size == was.Size && f.Records == was.Records && f.Tag != "" && f.Tag == string(o.tags[no])
}
