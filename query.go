package skomer

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/build"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/maintain"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/predicate/icebergjson"
	"github.com/skomerdb/skomer/internal/predicate/sqltext"
	"github.com/skomerdb/skomer/internal/scan"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/trace"
)

// Rows is the answer to a query, planned and not yet read.
type Rows struct {
	table   *Table
	query   Query
	plan    *scan.Plan
	names   []string      // of the answer's columns
	types   []column.Type // parallel
	project []column.Path
	slots   []slot // parallel
	usage   store.Counter
	stats   Stats
	version *overlay.Version
	// overlayLost is why the overlay could not be read at all.
	overlayLost error
	start       time.Time
	counting    bool       // the rows are counted, not read
	trace       *trace.Log // of an explanation; nil: none is kept
	data        store.Store
	reported    bool // to metrics and log
}

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

// prepare binds and plans. Where the overlay is ahead of the metadata that is known here, that is read anew, once.
func (r *Rows) prepare(ctx context.Context, explain bool) error {
	if err := r.prepareOnce(ctx, explain); err != nil || !r.behind() {
		return err
	}
	if err := r.table.refresh(ctx); err != nil {
		return err
	}
	r.names, r.types, r.project, r.slots = nil, nil, nil, nil
	return r.prepareOnce(ctx, explain)
}

func (r *Rows) prepareOnce(ctx context.Context, explain bool) error {
	t := r.table
	view, err := t.view(ctx, r.query.At)
	if err != nil {
		return err
	}
	schema := view.Shell().Schema
	tree, err := bind(r.query, schema)
	if err != nil {
		return err
	}
	if err := r.columns(schema); err != nil {
		return err
	}
	if err := r.lookUpOverlay(ctx); err != nil {
		return err
	}
	if r.data, err = t.dataStore(); err != nil {
		return err
	}
	if r.trace != nil {
		r.data = trace.New(r.data, r.trace, "table")
	}
	s, others, err := r.files(ctx, view, tree, explain)
	if err != nil {
		return err
	}
	c := t.client.config
	r.plan, err = r.planner().Plan(ctx, s, tree, r.version, scan.Options{
		NoIndex: r.query.NoIndex, NoPrune: r.query.NoPrune, Strict: r.query.Strict, Explain: explain,
		MinBytes: c.MinPlannedScanBytes, MinFiles: c.MinPlannedFiles, Costs: r.costs(),
	})
	if err != nil {
		return err
	}
	r.plan.Report.Total += others
	r.plan.Report.Pruned += others
	return nil
}

func (r *Rows) planner() *scan.Planner {
	t := r.table
	indexes := t.overlayStore
	if r.trace != nil {
		indexes = trace.New(indexes, r.trace, "index")
	}
	prover := &maintain.Prover{Store: indexes, Build: &build.Builder{Store: r.data, Footers: t.client.footers}}
	return &scan.Planner{
		Data: r.data, Overlay: indexes, Readers: t.client.readers, Maps: t.maps, Prefix: t.overlay.Prefix(), Prove: prover.Prove,
	}
}

// lookUpOverlay finds the overlay's version. An overlay that cannot be read is no index, not a failed query.
func (r *Rows) lookUpOverlay(ctx context.Context) (err error) {
	if r.query.NoIndex || r.query.NoPrune {
		return nil
	}
	r.version, err = r.table.current(ctx)
	if err != nil && (ctx.Err() != nil || fault.Is(err, fault.Exhausted) && !fault.Retryable(err)) {
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

// columns resolves the answer's columns.
func (r *Rows) columns(s *column.Schema) error {
	own, err := scan.Columns(s, ownColumns(s, r.query.Select))
	if err != nil {
		return err
	}
	if len(r.query.Select) == 0 {
		for _, p := range own {
			r.add(p)
		}
		return nil
	}
	next := 0
	for _, n := range r.query.Select {
		switch kind := virtualColumn(s, n); kind {
		case filePath:
			r.addVirtual(n, column.Of(column.String), kind)
		case position:
			r.addVirtual(n, column.Of(column.Long), kind)
		case rowID, updated:
			r.add(column.Path{lineageFields[kind]})
			r.slots[len(r.slots)-1].virtual = kind
		default:
			r.add(own[next])
			next++
		}
	}
	return nil
}

// add adds a column that is read.
func (r *Rows) add(p column.Path) {
	r.names, r.types, r.slots = append(r.names, p.Name()), append(r.types, p.Leaf().Type), append(r.slots, slot{project: len(r.project)})
	r.project = append(r.project, p)
}

func (r *Rows) addVirtual(name string, t column.Type, kind virtual) {
	r.names, r.types, r.slots = append(r.names, name), append(r.types, t), append(r.slots, slot{virtual: kind})
}

// Columns is the names and types of the answer's columns.
func (r *Rows) Columns() ([]string, []Type) { return r.names, r.types }

// Each reads the answer in the order of (file path, position). A batch is valid until visit returns.
func (r *Rows) Each(ctx context.Context, visit func(*Batch) error) error {
	outer, ctx := ctx, store.WithCounter(ctx, &r.usage)
	var got answer
	if r.sampled() {
		got = answer{}
	}
	counters, err := r.reader().Read(ctx, r.plan, r.project, r.query.Limit, func(f *scan.File, b *column.Batch) error {
		if got != nil {
			got.add(f, b)
		}
		return visit(r.shape(f, b))
	})
	r.finish(counters)
	r.observed(ctx, err)
	if got != nil && err == nil && (r.query.Limit < 0 || counters.Rows < r.query.Limit) && len(counters.Changed) == 0 {
		r.shadow(outer, got)
	}
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
	if err := r.recount(ctx); err != nil {
		return 0, err
	}
	counters, err := r.reader().Count(ctx, r.plan)
	if r.query.Limit > 0 {
		counters.Rows = min(counters.Rows, r.query.Limit)
	}
	r.finish(counters)
	r.observed(ctx, err)
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
		out.Cols[i] = slot.fill(&r.plan.Snapshot.Files, f, b)
	}
	return out
}

// Stats is what the answer has cost so far.
func (r *Rows) Stats() Stats {
	s := r.stats
	rep := &r.plan.Report
	u := r.usage.Usage()
	s.FilesLeft = len(r.plan.Files)
	s.FilesTotal, s.Requests, s.Bytes, s.Waves, s.Hedges = rep.Total, u.Requests(), u.BytesRead, u.Waves, u.Hedges
	s.IndexesUsed, s.IndexesMissing = r.exprs(rep.Used), r.exprs(rep.Missing)
	s.Rejected = map[string]int64{}
	for _, x := range rep.Rejected {
		s.Rejected[x.Reason]++
	}
	if r.overlayLost != nil {
		s.Rejected["overlay_unreadable"] = 1
		s.Warnings = append(slices.Clone(s.Warnings), "the overlay cannot be read, the query was answered without indexes: "+r.overlayLost.Error())
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
