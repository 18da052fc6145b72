package advise

import (
	"context"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/sketch"
	"github.com/skomerdb/skomer/internal/maintain"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/store"
)

// Source is where a column's numbers come from.
type Source string

// The sources.
const (
	FromSketch    Source = "sketch"
	FromManifests Source = "manifests"
	FromNothing   Source = "unknown"
)

// Column is what is known of one column. Counts are of physical rows, deleted ones included.
type Column struct {
	Path   column.Path
	Source Source
	// Rows is the rows that the counts and the sketch cover.
	Rows int64
	// Nulls and NaNs are facts.Unknown where not every file states them.
	Nulls, NaNs int64
	// Sketch is nil where there is none.
	Sketch *sketch.Summary
	// Min and Max are keys; nil: unknown. Those of manifests may be cut: Min may be less than the least value and Max greater.
	Min, Max []byte
	// Files and Groups are how well bounds separate values, over the data files and over the row groups of a few of them.
	Files, Groups plan.Overlap
}

// Table is the statistics of a snapshot.
type Table struct {
	Snapshot    *facts.Snapshot
	Rows, Bytes int64 // physical
	Columns     []Column
	// SampledFiles is how many footers were read for Groups.
	SampledFiles int
}

// Reader gathers statistics. Its fields are set once.
type Reader struct {
	Data    store.Store
	Footers *parquetio.Footers
}

// sampledFiles bounds the footers that are read to see row groups.
const sampledFiles = 16

// Statistics gathers what is known of every column that can be indexed. v may be nil.
func (r *Reader) Statistics(ctx context.Context, s *facts.Snapshot, v *overlay.Version) (*Table, error) {
	t := &Table{Snapshot: s}
	for i := range s.Files.Len() {
		t.Rows += s.Files.Records[i]
		t.Bytes += s.Files.Size[i]
	}
	known := map[int]*sketch.Summary{}
	if v != nil {
		known = maintain.Known(v)
	}
	var paths []column.Path
	s.Schema.Walk(func(p column.Path) bool {
		if _, err := index.EncodingOf(p.Leaf().Type); err == nil && (!p.Repeated() || index.OfList(p)) {
			paths = append(paths, append(column.Path(nil), p...))
		}
		return true
	})
	groups, err := r.groupBounds(ctx, t, paths)
	if err != nil {
		return nil, err
	}
	for i, p := range paths {
		t.Columns = append(t.Columns, t.column(p, known[p.Leaf().ID], groups[i]))
	}
	return t, nil
}

// column describes one column.
func (t *Table) column(p column.Path, known *sketch.Summary, groups []plan.Bound) Column {
	c := Column{Path: p, Source: FromNothing, Nulls: facts.Unknown, NaNs: facts.Unknown}
	bounds := plan.FileBounds(t.Snapshot, predicate.Column{Path: p})
	var points [][]byte
	if known != nil && known.Encoding().Widens(p.Leaf().Type) {
		c.Source, c.Sketch, c.Rows, c.Nulls, c.NaNs = FromSketch, known, known.Rows, known.Nulls, known.NaNs
		c.Min, c.Max, points = known.At(0), known.At(1), known.Quantiles
	} else {
		c.fromManifests(t, bounds)
	}
	c.Files, c.Groups = plan.OverlapOf(bounds, points), plan.OverlapOf(groups, points)
	return c
}

// fromManifests sums up what files state.
func (c *Column) fromManifests(t *Table, bounds []plan.Bound) {
	f := t.Snapshot.Files.Columns[c.Path.Leaf().ID]
	if !c.Path.Repeated() && f != nil {
		c.Nulls, c.NaNs = sum(f.Nulls, len(bounds)), sum(f.NaNs, len(bounds))
	}
	whole := len(bounds) > 0
	for i := range bounds {
		b := &bounds[i]
		if b.Empty {
			continue
		}
		if b.Low == nil {
			whole = false
			break
		}
		if c.Min == nil || string(b.Low) < string(c.Min) {
			c.Min = b.Low
		}
		if c.Max == nil || string(b.High) > string(c.Max) {
			c.Max = b.High
		}
	}
	if !whole {
		c.Min, c.Max = nil, nil
	}
	if c.Nulls != facts.Unknown || c.Min != nil {
		c.Source, c.Rows = FromManifests, t.Rows
	}
}

// sum is the sum of counts, unknown where one of n is.
func sum(counts []int64, n int) int64 {
	if len(counts) != n {
		return facts.Unknown
	}
	total := int64(0)
	for _, x := range counts {
		if x < 0 {
			return facts.Unknown
		}
		total += x
	}
	return total
}

// groupBounds reads the footers of a few Parquet files, spread over the snapshot, and returns per path what their row groups state.
func (r *Reader) groupBounds(ctx context.Context, t *Table, paths []column.Path) ([][]plan.Bound, error) {
	out := make([][]plan.Bound, len(paths))
	files := spread(&t.Snapshot.Files, sampledFiles)
	keys := make([]string, len(files))
	for i, at := range files {
		keys[i] = t.Snapshot.Files.Path[at]
	}
	opened, errs := parquetio.Open(ctx, r.Data, r.Footers, keys, make([]store.Tag, len(keys)))
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for k, at := range files {
		if errs[k] != nil {
			continue
		}
		t.SampledFiles++
		for i, p := range paths {
			out[i] = append(out[i], boundsOf(t.Snapshot, at, opened[k].File, p)...)
		}
	}
	return out, nil
}

func boundsOf(s *facts.Snapshot, at int, f *parquetio.File, p column.Path) (out []plan.Bound) {
	if p.Repeated() {
		return nil
	}
	b, err := f.Bind(s.In(at, []column.Path{p}), s.NameMapping)
	if err != nil {
		return nil
	}
	for _, g := range b.Statistics(0).Groups {
		x := plan.Bound{Rows: int64(g.Rows.Len()), Empty: g.Nulls == int64(g.Rows.Len())}
		if g.Min != nil && g.Max != nil {
			x.Low, x.High = column.AppendKey([]byte{}, *g.Min), column.AppendKey([]byte{}, *g.Max)
		}
		out = append(out, x)
	}
	return out
}

// spread picks at most n Parquet files at equal distances.
func spread(f *facts.Files, n int) []int {
	var all []int
	for i := range f.Len() {
		if f.Format[i] == facts.Parquet && !f.Encrypted[i] && f.Records[i] > 0 {
			all = append(all, i)
		}
	}
	if len(all) <= n {
		return all
	}
	out := make([]int, n)
	for i := range out {
		out[i] = all[i*len(all)/n]
	}
	return out
}
