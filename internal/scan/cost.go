package scan

import (
	"fmt"
	"slices"

	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/wave"
)

// Costs is what the cost rule goes by.
type Costs struct {
	Profile        plan.Profile
	MinSelectivity float64 // see plan.Scene
	Known          plan.Known
	Cores          int // that work on the query
}

// Unasked is an index that the cost rule left alone, or stopped reading, and why.
type Unasked struct {
	Index   string // its id
	Why     string
	Stopped bool // what was read of it told that the rest would not pay
}

// scene is what is left to read.
func (p *Plan) scene(c *Costs, files int, bytes, rows int64) *plan.Scene {
	return &plan.Scene{
		Profile: c.Profile, MinSelectivity: c.MinSelectivity, Known: c.Known, Files: files, Bytes: bytes, Rows: rows,
		Columns: len(p.Snapshot.Schema.Fields), Shares: plan.SharesOf(p.Snapshot), Tail: parquetio.TailBytes, Cores: c.Cores,
	}
}

// estimate notes what the predicate is expected to keep and a scan to take, and reports whether an index is worth asking at all.
func (e *evidence) estimate(files int, bytes, rows int64) bool {
	c := e.options.Costs
	if c == nil {
		return true
	}
	e.scene = e.plan.scene(c, files, bytes, rows)
	r := &e.plan.Report
	share, known, why := e.scene.Broad(e.plan.Predicate)
	r.Estimate = &Estimate{Selectivity: -1, Scan: e.scene.Scan(e.plan.Predicate), Profile: c.Profile.Name}
	if known {
		r.Estimate.Selectivity = share
	}
	r.Scanned = why
	return why == ""
}

// Estimate is what planning expected before it asked any index.
type Estimate struct {
	Selectivity float64 // share of the rows left that match; negative: unknown
	Scan        plan.Cost
	// Index and Saved are the sums over the questions that were put to indexes.
	Index, Saved plan.Cost
	Profile      string
}

// weighed is a question of one index, however many artifacts it is put to.
type weighed struct {
	index  int
	leaf   *predicate.Leaf
	leaves int
}

// judged is what the cost rule says of a question, and whether the report tells it.
type judged struct {
	plan.Judgement
	noted bool
}

// worth reports whether the cost rule lets leaves be asked of an index.
func (e *evidence) worth(index int, leaves []*predicate.Leaf) bool {
	return e.scene == nil || e.judge(index, leaves).Ask
}

func (e *evidence) judge(no int, leaves []*predicate.Leaf) *judged {
	key := weighed{no, leaves[0], len(leaves)}
	if j := e.weighed[key]; j != nil {
		return j
	}
	u := &e.indexes[no]
	o := plan.Offer{Exact: true, PerFile: !u.tiered}
	for _, l := range leaves {
		o.Exact = o.Exact && u.kind.Says(u.columns, l) == index.Exact
		o.Listed = o.Listed || u.lists
		o.Values = max(o.Values, plan.PointsOf(l))
	}
	j := &judged{Judgement: e.scene.Judge(leaves, o)}
	if e.weighed == nil {
		e.weighed = map[weighed]*judged{}
	}
	e.weighed[key] = j
	return j
}

// refused reports a question that the cost rule does not let be asked, once.
func (e *evidence) refused(no int, leaves []*predicate.Leaf) {
	if j := e.judge(no, leaves); !j.noted {
		j.noted = true
		e.plan.Report.Unasked = append(e.plan.Report.Unasked, Unasked{Index: e.version.Indexes()[no].ID, Why: j.Why})
	}
}

// counted notes what a question that is put to an index is expected to take and to save, once.
func (e *evidence) counted(no int, leaves []*predicate.Leaf) {
	e.indexes[no].asked = true
	if e.scene == nil {
		return
	}
	if j := e.judge(no, leaves); !j.noted {
		j.noted = true
		e.plan.Report.Estimate.Index.Add(j.Index)
		e.plan.Report.Estimate.Saved.Add(j.Saved)
	}
}

// mapPays reports whether the cost rule lets file maps be asked about a leaf.
func (e *evidence) mapPays(l *predicate.Leaf) bool { return e.scene == nil || e.scene.JudgeMap(l).Ask }

// mapUnasked reports the file maps that the cost rule left alone.
func (e *evidence) mapUnasked(l *predicate.Leaf) {
	if e.scene == nil || !e.mappable(l) {
		return
	}
	why := e.scene.JudgeMap(l).Why
	r := &e.plan.Report
	for _, d := range e.version.Derived(filemap.Kind) {
		known := func(u Unasked) bool { return u.Index == d.Index }
		if why != "" && OnField(e.version, d.Index, l.Column.ID()) && !slices.ContainsFunc(r.Unasked, known) {
			r.Unasked = append(r.Unasked, Unasked{Index: d.Index, Why: "file map: " + why})
		}
	}
}

// bound stops a probe that turns out to take more entries than reading the column of its rows would take.
func (e *evidence) bound(p *wave.Probe, rows uint32, leaves []*predicate.Leaf) {
	if e.scene != nil && e.scene.MinSelectivity > 0 {
		p.Most = e.scene.MostEntries(int64(rows), leaves)
	}
}

// stopped reports the indexes whose probes were stopped, each once.
func (e *evidence) stopped() {
	r := &e.plan.Report
	for _, a := range e.asked {
		n := a.probe.Stopped()
		known := func(u Unasked) bool { return u.Index == a.info.IndexID && u.Stopped }
		if n == 0 || slices.ContainsFunc(r.Unasked, known) {
			continue
		}
		r.Unasked = append(r.Unasked, Unasked{Index: a.info.IndexID, Stopped: true, Why: fmt.Sprintf(
			"its first bytes tell that some %.2g %% of the rows would be read from it one by one: reading the column takes less",
			100*float64(n)/float64(max(a.info.Rows, 1)))})
	}
}
