package scan

import (
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/predicate"
)

// Costs is what the cost rule goes by.
type Costs struct {
	Profile        plan.Profile
	MinSelectivity float64 // see plan.Scene
	Known          plan.Known
}

// Unasked is an index that the cost rule left alone, and why.
type Unasked struct {
	Index string // its id
	Why   string
}

// scene is what is left to read.
func (p *Plan) scene(c *Costs, files int, bytes, rows int64) *plan.Scene {
	return &plan.Scene{
		Profile: c.Profile, MinSelectivity: c.MinSelectivity, Known: c.Known, Files: files, Bytes: bytes, Rows: rows,
		Columns: len(p.Snapshot.Schema.Fields),
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

// worth reports whether the cost rule lets leaves be asked of the index that a placement belongs to.
func (e *evidence) worth(p overlay.Placement, leaves []*predicate.Leaf) bool {
	if e.scene == nil {
		return true
	}
	key := weighed{p.Index, leaves[0], len(leaves)}
	if ask, ok := e.weighed[key]; ok {
		return ask
	}
	u := &e.indexes[p.Index]
	o := plan.Offer{Exact: true, PerFile: !u.tiered}
	for _, l := range leaves {
		o.Exact = o.Exact && u.kind.Says(u.columns, l) == index.Exact
		o.Values = max(o.Values, plan.PointsOf(l))
	}
	j := e.scene.Judge(leaves, o)
	r := &e.plan.Report
	if j.Ask {
		r.Estimate.Index.Add(j.Index)
		r.Estimate.Saved.Add(j.Saved)
	} else {
		r.Unasked = append(r.Unasked, Unasked{Index: p.IndexID, Why: j.Why})
	}
	if e.weighed == nil {
		e.weighed = map[weighed]bool{}
	}
	e.weighed[key] = j.Ask
	return j.Ask
}
