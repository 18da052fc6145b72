package skomer

import (
	"context"
	"time"

	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/trace"
)

// Explanation is how a query is answered and why.
type Explanation struct {
	Table          string `json:"table"`
	SnapshotID     int64  `json:"snapshot_id"`
	OverlayVersion uint64 `json:"overlay_version"` // 0: not mounted, or indexes are switched off
	Predicate      string `json:"predicate"`       // in normal form
	// The files: of the snapshot, ruled out by manifest facts, ruled out by indexes, and left to open.
	FilesTotal    int `json:"files_total"`
	FilesPruned   int `json:"files_pruned"`
	FilesRuledOut int `json:"files_ruled_out"`
	FilesKept     int `json:"files_kept"`
	// RowsMust match by evidence alone; RowsMay is those and the ones to be rechecked.
	RowsMust int64 `json:"rows_must"`
	RowsMay  int64 `json:"rows_may"`
	// RowsDeleted may match by evidence and are hidden by deletes.
	RowsDeleted int64 `json:"rows_deleted"`
	// ScanBytes and KeptBytes are the sizes of the files that a plain scan reads after pruning, and of those left.
	ScanBytes int64  `json:"scan_bytes"`
	KeptBytes int64  `json:"kept_bytes"`
	CostRule  string `json:"cost_rule,omitempty"` // why no index was asked
	// Unindexed is the tests of the filter that no index could answer.
	Unindexed []string        `json:"tests_without_index,omitempty"`
	Indexes   []IndexUse      `json:"indexes"`
	Files     []FileDecision  `json:"files"`
	Rejected  []RejectedIndex `json:"rejected"`
	Stats     Stats           `json:"stats"` // of planning; of the whole query if it was run
	Analyzed  bool            `json:"analyzed"`
	// Estimate is what the cost rule went by; nil where no index could be asked.
	Estimate *CostEstimate `json:"estimate,omitempty"`
	// Waves are the reads of the overlay and the table that waited for each other, in order; those of catalog and metadata are not
	// among them.
	Waves []WaveCost `json:"waves"`
	Money *Money     `json:"money,omitempty"`
}

// CostEstimate is what planning expected before it asked an index.
type CostEstimate struct {
	Selectivity float64 `json:"selectivity"` // share of the rows left that match; negative: unknown
	Profile     string  `json:"profile"`     // of the store: what waves, requests and bytes take
	Scan        Cost    `json:"scan"`        // of the columns of the filter in the files left
	Index       Cost    `json:"index"`       // of the questions that were put to indexes
	Saved       Cost    `json:"saved"`       // what the scan then takes less
}

// WaveCost is one round trip.
type WaveCost struct {
	Of       string  `json:"of"`    // index or table
	Start    float64 `json:"start"` // seconds since planning began
	Seconds  float64 `json:"seconds"`
	Objects  int     `json:"objects"`
	Requests int64   `json:"requests"`
	Bytes    int64   `json:"bytes"`
	First    string  `json:"first"` // one of the objects
}

// Cost is an estimate of requests, bytes and seconds.
type Cost = plan.Cost

// IndexUse is what a declared index contributes to a query.
type IndexUse struct {
	Expr string `json:"expr"`
	// Use is used, partly (it does not cover every file left), silent (it could speak and did not narrow anything), not asked (the cost
	// rule expects a scan to be cheaper) or no use.
	Use    string `json:"use"`
	Reason string `json:"reason"`
}

// FileDecision is why a data file is read or not.
type FileDecision struct {
	Path    string `json:"path"`
	Kept    bool   `json:"kept"`
	By      string `json:"by"` // the evidence; empty: nothing speaks against the file
	Must    int64  `json:"rows_must"`
	May     int64  `json:"rows_may"`
	Deleted int64  `json:"rows_deleted"` // hidden by deletes, of those that may match by evidence
	Records int64  `json:"records"`
}

// RejectedIndex is an artifact that was not believed.
type RejectedIndex struct {
	Index  string `json:"index"`
	File   string `json:"file,omitempty"`
	Reason string `json:"reason"`
	Detail string `json:"detail"`
}

