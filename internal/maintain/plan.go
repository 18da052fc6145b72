package maintain

import (
	"slices"

	"github.com/skomerdb/skomer/internal/build"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/scan"
)

// target is a data file, as the manifest states it, and an index.
type target struct{ file, index string }

// missing lists the data files with the indexes that lack them in version v, but for what this sync has tried already, and sums up
// what is covered.
func (r *run) missing(v *overlay.Version) []work {
	f := &r.snapshot.Files
	var out []work
	var found []overlay.Placement
	seen := map[string]bool{}
	r.coverage = newCoverage(v.Indexes())
	for i := range f.Len() {
		if seen[f.Stated[i]] || r.short != nil && r.short.Since.Old[f.Stated[i]] {
			continue
		}
		seen[f.Stated[i]] = true
		r.coverage.total += f.Records[i]
		switch {
		case f.Format[i] != facts.Parquet:
			r.report.Skipped[f.Path[i]] = "not a Parquet file"
			continue
		case f.Encrypted[i]:
			r.report.Skipped[f.Path[i]] = "encrypted"
			continue
		}
		if v.Erased(overlay.Identity{Path: f.Stated[i], Size: f.Size[i], Records: f.Records[i]}) {
			r.report.Skipped[f.Path[i]] = "rows of it were erased: it is scanned until the table rewrites it"
			continue
		}
		w := work{ordinal: i, path: f.Path[i], rows: f.Records[i]}
		found = v.AppendCovering(found[:0], f.Stated[i])
		for n, d := range v.Indexes() {
			switch {
			case r.covered(v, i, n, found) && !r.replaced(v, n, found):
				r.coverage.add(d.ID, f.Records[i])
			case r.wanted(i, d):
				w.missing = append(w.missing, d)
			}
		}
		if len(w.missing) > 0 {
			out = append(out, w)
		}
	}
	return out
}

// wanted tells whether this sync is to build an index of file i that nothing covers.
func (r *run) wanted(i int, d overlay.Definition) bool {
	f := &r.snapshot.Files
	t := target{f.Stated[i], d.ID}
	if r.tried[t] || r.only != nil && !r.only[t] {
		return false
	}
	x, ok := r.index(d)
	return ok && !r.refused.holds(d.ID, x.Kind.Algorithm(), f.Stated[i], f.Size[i], f.Records[i])
}

// index is what a build needs to know of a declared index; false where this build cannot make it on the table as it is.
func (r *run) index(d overlay.Definition) (build.Index, bool) {
	k, ok := kinds.ByName(d.Kind)
	if !ok || d.KindVersion > k.Version {
		return build.Index{}, false
	}
	x := build.Index{Definition: d, Kind: k}
	if x.Columns, ok = kinds.Columns(r.snapshot.Schema, d.FieldIDs, d.Params); !ok {
		return x, false
	}
	return x, k.Kind.Check(x.Columns, d.Params) == nil
}

// covered tells whether a placement of index n may speak for file i.
func (r *run) covered(v *overlay.Version, i, n int, found []overlay.Placement) bool {
	f := &r.snapshot.Files
	for k := range found {
		p := &found[k]
		if p.Index != n {
			continue
		}
		info, ok := v.Artifact(p.At)
		if ok && p.Check(&info, f.Size[i], f.Records[i], "", r.lineage()).OK() && scan.Outdated(&info, r.snapshot).OK() {
			return true
		}
	}
	return false
}

// replaced tells whether an artifact of index n is among those that this sync builds anew.
func (r *run) replaced(v *overlay.Version, n int, found []overlay.Placement) bool {
	for _, p := range found {
		if p.Index != n || len(r.replaces) == 0 {
			continue
		}
		if info, ok := v.Artifact(p.At); ok && slices.Contains(r.replaces[target{p.Identity.Path, p.IndexID}], info.Key()) {
			return true
		}
	}
	return false
}

func (r *run) lineage() lineage.Options {
	return lineage.Options{
		TableUUID: r.snapshot.TableUUID, TableLastSequence: r.snapshot.LastSequence, ActiveSnapshotID: r.snapshot.ID,
	}
}

// coverage is how many rows of a snapshot each index covers.
type coverage struct {
	total int64
	rows  map[string]int64
}

func newCoverage(indexes []overlay.Definition) coverage {
	c := coverage{rows: map[string]int64{}}
	for _, d := range indexes {
		c.rows[d.ID] = 0
	}
	return c
}

func (c *coverage) add(index string, rows int64) { c.rows[index] += rows }

// least is the percentage of the rows that the least covered of some indexes covers.
func (c *coverage) least(indexes []overlay.Definition) float64 {
	least := 100.0
	for _, d := range indexes {
		if c.total > 0 {
			least = min(least, 100*float64(c.rows[d.ID])/float64(c.total))
		}
	}
	return least
}
