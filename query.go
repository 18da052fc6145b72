package skomer

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/predicate/icebergjson"
	"github.com/skomerdb/skomer/internal/predicate/sqltext"
	"github.com/skomerdb/skomer/internal/scan"
	"github.com/skomerdb/skomer/internal/store"
)

// The columns that every table has beside its own.
const (
	fileColumn = "_file"
	posColumn  = "_pos"
)

// Rows is the answer to a query, planned and not yet read.
type Rows struct {
	table   *Table
	query   Query
	plan    *scan.Plan
	names   []string      // of the answer's columns
	types   []column.Type // parallel
	project []column.Path
	slots   []int // per answer column its place in project, or fileSlot, posSlot
	usage   store.Counter
	stats   Stats
	version *overlay.Version
	// overlayLost is why the overlay could not be read at all.
	overlayLost error
	start       time.Time
	data        store.Store
}

const (
	fileSlot = -1
	posSlot  = -2
)

// Query plans a filter query. Reading the rows is left to Each, Batches or Count.
func (t *Table) Query(ctx context.Context, q Query) (*Rows, error) {
	r := &Rows{table: t, query: q, start: time.Now()}
	if q.Limit == 0 {
		return nil, fault.New(fault.Invalid, "limit", "is 0").WithFix("ask for 1 row or more, or pass a negative limit for all")
	}
	ctx = store.WithCounter(ctx, &r.usage)
	if err := r.prepare(ctx, false); err != nil {
		return nil, err
	}
	return r, nil
}

// prepare binds and plans.
func (r *Rows) prepare(ctx context.Context, explain bool) error {
	t := r.table
	s, err := t.snapshot(ctx, r.query.At)
	if err != nil {
		return err
	}
	tree, err := bind(r.query, s.Schema)
	if err != nil {
		return err
	}
	if err := r.columns(s.Schema); err != nil {
		return err
	}
	if err := r.lookUpOverlay(ctx); err != nil {
		return err
	}
	if r.data, err = t.dataStore(); err != nil {
		return err
	}
	c := t.client.config
	r.plan, err = r.planner().Plan(ctx, s, tree, r.version, scan.Options{
		NoIndex: r.query.NoIndex, NoPrune: r.query.NoPrune, Strict: r.query.Strict, Explain: explain,
		MinBytes: c.MinPlannedScanBytes, MinFiles: c.MinPlannedFiles,
	})
	return err
}

func (r *Rows) planner() *scan.Planner {
	return &scan.Planner{Data: r.data, Overlay: r.table.overlayStore, Readers: r.table.client.readers}
}

// lookUpOverlay finds the overlay's version. An overlay that cannot be read is no index, not a failed query.
func (r *Rows) lookUpOverlay(ctx context.Context) (err error) {
	if r.query.NoIndex || r.query.NoPrune {
		return nil
	}
	r.version, err = r.table.current(ctx)
	if err != nil && (ctx.Err() != nil || fault.Is(err, fault.Exhausted)) {
		return err
	}
	if err == nil && r.version != nil {
		err = r.version.Broken()
	}
	r.overlayLost = err
	return nil
}

func bind(q Query, s *column.Schema) (*predicate.Tree, error) {
	switch {
	case q.Where != "" && q.Filter != nil:
		return nil, fault.New(fault.Invalid, "query", "has both a SQL and a JSON filter").WithFix("pass one of them")
	case q.Filter != nil:
		return icebergjson.Parse(q.Filter, s, true)
	case strings.TrimSpace(q.Where) != "":
		return sqltext.Parse(q.Where, s)
	default:
		return &predicate.Tree{Kind: predicate.True}, nil
	}
}

// columns resolves the answer's columns. A table's own column named _file or _pos hides the virtual one.
func (r *Rows) columns(s *column.Schema) error {
	own, err := scan.Columns(s, ownColumns(s, r.query.Select))
	if err != nil {
		return err
	}
	if len(r.query.Select) == 0 {
		for i, p := range own {
			r.add(p.Name(), p.Leaf().Type, i)
		}
		r.project = own
		return nil
	}
	next := 0
	for _, n := range r.query.Select {
		switch {
		case virtual(s, n) && n == fileColumn:
			r.add(n, column.Of(column.String), fileSlot)
		case virtual(s, n):
			r.add(n, column.Of(column.Long), posSlot)
		default:
			r.add(own[next].Name(), own[next].Leaf().Type, len(r.project))
			r.project = append(r.project, own[next])
			next++
		}
	}
	return nil
}

func (r *Rows) add(name string, t column.Type, slot int) {
	r.names, r.types, r.slots = append(r.names, name), append(r.types, t), append(r.slots, slot)
}

