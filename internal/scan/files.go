package scan

import (
	"cmp"
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/mask"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
)

// opened finds the deleted rows of files and opens those that have to be read: both at once where that takes no look into data files
// for the former and no file is settled by them.
func (x *run) opened(ctx context.Context, files []File) (out []*file, err error) {
	var masks []*mask.Mask
	if x.rows != nil && x.apart {
		g, gctx := errgroup.WithContext(ctx)
		g.Go(func() (err error) { masks, err = x.deleted(gctx, files); return err })
		g.Go(func() (err error) { out, err = x.open(gctx, files); return err })
		err = g.Wait()
	} else {
		if masks, err = x.deleted(ctx, files); err != nil {
			return nil, err
		}
		if x.rows == nil && !x.KeepAll {
			files, masks = x.countSettled(files, masks)
		}
		out, err = x.open(ctx, files)
	}
	if err != nil {
		return nil, err
	}
	for i, f := range out {
		f.mask = masks[i]
	}
	return out, x.bindAll(ctx, out)
}

// open reads the footers of Parquet files that are not read by their layouts. A file that changed since it was indexed, or since its footer was
// kept, is opened once more without evidence.
func (x *run) open(ctx context.Context, files []File) ([]*file, error) {
	out := make([]*file, len(files))
	var parquet []*file
	for i := range files {
		f := &files[i]
		if err := x.readable(f); err != nil {
			return nil, err
		}
		out[i] = &file{run: x, plan: f, path: f.Path, tag: f.Tag, verdict: f.Verdict}
		if out[i].avro() {
			x.counters.FilesOpened++
			continue
		}
		if o := x.byLayout(f); o != nil {
			out[i].opened, out[i].laid = o, true
			x.counters.FilesOpened++
			continue
		}
		parquet = append(parquet, out[i])
	}
	return out, x.footers(ctx, parquet)
}

// bindAll hides deleted rows, binds the columns of Parquet files and narrows their verdicts by Parquet statistics.
func (x *run) bindAll(ctx context.Context, all []*file) error {
	var files, misfits []*file
	for _, f := range all {
		if f.avro() {
			f.verdict = hide(f.verdict, f.mask)
			continue
		}
		switch err := f.bind(); {
		case err != nil && f.laid:
			misfits = append(misfits, f)
		case err != nil:
			return fault.About(f.path, err)
		}
		files = append(files, f)
	}
	if err := x.unlay(ctx, misfits); err != nil {
		return err
	}
	return x.narrow(ctx, files)
}

// narrow narrows the verdicts of bound files by their statistics.
func (x *run) narrow(ctx context.Context, files []*file) error {
	if err := x.pageIndexes(ctx, files); err != nil {
		return err
	}
	if !x.KeepAll {
		for _, f := range files {
			f.narrow()
		}
	}
	return nil
}

// unlay binds files by their footers that were to be read by their layouts.
func (x *run) unlay(ctx context.Context, files []*file) error {
	x.counters.FilesOpened -= len(files)
	if err := x.footers(ctx, files); err != nil {
		return err
	}
	for _, f := range files {
		f.laid, f.check = false, nil
		if err := f.bind(); err != nil {
			return fault.About(f.path, err)
		}
	}
	return nil
}

// readable refuses the forms of data files that no build reads.
func (x *run) readable(f *File) error {
	fs := &x.plan.Snapshot.Files
	switch {
	case fs.Format[f.Ordinal] == facts.ORC:
		return fault.New(fault.Unsupported, f.Path, "is an ORC file").WithFix("Skomer reads Parquet data files; rewrite the file as Parquet")
	case fs.Format[f.Ordinal] == facts.Puffin:
		return fault.New(fault.Corrupt, f.Path, "is a data file in the format of deletion vectors")
	case fs.Encrypted[f.Ordinal]:
		return fault.New(fault.Unsupported, f.Path, "is encrypted: its manifest entry carries key metadata").
			WithFix("read the table with an engine that holds the keys")
	}
	return nil
}

