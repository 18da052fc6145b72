package maintain

import (
	"time"

	"github.com/skomerdb/skomer/internal/build"
	"github.com/skomerdb/skomer/internal/overlay"
)

// pace is what a build took that made all its artifacts from data; carried ones would make it look fast.
func (r *run) pace(res *build.Result, took time.Duration) (overlay.Pace, bool) {
	p := overlay.Pace{Seconds: took.Seconds(), Bytes: res.BytesRead, Rows: map[string]int64{}}
	for i := range res.Build.Artifacts {
		a := &res.Build.Artifacts[i]
		var rows int64
		for _, f := range a.Files {
			rows += f.Records
		}
		for _, d := range r.base.Indexes() {
			if d.ID != a.IndexID {
				continue
			}
			x, _ := r.index(d)
			for _, c := range x.Columns {
				p.Rows[d.Kind+" "+c.Leaf().Type.Kind.String()] += rows
			}
		}
	}
	return p, res.Carried == 0 && len(p.Rows) > 0 && p.Seconds > 0
}
