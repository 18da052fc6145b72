package index

import "github.com/skomerdb/skomer/internal/rowset"

// Granule is a run of rows with the counts that are kept of it.
type Granule struct{ Start, Rows, Nulls, NaNs uint32 }

// Range is the granule's rows.
func (g Granule) Range() rowset.Range { return rowset.Range{Start: g.Start, End: g.Start + g.Rows} }

// Values reports whether some row is neither null nor NaN.
func (g Granule) Values() bool { return g.Rows > g.Nulls+g.NaNs }

// Tally gathers the granules where a leaf without its sign is true, false, null or NaN for some and for all rows.
type Tally struct{ isTrue, isFalse, null, nan granules }

type granules struct{ some, all []rowset.Range }

func (g *granules) add(r rowset.Range, some, all bool) {
	if some {
		g.some = append(g.some, r)
	}
	if all {
		g.all = append(g.all, r)
	}
}

func (g *granules) verdict(rows uint32) rowset.Verdict {
	return rowset.Verdict{Must: rowset.FromRanges(rows, g.all), May: rowset.FromRanges(rows, g.some)}
}

// Add judges a granule: the leaf may be true of some of its values, nulls and NaNs apart, and is certainly true of all. Nothing
// known is true, false. Without values both are false.
func (t *Tally) Add(g Granule, some, all bool) {
	at := g.Range()
	t.isTrue.add(at, some, all && g.Nulls+g.NaNs == 0)
	t.isFalse.add(at, g.Values() && !all || g.NaNs > 0, !some && g.Nulls == 0)
	t.null.add(at, g.Nulls > 0, g.Nulls == g.Rows)
	t.nan.add(at, g.NaNs > 0, g.NaNs == g.Rows)
}

// AddLists judges a granule of lists, of which Nulls are null or have a null element: some list may hold what is asked for.
func (t *Tally) AddLists(g Granule, some bool) {
	at := g.Range()
	t.isTrue.add(at, some, false)
	t.isFalse.add(at, g.Nulls < g.Rows, !some && g.Nulls == 0)
	t.null.add(at, g.Nulls > 0, !some && g.Nulls == g.Rows)
}

// Known is what the granules say; they must cover all rows.
func (t *Tally) Known(rows uint32) Known {
	return Known{True: t.isTrue.verdict(rows), False: t.isFalse.verdict(rows), Null: t.null.verdict(rows), NaN: t.nan.verdict(rows)}
}