// Explain plans a query and says why each file is read or not. analyze also runs it.
func (t *Table) Explain(ctx context.Context, q Query, analyze bool) (*Explanation, error) {
	if q.Limit == 0 {
		q.Limit = -1
	}
	r := &Rows{table: t, query: q, start: time.Now(), trace: trace.NewLog()}
	if err := r.prepare(store.WithCounter(ctx, &r.usage), true); err != nil {
		return nil, err
	}
	counters, err := r.reader().Hide(store.WithCounter(ctx, &r.usage), r.plan)
	if err != nil {
		return nil, err
	}
	r.finish(counters)
	e := r.explanation()
	if analyze {
		if err := r.Each(ctx, func(*Batch) error { return nil }); err != nil {
			return nil, err
		}
		e.Analyzed = true
	}
	e.Stats = r.Stats()
	for _, w := range r.trace.Waves() {
		e.Waves = append(e.Waves, WaveCost{
			Of: w.Of, Start: w.Start.Seconds(), Seconds: (w.End - w.Start).Seconds(), Objects: w.Objects, Requests: w.Requests, Bytes: w.Bytes, First: w.First,
		})
	}
	return e, nil
}

// At adds what the explanation costs at a price.
func (e *Explanation) At(p Price) {
	e.Money = &Money{Profile: p.Name, Query: p.Reading(float64(e.Stats.Requests), float64(e.Stats.Bytes))}
	if e.Estimate != nil {
		e.Money.Scan = p.Reading(e.Estimate.Scan.Requests, e.Estimate.Scan.Bytes)
	}
}

func (r *Rows) explanation() *Explanation {
	p := r.plan
	e := &Explanation{
		Table: r.table.name, SnapshotID: p.Snapshot.ID, Predicate: p.Predicate.String(), FilesTotal: p.Report.Total,
		FilesPruned: p.Report.Pruned, FilesRuledOut: p.Report.RuledOut, FilesKept: len(p.Files), CostRule: p.Report.Scanned,
		Indexes: []IndexUse{}, Files: []FileDecision{}, Rejected: []RejectedIndex{}, Waves: []WaveCost{},
	}
	if x := p.Report.Estimate; x != nil {
		e.Estimate = &CostEstimate{Selectivity: x.Selectivity, Profile: x.Profile, Scan: x.Scan, Index: x.Index, Saved: x.Saved}
	}
	f := &p.Snapshot.Files
	kept := map[int]bool{}
	for _, file := range p.Files {
		kept[file.Ordinal] = true
		e.RowsMust += file.Verdict.Must.Count()
		e.RowsMay += file.Verdict.May.Count()
		e.KeptBytes += file.Size
		p.Decisions[file.Ordinal].Must, p.Decisions[file.Ordinal].May = file.Verdict.Must.Count(), file.Verdict.May.Count()
	}
	e.ScanBytes = e.KeptBytes
	for i, d := range p.Decisions {
		d.Kept = kept[i]
		e.Files = append(e.Files, FileDecision{Path: f.Path[i], Kept: d.Kept, By: d.By, Must: d.Must, May: d.May, Deleted: d.Deleted, Records: f.Records[i]})
		e.RowsDeleted += d.Deleted
		if !d.Kept && d.ByIndex {
			e.ScanBytes += f.Size[i]
		}
	}
	for _, x := range p.Report.Rejected {
		name := x.Index
		if d, ok := r.version.Index(x.Index); ok {
			name = exprOf(d)
		}
		e.Rejected = append(e.Rejected, RejectedIndex{Index: name, File: x.File, Reason: x.Reason, Detail: x.Detail})
	}
	if r.overlayLost != nil {
		e.Rejected = append(e.Rejected, RejectedIndex{Reason: "overlay_unreadable", Detail: r.overlayLost.Error()})
	}
	if r.version != nil {
		e.OverlayVersion = r.version.Number()
		for _, d := range r.version.Indexes() {
			e.Indexes = append(e.Indexes, r.use(d))
		}
		e.Unindexed = r.unindexed()
	}
	return e
}
