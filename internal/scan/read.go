package scan

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/mask"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
)

// Reader reads plans. Its fields are set once; it is safe for concurrent use.
type Reader struct {
	Store   store.Store
	Footers *parquetio.Footers
	Workers int   // goroutines that decode; 0: one a core
	Memory  int64 // bytes of file data held at once; 0: 256 MiB
	// Masks finds deleted rows. Plans of snapshots with delete files need it.
	Masks *mask.Masker
	// KeepAll switches off skipping by Parquet statistics: every page of every row group is decoded.
	KeepAll bool
}

const (
	groupFiles    = 256     // files whose footers are read in one wave
	firstGroup    = 4       // the same at the start of a query with a limit
	unitRows      = 1 << 18 // rows that one goroutine decodes at a time, rounded to row groups
	batchRows     = 1 << 13 // rows of a decoded batch
	defaultMemory = 256 << 20
)

// run is one reading of one plan.
type run struct {
	*Reader
	plan     *Plan
	eval     *predicate.Evaluator
	project  []column.Path
	left     int64 // rows still wanted; negative: all
	counters Counters
	rows     Rows  // nil: only count
	emitted  int64 // batches handed on
	apart    bool  // some rows are deleted, and which is known without a look into data files
	mu       sync.Mutex
	stale    []string                    // files whose tag did not match in the last attempt
	mended   map[string]bool             // files that were read anew after that
	shapes   map[string]*parquetio.Shape // of layouts; nil: one makes no sense
}

// Read calls rows with the answer in the order of (file path, position), the projection's vectors parallel to project. A
// negative limit means all rows.
func (r *Reader) Read(ctx context.Context, p *Plan, project []column.Path, limit int64, rows Rows) (Counters, error) {
	if limit < 0 {
		limit = -1
	}
	x := &run{Reader: r, plan: p, eval: predicate.Compile(p.Predicate), project: project, left: limit, rows: rows}
	err := x.all(ctx)
	return x.counters, err
}

// Count counts the answer without reading what the verdicts already settle.
func (r *Reader) Count(ctx context.Context, p *Plan) (Counters, error) {
	x := &run{Reader: r, plan: p, eval: predicate.Compile(p.Predicate), left: -1}
	err := x.all(ctx)
	return x.counters, err
}

func (x *run) all(ctx context.Context) error {
	d := &x.plan.Snapshot.Deletes
	x.apart = d.Len() > 0 && !slices.Contains(d.Kind, facts.EqualityDeletes)
	size := groupFiles
	if x.left >= 0 {
		size = firstGroup
	}
	files := x.plan.Files
	for len(files) > 0 && x.left != 0 {
		n := min(size, len(files))
		if err := x.settle(ctx, files[:n]); err != nil {
			return err
		}
		files = files[n:]
		size = min(size*4, groupFiles)
	}
	return ctx.Err()
}

// settle reads one run of files, and again without index evidence and kept footers for those that turned out to be overwritten,
// as long as no row was handed on. A file that changes once more fails the query.
func (x *run) settle(ctx context.Context, files []File) error {
	for {
		left, counters, emitted := x.left, x.counters, x.emitted
		err := x.group(ctx, files)
		if err == nil || !fault.Is(err, fault.Stale) {
			return err
		}
		if fresh := x.mend(files); !fresh || x.emitted != emitted {
			return err
		}
		counters.Changed = x.counters.Changed
		x.left, x.counters = left, counters
	}
}

// mend makes the next attempt, or the next query, read overwritten files as they are now. It is false when nothing can be
// mended that was not before.
func (x *run) mend(files []File) bool {
	some := false
	for _, path := range x.stale {
		x.Footers.Forget(path)
		if x.mended[path] {
			continue
		}
		some = true
		if x.mended == nil {
			x.mended = map[string]bool{}
		}
		x.mended[path] = true
		x.counters.Changed = append(x.counters.Changed, path)
		for i := range files {
			if f := &files[i]; f.Path == path {
				f.Tag, f.Verdict, f.Indexed = "", rowset.Maybe(f.Records), false
			}
		}
	}
	x.stale = nil
	return some
}

// group reads one run of files: their footers in one wave, then units of row groups.
func (x *run) group(ctx context.Context, files []File) error {
	opened, err := x.opened(ctx, files)
	if err != nil {
		return err
	}
	before := x.counters.RowGroups
	units := allUnits(opened)
	if late := x.laidLate(units); len(late) > 0 {
		if err := x.unlay(ctx, late); err != nil {
			return err
		}
		if err := x.narrow(ctx, late); err != nil {
			return err
		}
		x.counters.RowGroups = before
		units = allUnits(opened)
	}
	for len(units) > 0 && x.left != 0 {
		n := x.together(units)
		if err := x.units(ctx, units[:n]); err != nil {
			return err
		}
		for i := range n {
			units[i] = nil
		}
		units = units[n:]
	}
	return nil
}

