package build

import (
	"context"
	"errors"
	"slices"

	"github.com/skomerdb/skomer/internal/bundle"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/expression"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
)

const (
	waveBytes = 32 << 20 // of column data fetched ahead
	waveParts = 256
)

// writing is one attempt at a bundle.
type writing struct {
	*Builder
	unit    Unit
	files   []*source
	origins *origins                // of all rows; nil: their values are read
	left    map[string]lineage.File // files that left, hashed now, by number and field ids
	result  *Result
	temp    string
	out     *bundle.Writer
	tiered  []*making // over the whole unit
	single  []*making // over the file at hand
	maps    []*mapping
	done    []published
	// derived is what expressions made of the batch at hand, by the number of the unit's column.
	derived map[int]*column.Vector
}

// making is one artifact in the making.
type making struct {
	index   Index
	builder index.Builder
	cols    []int // of the unit's columns
	hashes  []*columnHash
	files   []*source
}

// published is what is known of an artifact before its bundle is closed.
type published struct {
	index Index
	files []*source
	cols  []lineage.Column
}

func (w *writing) close() {
	for _, m := range append(w.tiered, w.single...) {
		_ = m.builder.Close()
	}
	for _, m := range w.maps {
		_ = m.collector.Close()
	}
}

// all reads every part of every file once and finishes the bundle.
func (w *writing) all(ctx context.Context) (bad *source, err error) {
	if w.origins != nil {
		return nil, w.merged(ctx)
	}
	if err := w.begin(ctx); err != nil {
		return nil, err
	}
	var parts []part
	for _, s := range w.files {
		parts = append(parts, s.parts()...)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // what was fetched behind a cut
	next, enough := w.fetch(ctx, &parts), false
	for next != nil && !enough {
		got := <-next
		if got.err != nil {
			return got.bad, got.err
		}
		next = w.fetch(ctx, &parts)
		for i, p := range got.parts {
			if err := w.add(ctx, p, got.data[i]); err != nil {
				return p.source, err
			}
			if w.hopeless() {
				return nil, errNotCarried
			}
			if p.last {
				if enough, err = w.cut(p.source); err != nil {
					return nil, err
				}
				if enough {
					break
				}
			}
		}
	}
	for _, m := range w.tiered {
		if err := w.finish(m); err != nil {
			return nil, err
		}
	}
	w.tiered = nil
	if err := w.finishMaps(); err != nil {
		return nil, err
	}
	return nil, w.seal()
}

// begin starts the artifacts that cover the whole unit.
func (w *writing) begin(ctx context.Context) error {
	spec := w.unitSpec()
	for _, x := range w.unit.Indexes {
		if x.Kind.Scope != index.Tiered {
			continue
		}
		m, err := w.make(ctx, x, spec, w.files)
		if err != nil {
			return err
		}
		w.tiered = append(w.tiered, m)
	}
	return w.beginMaps()
}

// unitSpec is the rows of an artifact that covers the whole unit.
func (w *writing) unitSpec() (spec index.Spec) {
	for _, s := range w.files {
		for _, g := range s.groups() {
			spec.RowGroups = append(spec.RowGroups, s.first+g)
		}
		spec.Rows = s.first + s.rows
	}
	spec.Pages = spec.RowGroups
	return spec
}

// fileSpec is the rows of an artifact that covers one file.
func (w *writing) fileSpec(s *source, x Index) index.Spec {
	spec := index.Spec{Rows: s.rows, RowGroups: s.groups()}
	spec.Pages = spec.RowGroups
	if pages := s.binding.PageStarts(w.places(x)[0]); pages != nil {
		spec.Pages = pages
	}
	return spec
}

// places is where an index's columns stand among the unit's.
func (w *writing) places(x Index) (out []int) {
	for _, c := range x.Columns {
		out = append(out, slices.IndexFunc(w.unit.columns(), func(p column.Path) bool { return p.Leaf().ID == c.Leaf().ID }))
	}
	return out
}

// found is how an index's columns were found in a file.
func (w *writing) found(x Index, s *source) (out []lineage.Column) {
	for i, at := range w.places(x) {
		out = append(out, s.column(w.unit.Snapshot, x.Columns[i], at))
	}
	return out
}

func (w *writing) make(ctx context.Context, x Index, spec index.Spec, files []*source) (*making, error) {
	spec.Columns, spec.Params = x.Columns, x.Definition.Params
	b, err := w.builder(ctx, x, spec, files)
	if err != nil {
		return nil, err
	}
	m := &making{index: x, builder: b, files: files, cols: w.places(x)}
	for _, c := range x.Columns {
		h, err := newColumnHash(c)
		if err != nil {
			return nil, errors.Join(err, b.Close())
		}
		m.hashes = append(m.hashes, h)
	}
	return m, nil
}

// builder makes the artifact, or takes over others where the unit says which.
func (w *writing) builder(ctx context.Context, x Index, spec index.Spec, files []*source) (index.Builder, error) {
	budget := w.budget(len(w.unit.Indexes), w.temp)
	carried := w.unit.Carry[x.Definition.ID]
	if len(carried) == 0 {
		return x.Kind.Kind.NewBuilder(spec, budget)
	}
	return newCarrier(ctx, x, spec, budget, w.found(x, files[0]), carried)
}

// hopeless tells that nothing of the unit is done and that of nothing at hand anything can be taken over.
func (w *writing) hopeless() bool {
	if len(w.unit.Carry) == 0 || len(w.done) > 0 || w.result.Carried+len(w.result.NotCarried) > 0 {
		return false
	}
	for _, m := range slices.Concat(w.tiered, w.single) {
		if c, ok := m.builder.(*carrier); !ok || !c.failed {
			return false
		}
	}
	return len(w.tiered)+len(w.single) > 0
}

// fetched is a wave of parts.
type fetched struct {
	parts []part
	data  [][][]byte
	bad   *source
	err   error
}

// fetch starts reading the next parts, in one wave; nil when there are none.
func (w *writing) fetch(ctx context.Context, parts *[]part) <-chan fetched {
	n, bytes := 0, int64(0)
	for n < len(*parts) && n < waveParts && (n == 0 || bytes+(*parts)[n].bytes <= waveBytes) {
		bytes += (*parts)[n].bytes
		n++
	}
	if n == 0 {
		return nil
	}
	f := fetched{parts: (*parts)[:n], data: make([][][]byte, n)}
	*parts = (*parts)[n:]
	w.result.BytesRead += bytes
	out := make(chan fetched, 1)
	go func() {
		var reads []store.Read
		var who []int
		for i, p := range f.parts {
			if len(p.spans) > 0 {
				reads = append(reads, store.Read{Key: p.source.Path, Tag: p.source.opened.Tag, Spans: p.spans})
				who = append(who, i)
			}
		}
		if len(reads) > 0 {
			for i, res := range w.Store.Fetch(ctx, reads) {
				if res.Err != nil && f.err == nil {
					f.bad, f.err = f.parts[who[i]].source, fault.About(reads[i].Key, res.Err)
				}
				f.data[who[i]] = res.Data
			}
		}
		out <- f
	}()
	return out
}

// add decodes one part into every artifact that covers it.
func (w *writing) add(ctx context.Context, p part, data [][]byte) error {
	s := p.source
	if w.single == nil {
		if err := w.startFile(ctx, s); err != nil {
			return err
		}
	}
	for _, b := range data {
		s.read.Write(b)
	}
	if !p.rows.Empty() {
		err := s.binding.Decode(ctx, data, p.rows, 0, func(b *column.Batch) error {
			clear(w.derived)
			for _, m := range w.single {
				if err := w.feed(m, b); err != nil {
					return err
				}
			}
			for _, m := range w.tiered {
				if err := w.feed(m, b); err != nil {
					return err
				}
			}
			for _, m := range w.maps {
				if err := m.collector.Add(b.Cols[m.col]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if !p.last {
		return nil
	}
	for _, m := range w.single {
		if err := w.finish(m); err != nil {
			return err
		}
	}
	w.single = nil
	return nil
}

// startFile starts the artifacts that cover one file.
func (w *writing) startFile(ctx context.Context, s *source) error {
	w.single = []*making{}
	for _, x := range w.unit.Indexes {
		if x.Kind.Scope != index.PerFile {
			continue
		}
		m, err := w.make(ctx, x, w.fileSpec(s, x), []*source{s})
		if err != nil {
			return err
		}
		w.single = append(w.single, m)
	}
	for _, m := range w.maps {
		if err := m.startFile(s); err != nil {
			return err
		}
	}
	return nil
}

func (w *writing) feed(m *making, b *column.Batch) error {
	cols := make([]*column.Vector, len(m.cols))
	for i, c := range m.cols {
		v, err := w.values(b, c, m.index.Columns[i])
		if err != nil {
			return err
		}
		cols[i] = v
		if err := m.hashes[i].add(cols[i]); err != nil {
			return err
		}
	}
	return m.builder.Add(cols)
}

// values is column c of the unit in the batch at hand, or what an index's expression makes of it: once for all indexes that share it.
func (w *writing) values(b *column.Batch, c int, path column.Path) (*column.Vector, error) {
	if !path.Derived() {
		return b.Cols[c], nil
	}
	if w.derived[c] == nil {
		v, err := expression.Apply(path, b.Cols[c])
		if err != nil {
			return nil, err
		}
		w.derived[c] = v
	}
	return w.derived[c], nil
}

// finish writes an artifact into the bundle.
func (w *writing) finish(m *making) error {
	rec, cols := w.record(m)
	body, err := w.out.Begin(rec)
	if err != nil {
		return err
	}
	root, reason, err := m.builder.Finish(body)
	if err != nil {
		return err
	}
	if err := m.builder.Close(); err != nil {
		return err
	}
	if root == nil {
		w.refuse(m, reason)
		return w.out.Abandon()
	}
	if err := w.out.End(root); err != nil {
		return err
	}
	if takesOver(m.builder) {
		w.result.Carried++
	}
	w.done = append(w.done, published{m.index, m.files, cols})
	return nil
}

// refuse notes that an artifact was not worth keeping.
func (w *writing) refuse(m *making, reason string) {
	d := m.index.Definition
	if takesOver(m.builder) && reason == notCarried {
		w.result.NotCarried = append(w.result.NotCarried, Refusal{d.ID, m.index.Kind.Algorithm(), identities(m.files), reason})
		return
	}
	w.result.Declined[d.ID] = reason
	w.result.Refusals = append(w.result.Refusals, Refusal{d.ID, m.index.Kind.Algorithm(), identities(m.files), reason})
}

// takesOver tells builders that make artifacts of others.
func takesOver(b index.Builder) bool {
	switch b.(type) {
	case *carrier, *mover:
		return true
	default:
		return false
	}
}

func identities(files []*source) []overlay.Identity {
	out := make([]overlay.Identity, len(files))
	for i, s := range files {
		out[i] = overlay.Identity{Path: s.Stated, Size: s.Size, Records: int64(s.rows), Tag: s.opened.Tag}
	}
	return out
}

// record is the lineage of an artifact.
func (w *writing) record(m *making) (lineage.Record, []lineage.Column) {
	d := m.index.Definition
	rec := lineage.Record{
		FormatVersion: lineage.FormatVersion, IndexID: d.ID, IndexCategory: m.index.Kind.Category, Algorithm: m.index.Kind.Algorithm(),
		TableUUID: w.unit.Snapshot.TableUUID, Parameters: d.Params, SnapshotID: w.unit.Snapshot.ID,
		SequenceNumber: w.unit.Snapshot.Sequence, FilePath: w.unit.Bundle,
	}
	rec.Columns = w.found(m.index, m.files[0])
	for _, s := range m.files {
		f := s.lineage()
		if !w.hashed() {
			f.ColumnsSHA256 = "" // none was read
		}
		rec.Files = append(rec.Files, f)
	}
	if !w.hashed() {
		return rec, rec.Columns
	}
	for _, c := range w.unit.columns() {
		rec.ReadFieldIDs = append(rec.ReadFieldIDs, c.Base().Leaf().ID)
	}
	for _, h := range m.hashes {
		rec.BlockHashes = append(rec.BlockHashes, h.finish())
	}
	return rec, rec.Columns
}

// seal closes the bundle and says what it holds.
func (w *writing) seal() error {
	placed, err := w.out.Close()
	if err != nil {
		return err
	}
	b := overlay.Build{ID: w.unit.ID, Bundle: w.unit.Bundle, SnapshotID: w.unit.Snapshot.ID, Sequence: w.unit.Snapshot.Sequence}
	for i, p := range placed {
		a := overlay.Artifact{
			IndexID: w.done[i].index.Definition.ID, FormatVersion: lineage.FormatVersion, Columns: w.done[i].cols,
			Body: p.Body, Root: p.Root, Lineage: p.Lineage, BodySHA256: p.BodySHA256, RootInline: p.RootBytes,
		}
		a.Files = identities(w.done[i].files)
		b.Artifacts = append(b.Artifacts, a)
	}
	w.result.Build = b
	return nil
}
