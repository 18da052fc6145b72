package scan

import (
	"context"
	"slices"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/wave"
)

// A file that a file map left few rows of is read by the layout that the map has of it: its pages are fetched a round trip earlier, and
// without 64 KiB of its tail. What binds a layout to the file is what binds all that the map says: its checksum, the size and the rows of
// the manifest, and the entity tag that the map saw, which every read sends. Strict queries take none. What does not look like the pages
// that the layout tells of makes the footer count.

// laidBytes is the most that is read by a layout: the statistics of a footer may rule out more than they cost of what is longer.
const laidBytes = 1 << 20

// maxShapes is the most shapes of layouts that a query keeps: each may take 5 MiB. Files of others are read by their footers.
const maxShapes = 16

// mayBytes is about what the rows take that may match.
func (f *File) mayBytes() int64 {
	return f.Size / max(int64(f.Records), 1) * f.Verdict.May.Count()
}

// laidOut reports whether the file has a layout and so few rows are left that it is read by it.
func (f *File) laidOut() bool { return len(f.layout.Places) > 0 && f.mayBytes() <= laidBytes }

// askLayouts looks up the layouts that the runs of one leaf have: those of others are the same.
func (e *evidence) askLayouts(tasks []*wave.Task) []*wave.Task {
	if e.options.Strict {
		return tasks
	}
	var first *mapped
	e.plan.Predicate.Leaves(func(l *predicate.Leaf) {
		if first == nil {
			first = e.mapped[l]
		}
	})
	if first == nil {
		return tasks
	}
	e.layouts = map[*wave.ListedRun]*wave.Layouts{}
	for _, r := range first.Runs {
		e.layouts[r] = e.Maps.Runs.Layouts(e.Prefix, r)
		tasks = e.layouts[r].AppendTask(tasks)
	}
	return tasks
}

// lostLayouts reports those that could not be read.
func (e *evidence) lostLayouts() {
	for r, l := range e.layouts {
		if err := l.Err(); err != nil {
			e.plan.Report.Rejected = append(e.plan.Report.Rejected, Rejection{
				Index: r.Index, Bundle: r.Key, Reason: fault.ClassOf(err).String(), Detail: err.Error(),
			})
		}
	}
}

// byLayout opens a file by its layout; nil where the footer is to be read, or is in memory, which knows more.
func (x *run) byLayout(f *File) *parquetio.Opened {
	if !f.laidOut() || f.Tag == "" || f.Tag != f.mapTag || x.KeepAll || x.Footers.Has(f.Path, f.Tag) {
		return nil
	}
	shape, known := x.shapes[string(f.layout.Shape)]
	if !known {
		if len(x.shapes) == maxShapes {
			return nil
		}
		var err error
		if shape, err = parquetio.ParseShape(f.layout.Shape); err != nil {
			shape = nil
		}
		if x.shapes == nil {
			x.shapes = map[string]*parquetio.Shape{}
		}
		x.shapes[string(f.layout.Shape)] = shape
	}
	if shape == nil {
		return nil
	}
	pf, err := shape.File(f.Path, f.Tag, f.Size, int64(f.Records), f.layout.Places)
	if err != nil {
		return nil
	}
	return &parquetio.Opened{File: pf, Tag: f.Tag, Size: f.Size}
}

// laidLate is the files that are to be read by their layouts once rows were handed on. Nothing was read of them until then: one that was
// overwritten would fail the query, and the next one alike, where its footer tells before.
func (x *run) laidLate(units []*unit) (out []*file) {
	if x.rows == nil {
		return nil
	}
	for _, u := range units[x.together(units):] {
		if u.file.laid && !slices.Contains(out, u.file) {
			out = append(out, u.file)
		}
	}
	return out
}

// laidSize is the bytes of the pages that a unit of a laid out file may take.
func (u *unit) laidSize() (n int64) {
	for _, part := range []struct {
		of   *parquetio.Binding
		rows *rowset.Set
	}{{u.file.check, u.unsure()}, {u.file.project, u.may}} {
		if part.of == nil || part.rows.Empty() {
			continue
		}
		for _, s := range part.of.Spans(rowset.Bridge(part.rows, bridgedGap)) {
			n += s.Len
		}
	}
	return n
}

// misplaced reports whether an error of decoding may come from a layout that is not that of the file.
func misplaced(err error) bool {
	return fault.Is(err, fault.Corrupt) || fault.Is(err, fault.Unsupported) || fault.Is(err, fault.Exhausted)
}

// footer reads that of a file whose layout is not true.
func (f *file) footer(ctx context.Context) (*parquetio.File, error) {
	opened, errs := parquetio.Open(ctx, f.run.Store, f.run.Footers, []string{f.path}, []store.Tag{f.tag})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if errs[0] != nil {
		return nil, f.run.readError(f.path, errs[0])
	}
	if rows := opened[0].File.Rows(); rows != int64(f.verdict.May.Size()) {
		return nil, f.run.readError(f.path, fault.New(fault.Stale, f.path, "has %d rows by its footer and %d by the file map", rows, f.verdict.May.Size()))
	}
	return opened[0].File, nil
}

// again decodes rows by another binding of the file, whose bytes are fetched.
func (u *unit) again(ctx context.Context, b *parquetio.Binding, rows *rowset.Set, take func(*column.Batch) error) error {
	u.spans = b.Spans(rows)
	if missing := u.held.Missing(u.spans); len(missing) > 0 {
		reads := []store.Read{{Key: u.file.path, Tag: u.file.tag, Spans: missing}}
		if err := u.file.run.read(ctx, reads, func(int) *parquetio.Held { return &u.held }); err != nil {
			return err
		}
	}
	data, ok := u.held.All(u.spans)
	if !ok {
		return fault.New(fault.Corrupt, u.file.path, "the bytes to decode were not fetched")
	}
	return b.Decode(ctx, data, rows, batchRows, take)
}
