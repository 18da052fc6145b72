package scan

import (
	"context"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/mask"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// deleted is the masks of files, among the rows that may match.
func (x *run) deleted(ctx context.Context, files []File) ([]*mask.Mask, error) {
	s := x.plan.Snapshot
	if s.Deletes.Len() == 0 {
		return make([]*mask.Mask, len(files)), nil
	}
	if x.Masks == nil {
		return nil, fault.New(fault.Unsupported, s.MetadataPath, "snapshot %d has delete files, and nothing here reads them", s.ID)
	}
	ask := make([]mask.File, len(files))
	for i := range files {
		ask[i] = mask.File{Ordinal: files[i].Ordinal, Tag: files[i].Tag, Interest: files[i].Verdict.May}
	}
	masks, report, err := x.Masks.Masks(ctx, s, ask, mask.Options{KeepAll: x.KeepAll})
	x.counters.DeleteFiles += report.DeleteFiles
	x.counters.Warnings = append(x.counters.Warnings, report.Warnings...)
	if fault.Is(err, fault.Stale) && report.Changed != "" {
		return nil, x.readError(report.Changed, err)
	}
	return masks, err
}

// hide takes deleted rows out of a verdict.
func hide(v rowset.Verdict, m *mask.Mask) rowset.Verdict {
	if m == nil {
		return v
	}
	gone := m.Set(v.May.Size())
	return rowset.Verdict{Must: rowset.AndNot(v.Must, gone), May: rowset.AndNot(v.May, gone)}
}

// Hide takes deleted rows out of the verdicts of a whole plan, for explain.
func (r *Reader) Hide(ctx context.Context, p *Plan) (Counters, error) {
	x := &run{Reader: r, plan: p, eval: predicate.Compile(p.Predicate), left: -1}
	for at := 0; at < len(p.Files); at += groupFiles {
		files := p.Files[at:min(at+groupFiles, len(p.Files))]
		masks, err := x.deleted(ctx, files)
		if err != nil {
			return x.counters, err
		}
		for i := range files {
			f := &files[i]
			before := f.Verdict.May.Count()
			f.Verdict = hide(f.Verdict, masks[i])
			if p.Decisions != nil {
				p.Decisions[f.Ordinal].Deleted = before - f.Verdict.May.Count()
			}
		}
	}
	return x.counters, nil
}
