package mask

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
)

// batchRows is the rows of a decoded batch.
const batchRows = 1 << 13

// reading is some rows of some columns of a Parquet file. visit is called from one goroutine.
type reading struct {
	path    string
	tag     store.Tag
	binding *parquetio.Binding
	held    parquetio.Held
	rows    *rowset.Set // nil: all
	visit   func(*column.Batch) error
	again   func() // forget what visit has seen: the rows come once more
	spans   []store.Span
	bytes   int64
}

// read decodes readings, in one wave for as many as memory holds. changed names the file of a Stale error.
func (m *Masker) read(ctx context.Context, all []*reading) (changed string, err error) {
	for len(all) > 0 {
		n, bytes := 0, int64(0)
		for n < len(all) {
			all[n].plan()
			if n > 0 && bytes+all[n].bytes > m.memory() {
				break
			}
			bytes += all[n].bytes
			n++
		}
		if changed, err = m.readRun(ctx, all[:n]); err != nil {
			return changed, err
		}
		for _, r := range all[:n] {
			r.held = parquetio.Held{}
		}
		all = all[n:]
	}
	return "", nil
}

func (r *reading) plan() {
	r.spans, r.bytes = r.binding.Spans(r.rows), 0
	for _, s := range r.spans {
		r.bytes += s.Len
	}
}

func (m *Masker) readRun(ctx context.Context, run []*reading) (changed string, err error) {
	if changed, err = m.fetch(ctx, run); err != nil {
		return changed, err
	}
	wrong := make([]bool, len(run))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(m.workers())
	for i, r := range run {
		g.Go(func() error {
			err := r.decode(gctx)
			if wrong[i] = parquetio.PageIndexWrong(err); wrong[i] {
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return "", err
	}
	for i, r := range run {
		if !wrong[i] {
			continue
		}
		r.binding.DropPageIndex()
		r.again()
		r.plan()
		if changed, err = m.fetch(ctx, run[i:i+1]); err != nil {
			return changed, err
		}
		if err := r.decode(ctx); err != nil {
			return "", err
		}
	}
	return "", nil
}

func (r *reading) decode(ctx context.Context) error {
	data, ok := r.held.All(r.spans)
	if !ok {
		return fault.New(fault.Corrupt, r.path, "bytes of its keys were not fetched")
	}
	return r.binding.Decode(ctx, data, r.rows, batchRows, r.visit)
}

// fetch brings what the readings lack, in one wave.
func (m *Masker) fetch(ctx context.Context, run []*reading) (changed string, err error) {
	var reads []store.Read
	var who []*reading
	for _, r := range run {
		if missing := r.held.Missing(r.spans); len(missing) > 0 {
			reads = append(reads, store.Read{Key: r.path, Tag: r.tag, Spans: missing})
			who = append(who, r)
		}
	}
	if len(reads) == 0 {
		return "", ctx.Err()
	}
	results := m.Store.Fetch(ctx, reads)
	for i, res := range results {
		if fault.Is(res.Err, fault.Stale) {
			m.Footers.Forget(who[i].path)
		}
	}
	for i, res := range results {
		if fault.Is(res.Err, fault.Stale) {
			return who[i].path, fault.New(fault.Stale, who[i].path, "was overwritten while it was read").
				WithFix("run the query again").WithRetry().WithCause(res.Err)
		}
		if res.Err != nil {
			return "", fault.About(who[i].path, res.Err)
		}
		for k, s := range reads[i].Spans {
			who[i].held.Add(s.Off, res.Data[k])
		}
	}
	return "", ctx.Err()
}

// settled reads delete files, and once more where some were overwritten meanwhile: their footers are forgotten by then.
func settled(read func() error) error {
	err := read()
	if fault.Is(err, fault.Stale) {
		err = read()
	}
	return err
}
