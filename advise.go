package skomer

import (
	"context"
	"strings"

	"github.com/skomerdb/skomer/internal/advise"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/maintain"
	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/store/local"
)

// Range is what an estimate is expected to lie in.
type Range struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Estimate is what building indexes is expected to take, measured on a few row groups. Nothing was written.
type Estimate struct {
	Table         string          `json:"table"`
	Files         int64           `json:"files"`
	Rows          int64           `json:"rows"`
	SampledGroups int             `json:"sampled_row_groups"`
	SampledRows   int64           `json:"sampled_rows"`
	Workers       int             `json:"workers"`
	Indexes       []IndexEstimate `json:"indexes"`
	BytesRead     Range           `json:"bytes_read"`
	Gets          Range           `json:"gets"`
	Puts          Range           `json:"puts"`
	Size          Range           `json:"size"`    // bytes to keep
	Seconds       Range           `json:"seconds"` // with the workers, on the table's store
	Memory        Range           `json:"memory"`  // bytes of the process, with all workers
	Price         string          `json:"price_profile"`
	Build         Range           `json:"build_usd"`
	PerMonth      Range           `json:"month_usd"`
}

// IndexEstimate is one index's part.
type IndexEstimate struct {
	Expr    string `json:"expr"`
	Size    Range  `json:"size"`
	Seconds Range  `json:"core_seconds"`
	// Declined is why artifacts like those of the sample would not be kept.
	Declined string `json:"declined,omitempty"`
}

