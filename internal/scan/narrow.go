package scan

import (
	"slices"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// narrow drops the rows that the statistics of row groups and pages rule out, and settles those that they prove.
func (f *file) narrow() {
	if f.check == nil {
		return
	}
	reads := f.run.eval.Reads()
	said := plan.Fold(f.run.plan.Predicate, f.verdict.May.Size(), func(l *predicate.Leaf) rowset.Verdict {
		i := slices.IndexFunc(reads, func(p column.Path) bool { return p.Leaf().ID == l.Column.Read().Leaf().ID })
		judge := plan.NewJudge(l)
		if judge == nil || i < 0 {
			return rowset.Maybe(f.verdict.May.Size())
		}
		return statistics(f.check.Statistics(i), judge, f.verdict.May)
	})
	f.verdict = hide(rowset.Tighten(f.verdict, said), f.mask) // what statistics prove may be deleted
}

// statistics is the verdict of a leaf from a column's row groups, and from the pages of those in doubt that hold any row of
// interest.
func statistics(s *parquetio.Statistics, judge *plan.Judge, interest *rowset.Set) rowset.Verdict {
	var may, must []rowset.Range
	add := func(rows rowset.Range, a plan.Answer) {
		if a != plan.Out {
			may = append(may, rows)
		}
		if a == plan.Whole {
			must = append(must, rows)
		}
	}
	for g := range s.Groups {
		if !interest.Intersects(s.Groups[g].Rows) {
			continue
		}
		a := over(judge, &s.Groups[g])
		if len(s.Pages[g]) == 0 || a != plan.Maybe {
			add(s.Groups[g].Rows, a)
			continue
		}
		for p := range s.Pages[g] {
			add(s.Pages[g][p].Rows, over(judge, &s.Pages[g][p]))
		}
	}
	n := interest.Size()
	return rowset.Verdict{Must: rowset.FromRanges(n, must), May: rowset.FromRanges(n, may)}
}

func over(judge *plan.Judge, b *parquetio.Bounds) plan.Answer {
	return judge.Over(&plan.Granule{Rows: int64(b.Rows.Len()), Min: b.Min, Max: b.Max, Nulls: b.Nulls, NaNs: b.NaNs})
}