// footers opens the files in one or two waves, and those whose tag no longer matches once more.
func (x *run) footers(ctx context.Context, files []*file) error {
	ask := files
	for round := 0; len(ask) > 0; round++ {
		paths, tags := make([]string, len(ask)), make([]store.Tag, len(ask))
		for i, f := range ask {
			paths[i], tags[i] = f.path, f.tag
		}
		opened, errs := parquetio.Open(ctx, x.Store, x.Footers, paths, tags)
		if err := ctx.Err(); err != nil {
			return err
		}
		var again []*file
		var failed error
		for i, f := range ask {
			switch {
			case errs[i] == nil:
				f.opened, f.tag = opened[i], opened[i].Tag
				x.counters.FilesOpened++
			case fault.Is(errs[i], fault.Stale) && f.tag != "" && round == 0:
				x.Footers.Forget(f.path)
				f.tag, f.verdict = "", rowset.Maybe(f.plan.Records)
				x.counters.Changed = append(x.counters.Changed, f.path)
				again = append(again, f)
			default:
				failed = cmp.Or(failed, x.readError(f.path, errs[i]))
			}
		}
		if failed != nil {
			return failed
		}
		ask = again
	}
	return nil
}

// bind finds the columns in the file and hides deleted rows. A footer that counts other rows than the manifest voids the verdict.
func (f *file) bind() error {
	pf := f.opened.File
	if pf.Rows() != int64(f.verdict.May.Size()) {
		f.verdict = rowset.Maybe(uint32(pf.Rows()))
	}
	f.verdict = hide(f.verdict, f.mask)
	s := f.run.plan.Snapshot
	var err error
	if !f.verdict.Exact() {
		if f.check, err = pf.Bind(s.In(f.plan.Ordinal, f.run.eval.Reads()), s.NameMapping); err != nil {
			return err
		}
	}
	if f.run.rows != nil {
		f.project, err = pf.Bind(s.In(f.plan.Ordinal, f.run.project), s.NameMapping)
	}
	return err
}

// pageIndexes loads, in one wave, the page indexes that help: of the predicate's columns where rows are unsure, of the
// projection where only some rows will be read.
func (x *run) pageIndexes(ctx context.Context, files []*file) error {
	if x.KeepAll {
		return nil
	}
	var reads []store.Read
	var who []*file
	for _, f := range files {
		var spans []store.Span
		for _, b := range f.indexed() {
			spans = append(spans, b.PageIndexSpans(f.verdict.May)...)
		}
		if missing := f.opened.Tail.Missing(spans); len(missing) > 0 {
			reads = append(reads, store.Read{Key: f.path, Tag: f.tag, Spans: missing})
			who = append(who, f)
		}
	}
	if len(reads) > 0 {
		if err := x.read(ctx, reads, func(i int) *parquetio.Held { return &who[i].opened.Tail }); err != nil {
			return err
		}
	}
	for _, f := range files {
		for _, b := range f.indexed() {
			data, ok := f.opened.Tail.All(b.PageIndexSpans(f.verdict.May))
			if !ok {
				continue
			}
			if err := b.LoadPageIndex(f.verdict.May, data); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// indexed is the bindings whose page indexes help.
func (f *file) indexed() []*parquetio.Binding {
	var out []*parquetio.Binding
	if f.check != nil {
		out = append(out, f.check)
	}
	if f.project != nil && !f.verdict.Must.Full() {
		out = append(out, f.project)
	}
	return out
}

// Columns is the paths of the projection, for callers that add columns of their own.
func Columns(s *column.Schema, names []string) ([]column.Path, error) {
	var out []column.Path
	for _, n := range names {
		path, several := s.ByName(n)
		switch {
		case len(several) > 1:
			return nil, fault.New(fault.Invalid, n, "is ambiguous: %v", several).WithFix("write the name exactly")
		case path == nil:
			return nil, fault.New(fault.Invalid, n, "is not a column of the table").WithFix("see the columns with: skomer describe TABLE")
		}
		out = append(out, path)
	}
	if len(names) == 0 {
		for _, f := range s.Fields {
			out = append(out, column.Path{f})
		}
	}
	return out, nil
}
