package skomer

import (
	"context"
	"runtime"

	"github.com/skomerdb/skomer/internal/maintain"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/scan"
)

// costs is what the cost rule goes by; nil where it is switched off, and for counts: what evidence settles is counted without a read.
func (r *Rows) costs() *scan.Costs {
	c := r.table.client.config
	if c.MinSelectivity < 0 || r.version == nil || r.counting {
		return nil
	}
	cores := c.Workers
	if cores <= 0 {
		cores = runtime.GOMAXPROCS(0)
	}
	return &scan.Costs{Profile: r.table.profile(), MinSelectivity: c.MinSelectivity, Known: r.table.known(r.version), Cores: cores}
}

// known is the table's sketches in an overlay version, parsed once.
func (t *Table) known(v *overlay.Version) plan.Known {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sketchesOf != v {
		t.sketches, t.sketchesOf = maintain.Known(v), v
	}
	return t.sketches
}

// recount plans again for a count, where the cost rule went by what reading rows takes.
func (r *Rows) recount(ctx context.Context) error {
	rep := &r.plan.Report
	if r.counting || rep.Estimate == nil || rep.Scanned == "" && len(rep.Unasked) == 0 {
		return nil
	}
	r.counting = true
	r.names, r.types, r.project, r.slots = nil, nil, nil, nil
	return r.prepareOnce(ctx, false)
}