func virtual(s *column.Schema, name string) bool {
	if name != fileColumn && name != posColumn {
		return false
	}
	path, _ := s.ByName(name)
	return path == nil
}

func ownColumns(s *column.Schema, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return virtual(s, n) })
}

// Columns is the names and types of the answer's columns.
func (r *Rows) Columns() ([]string, []Type) { return r.names, r.types }

// Each reads the answer in the order of (file path, position). A batch is valid until visit returns.
func (r *Rows) Each(ctx context.Context, visit func(*Batch) error) error {
	ctx = store.WithCounter(ctx, &r.usage)
	project := r.project
	counters, err := r.reader().Read(ctx, r.plan, project, r.query.Limit, func(f *scan.File, b *column.Batch) error {
		return visit(r.shape(f, b))
	})
	r.finish(counters)
	return err
}

// Batches is Each as an iterator; an error ends it.
func (r *Rows) Batches(ctx context.Context) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		err := r.Each(ctx, func(b *Batch) error {
			if !yield(b, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

var errStopped = errors.New("the caller stopped")

// Count counts the answer without reading what evidence settles. A limit caps it.
func (r *Rows) Count(ctx context.Context) (int64, error) {
	ctx = store.WithCounter(ctx, &r.usage)
	counters, err := r.reader().Count(ctx, r.plan)
	if r.query.Limit > 0 {
		counters.Rows = min(counters.Rows, r.query.Limit)
	}
	r.finish(counters)
	return counters.Rows, err
}

func (r *Rows) reader() *scan.Reader {
	c := r.table.client
	return &scan.Reader{
		Store: r.data, Footers: c.footers, Workers: c.config.Workers, Memory: c.config.Memory / 4, KeepAll: r.query.NoPrune,
		Masks: r.masker(),
	}
}

// shape puts the answer's columns in the asked order and adds the virtual ones.
func (r *Rows) shape(f *scan.File, b *column.Batch) *Batch {
	out := &Batch{Start: b.Start, Pos: b.Pos, Rows: b.Rows, Cols: make([]*Vector, len(r.slots))}
	for i, slot := range r.slots {
		switch slot {
		case fileSlot:
			path := column.StringValue(r.plan.Snapshot.Files.Stated[f.Ordinal])
			out.Cols[i] = column.Constant(column.Of(column.String), &path, b.Rows)
		case posSlot:
			at := make([]int64, b.Rows)
			for k := range at {
				at[k] = int64(b.Position(k))
			}
			out.Cols[i] = &Vector{Type: column.Of(column.Long), Len: b.Rows, Fixed: column.BytesOf(at)}
		default:
			out.Cols[i] = b.Cols[slot]
		}
	}
	return out
}

// Stats is what the answer has cost so far.
func (r *Rows) Stats() Stats {
	s := r.stats
	rep := &r.plan.Report
	u := r.usage.Usage()
	s.FilesTotal, s.Requests, s.Bytes, s.Waves = rep.Total, u.Requests(), u.BytesRead, u.Waves
	s.IndexesUsed, s.IndexesMissing = r.exprs(rep.Used), r.exprs(rep.Missing)
	s.Rejected = map[string]int64{}
	for _, x := range rep.Rejected {
		s.Rejected[x.Reason]++
	}
	if r.overlayLost != nil {
		s.Rejected["overlay_unreadable"] = 1
	}
	s.SnapshotID = r.plan.Snapshot.ID
	if r.version != nil {
		s.OverlayVersion = r.version.Number()
	}
	if s.Seconds == 0 {
		s.Seconds = time.Since(r.start).Seconds()
	}
	return s
}

func (r *Rows) finish(c scan.Counters) {
	r.stats.FilesOpened += c.FilesOpened
	r.stats.RowGroups += c.RowGroups
	r.stats.Pages += c.Pages
	r.stats.Rows += c.Rows
	r.stats.DeleteFiles += c.DeleteFiles
	for _, w := range c.Warnings {
		if !slices.Contains(r.stats.Warnings, w) {
			r.stats.Warnings = append(r.stats.Warnings, w)
		}
	}
	r.stats.Seconds = time.Since(r.start).Seconds()
	for _, path := range c.Changed {
		r.plan.Report.Rejected = append(r.plan.Report.Rejected, scan.Rejection{
			File: path, Reason: "tag_mismatch", Detail: "the data file was overwritten since it was indexed",
		})
	}
}

// exprs names indexes by their declarations.
func (r *Rows) exprs(ids []string) []string {
	out := make([]string, 0, len(ids))
	for _, id := range ids {
		if d, ok := r.version.Index(id); ok {
			out = append(out, exprOf(d))
		}
	}
	return out
}