// Estimate measures what building indexes would take, before anything is written. The table need not be mounted.
func (t *Table) Estimate(ctx context.Context, exprs []string, p Price) (*Estimate, error) {
	s, err := t.snapshot(ctx, "")
	if err != nil {
		return nil, err
	}
	var all []kinds.Declaration
	for _, x := range exprs {
		d, err := kinds.ParseExpr(x, s.Schema)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	data, err := t.dataStore()
	if err != nil {
		return nil, err
	}
	workers := t.client.config.Workers
	r := &advise.Reader{Data: data, Footers: t.client.footers}
	e, err := r.Estimate(ctx, s, all, t.building())
	if err != nil {
		return nil, local.Spilled(err)
	}
	took := e.Time(t.profile(), workers)
	out := &Estimate{
		Table: t.name, Files: e.Files, Rows: e.Rows, SampledGroups: e.SampledGroups, SampledRows: e.SampledRows, Workers: workers,
		BytesRead: Range(e.Read), Gets: Range(e.Gets), Puts: Range(e.Puts), Size: Range(e.Size), Seconds: Range(took),
		Memory: Range{processLow + e.Memory.Low, processHigh + garbage*e.Memory.High*float64(workers)}, Price: p.Name,
	}
	out.Build = Range{p.building(e.Gets.Low, e.Puts.Low, e.Read.Low, e.Seconds.Low), p.building(e.Gets.High, e.Puts.High, e.Read.High, e.Seconds.High)}
	out.PerMonth = Range{e.Size.Low / 1e9 * p.Storage, e.Size.High / 1e9 * p.Storage}
	for _, x := range e.Indexes {
		out.Indexes = append(out.Indexes, IndexEstimate{Expr: x.Declaration.String(), Size: Range(x.Size), Seconds: Range(x.Seconds), Declined: x.Declined})
	}
	return out, nil
}

// What a process takes beside what builds hold, and how far the heap grows before garbage is collected (GOGC is 100 by default).
const processLow, processHigh, garbage = 24 << 20, 80 << 20, 2

// building is what so many requests, bytes and seconds of a core take.
func (p *Price) building(gets, puts, bytes, seconds float64) float64 {
	return p.Reading(gets, bytes) + puts*p.Put + seconds/3600*p.Core
}

// building is the bounds of a sync's builds.
func (t *Table) building() advise.Building {
	c := t.client.config
	return advise.Building{UnitRows: maintain.UnitRows, UnitFiles: maintain.UnitFiles, Ahead: 32 << 20, Memory: c.Memory / int64(c.Workers)}
}

// profile is what reading the table's store takes.
func (t *Table) profile() plan.Profile {
	if _, local := lake.LocalPath(t.metadata().MetadataPath()); local {
		return plan.LocalStore
	}
	return plan.ObjectStore
}

// Advice is which indexes pay, the best first, and what sorting would do.
type Advice struct {
	Table   string `json:"table"`
	Queries int    `json:"queries"`
	Assumed bool   `json:"assumed"` // no queries were given: a test for one value of each column was assumed
	Store   string `json:"store"`   // the profile that seconds are counted by
	// Indexes are those that save something.
	Indexes []IndexAdvice   `json:"indexes"`
	Sorting []SortingAdvice `json:"sorting"`
	// None is columns of the queries that no index would help, with the reason.
	None map[string]string `json:"none"`
}

// IndexAdvice is one index and what it is worth for an average query.
type IndexAdvice struct {
	Expr    string  `json:"expr"`
	Helped  float64 `json:"queries_helped"` // share
	Plain   Cost    `json:"without"`
	Indexed Cost    `json:"with"`
	Saved   float64 `json:"seconds_saved"`
	Size    Range   `json:"size"`
	Seconds Range   `json:"core_seconds"`
	// Build and PerMonth are in US dollars at the price profile.
	Build    Range  `json:"build_usd"`
	PerMonth Range  `json:"month_usd"`
	Why      string `json:"why"`
}

// SortingAdvice is what writing the table in the order of a column would do for an average query.
type SortingAdvice struct {
	Column string  `json:"column"`
	Plain  Cost    `json:"unsorted"`
	Sorted Cost    `json:"sorted"`
	Saved  float64 `json:"seconds_saved"`
	Kept   float64 `json:"files_kept"` // by bounds, for one value, as the table is
	Of     float64 `json:"files"`
	Best   bool    `json:"better_than_any_index"`
	Why    string  `json:"why"`
}

// Advise says which index pays on which column for the filters (SQL text, or expression JSON), what it costs and saves, and when sorting
// does better. Without filters it assumes a test for one value of each column. Figures are counted as on object storage, where requests
// are dear, so that advice does not depend on where the table is read.
func (t *Table) Advise(ctx context.Context, filters []string, p Price) (*Advice, error) {
	s, x, _, err := t.statistics(ctx, "")
	if err != nil {
		return nil, err
	}
	var queries []advise.Query
	for i, f := range filters {
		q := Query{Where: f}
		if strings.HasPrefix(strings.TrimSpace(f), "{") {
			q = Query{Filter: []byte(f)}
		}
		tree, err := bind(q, s.Schema)
		if err != nil {
			return nil, fault.New(fault.Invalid, "queries", "filter %d: %s", i+1, err).WithFix("%s", fault.FixOf(err)).WithCause(err)
		}
		queries = append(queries, advise.Query{Filter: tree, Weight: 1})
	}
	data, err := t.dataStore()
	if err != nil {
		return nil, err
	}
	r := &advise.Reader{Data: data, Footers: t.client.footers}
	a, err := r.Advise(ctx, x, queries, plan.ObjectStore)
	if err != nil {
		return nil, local.Spilled(err)
	}
	return t.advice(a, p), nil
}

func (t *Table) advice(a *advise.Advice, p Price) *Advice {
	out := &Advice{Table: t.name, Queries: a.Queries, Assumed: a.Assumed, Store: plan.ObjectStore.Name, None: a.Unmoved, Indexes: []IndexAdvice{}, Sorting: []SortingAdvice{}}
	for _, v := range a.Verdicts {
		c := v.Cost
		out.Indexes = append(out.Indexes, IndexAdvice{
			Expr: v.Declaration.String(), Helped: v.Helped, Plain: v.Plain, Indexed: v.Indexed, Saved: v.Saved, Size: Range(c.Size), Seconds: Range(c.Seconds),
			Build:    Range{c.Seconds.Low / 3600 * p.Core, c.Seconds.High / 3600 * p.Core},
			PerMonth: Range{c.Size.Low / 1e9 * p.Storage, c.Size.High / 1e9 * p.Storage}, Why: v.Why,
		})
	}
	best := 0.0
	if len(a.Verdicts) > 0 {
		best = a.Verdicts[0].Saved
	}
	for _, s := range a.Sorting {
		out.Sorting = append(out.Sorting, SortingAdvice{
			Column: s.Column.Name(), Plain: s.Plain, Sorted: s.Sorted, Saved: s.Saved, Kept: s.Kept, Of: s.Of, Best: s.Saved > best, Why: s.Why,
		})
	}
	return out
}
