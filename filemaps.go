package skomer

import (
	"context"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/maintain"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/scan"
)

// FileMap is the table-level evidence that belongs to an index: which files hold a value.
type FileMap struct {
	Runs  int   `json:"runs"`
	Keys  int64 `json:"keys"`         // distinct pairs of value and granule
	Bytes int64 `json:"bytes"`        // of its objects
	Rows  int64 `json:"rows_covered"` // of the current snapshot
	// Values is the most distinct values that a run lists with their files; 0: there are too many, or the index answers for many files at once.
	Values int `json:"values"`
	// Memory is what queries hold of it between them: file lists and directories of leaves.
	Memory int64 `json:"memory"`
	// Rejected is how many files it does not count for, though it did: their artifacts are asked instead.
	Rejected int `json:"rejected"`
}

// fileMaps fills in what file maps the indexes own. What cannot be read covers nothing.
func (t *Table) fileMaps(ctx context.Context, st *Status, s *facts.Snapshot, v *overlay.Version, o lineage.Options) error {
	for _, d := range maintain.Mapped(v.Indexes()) {
		runs, err := t.client.runs.Load(ctx, t.overlayStore, t.overlay.Prefix(), v, func(index string) bool { return index == d.ID })
		if err != nil {
			return err
		}
		if len(runs) == 0 {
			continue
		}
		m := &FileMap{Runs: len(runs)}
		for _, r := range runs {
			if r.Meta == nil || r.Run == nil {
				continue
			}
			m.Keys += int64(r.Meta.Keys)
			m.Bytes += r.Len + r.Run.LeafBytes()
			m.Memory += r.Run.Bytes()
			m.Values = max(m.Values, r.Run.Values)
		}
		c := scan.Cover(s, runs, o)
		covered := map[string]bool{}
		for i, n := range s.Files.Records {
			if c.Covers(i) {
				m.Rows += n
				covered[s.Files.Path[i]] = true
			}
		}
		for _, x := range c.Rejected {
			if !covered[x.File] { // else a newer run has taken its place
				m.Rejected++
			}
		}
		for i := range st.Indexes {
			if st.Indexes[i].ID == d.ID {
				st.Indexes[i].FileMap = m
				st.Bytes += m.Bytes
			}
		}
	}
	return nil
}