func allUnits(files []*file) (out []*unit) {
	for _, f := range files {
		out = append(out, f.units()...)
	}
	return out
}

// together is how many of the units are held at once.
func (x *run) together(units []*unit) (n int) {
	for bytes := int64(0); n < len(units) && (n == 0 || bytes+units[n].bytes <= x.memory()/2); n++ {
		bytes += units[n].bytes
	}
	return n
}

// countSettled counts the files whose verdict leaves no doubt and returns the others.
func (x *run) countSettled(files []File, masks []*mask.Mask) ([]File, []*mask.Mask) {
	rest, restMasks := files[:0:0], masks[:0:0]
	for i, f := range files {
		if f.Verdict.Exact() && masks[i].Fits(f.Records) {
			x.counters.Rows += hide(f.Verdict, masks[i]).Must.Count()
			continue
		}
		rest, restMasks = append(rest, f), append(restMasks, masks[i])
	}
	return rest, restMasks
}

// units answers a run of units: recheck, then project.
func (x *run) units(ctx context.Context, units []*unit) error {
	if err := x.ahead(ctx, units); err != nil {
		return err
	}
	if err := x.fetch(ctx, units, (*unit).recheckSpans); err != nil {
		return err
	}
	if err := x.parallel(ctx, len(units), func(ctx context.Context, i int) error { return units[i].recheck(ctx) }); err != nil {
		return err
	}
	for _, u := range units {
		n := u.answer.Count()
		if x.left >= 0 && n > x.left {
			u.answer = firstRows(u.answer, x.left)
			n = x.left
		}
		if x.left >= 0 {
			x.left -= n
		}
		x.counters.Rows += n
	}
	if x.rows == nil {
		return nil
	}
	if err := x.fetch(ctx, units, (*unit).projectSpans); err != nil {
		return err
	}
	return x.emit(ctx, units)
}

// firstRows is the first n rows of a set.
func firstRows(s *rowset.Set, n int64) *rowset.Set {
	var out []rowset.Range
	for _, r := range s.Ranges() {
		if n == 0 {
			break
		}
		r.End = min(r.End, r.Start+uint32(min(n, int64(r.Len()))))
		n -= int64(r.Len())
		out = append(out, r)
	}
	return rowset.FromRanges(s.Size(), out)
}

// fetch brings what every unit says it needs, in one wave.
func (x *run) fetch(ctx context.Context, units []*unit, need func(*unit) []store.Span) error {
	var reads []store.Read
	var who []*unit
	for _, u := range units {
		u.spans = need(u)
		x.counters.Pages += len(u.spans)
		if missing := u.held.Missing(u.spans); len(missing) > 0 {
			reads = append(reads, store.Read{Key: u.file.path, Tag: u.file.tag, Spans: missing})
			who = append(who, u)
		}
	}
	if len(reads) == 0 {
		return nil
	}
	return cmp.Or(x.read(ctx, reads, func(i int) *parquetio.Held { return &who[i].held }), ctx.Err())
}

// read fetches from data files and puts the bytes where held says. All results are looked at, so that every overwritten file
// is known.
func (x *run) read(ctx context.Context, reads []store.Read, held func(i int) *parquetio.Held) (err error) {
	for i, res := range x.Store.Fetch(ctx, reads) {
		if res.Err != nil {
			err = cmp.Or(err, x.readError(reads[i].Key, res.Err))
			continue
		}
		for k, s := range reads[i].Spans {
			held(i).Add(s.Off, res.Data[k])
		}
	}
	return err
}

// readError tells that a file changed between its footer and its pages in words a user can act on, and remembers it.
func (x *run) readError(path string, err error) error {
	if fault.Is(err, fault.Stale) {
		x.mu.Lock()
		x.stale = append(x.stale, path)
		x.mu.Unlock()
		return fault.New(fault.Stale, path, "the data file was overwritten while it was read").
			WithFix("run the query again").WithRetry().WithCause(err)
	}
	return fault.About(path, err)
}

func (x *run) memory() int64 {
	if x.Memory > 0 {
		return x.Memory
	}
	return defaultMemory
}

func (x *run) workers() int {
	if x.Workers > 0 {
		return x.Workers
	}
	return runtime.GOMAXPROCS(0)
}

func (x *run) parallel(ctx context.Context, n int, work func(context.Context, int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(x.workers())
	for i := range n {
		g.Go(func() error { return work(ctx, i) })
	}
	return g.Wait()
}
