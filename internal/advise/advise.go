package advise

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/store/local"
)

// Query is a filter that will be asked, and how often among the others.
type Query struct {
	Filter *predicate.Tree
	Weight float64
}

// Verdict is one index that could be built, and what it is worth.
type Verdict struct {
	Declaration kinds.Declaration
	// Helped is the share of the queries, by weight, that it makes cheaper.
	Helped float64
	// Plain and Indexed are what an average query takes without and with the index; Saved is their difference in seconds on the profile.
	Plain, Indexed plan.Cost
	Saved          float64
	Cost           IndexEstimate
	Why            string
}

// Sorting is what writing the table in the order of a column would do.
type Sorting struct {
	Column        column.Path
	Plain, Sorted plan.Cost // of an average query
	Saved         float64   // seconds
	Kept, Of      float64   // files that a query on the column keeps now
	Why           string
}

// Advice is indexes by what they save, the best first, and what sorting would do.
type Advice struct {
	Queries  int
	Assumed  bool // no queries were given: one for a value of each column was assumed
	Verdicts []Verdict
	Sorting  []Sorting // the best first
	// Unmoved is columns of the queries that no index would help, and why.
	Unmoved map[string]string
}

// Advise weighs the indexes that could answer the queries; without queries, a test for one value of each column.
func (r *Reader) Advise(ctx context.Context, t *Table, queries []Query, p plan.Profile) (*Advice, error) {
	a := &Advice{Queries: len(queries), Unmoved: map[string]string{}}
	paths := t.paths(queries)
	if len(paths) == 0 {
		return nil, fault.New(fault.Invalid, "advise", "no query has a filter on a column that can be indexed")
	}
	temp, done, err := local.Scratch("advise")
	if err != nil {
		return nil, err
	}
	defer done()
	x, err := r.sample(ctx, t.Snapshot, paths)
	if err != nil {
		return nil, err
	}
	w := &weighing{table: t, sample: x, profile: p, paths: paths, temp: temp}
	if err := w.measure(); err != nil {
		return nil, err
	}
	if len(queries) == 0 {
		a.Assumed, queries = true, w.assumed()
	}
	if err := w.verdicts(a, queries); err != nil {
		return nil, err
	}
	w.sorting(a, queries)
	return a, nil
}

// paths is the columns and expressions that the queries test; without queries, all columns with one value a row.
func (t *Table) paths(queries []Query) (out []column.Path) {
	if len(queries) == 0 {
		for i := range t.Columns {
			if p := t.Columns[i].Path; !p.Repeated() {
				out = append(out, p)
			}
		}
	}
	takesAll, _ := kinds.ByName("valueset")
	seen := map[int]bool{}
	for _, q := range queries {
		q.Filter.Leaves(func(l *predicate.Leaf) {
			if p := l.Column.Path; len(p) > 0 && !seen[p.Leaf().ID] {
				if _, err := kinds.Declare(takesAll, p); err == nil {
					out = append(out, p)
				}
				seen[p.Leaf().ID] = true
			}
		})
	}
	return out
}

// weighing is one advice in the making.
type weighing struct {
	table   *Table
	sample  *sample
	profile plan.Profile
	paths   []column.Path
	temp    string
	columns []measured
	known   plan.Known
}

// measured is what a sample tells of a column.
type measured struct {
	column   *Column
	distinct float64 // in the table
	inGroup  float64 // in a row group
	bytes    float64 // a row
	kept     float64 // share of the files that a test for one value keeps now
}

// verdicts weighs every candidate.
func (w *weighing) verdicts(a *Advice, queries []Query) error {
	helped := map[string]bool{}
	plain := w.average(queries, nil)
	spoken, little := map[string]bool{}, map[string]bool{}
	for i := range w.paths {
		for _, d := range w.candidates(i, queries) {
			v, err := w.verdict(d, i, queries, plain)
			if err != nil {
				return err
			}
			for _, p := range d.Columns {
				spoken[p.Name()] = true
				helped[p.Name()] = helped[p.Name()] || pays(v.Saved, plain)
				little[p.Name()] = little[p.Name()] || v.Saved > 0
			}
			if pays(v.Saved, plain) {
				a.Verdicts = append(a.Verdicts, v)
			}
		}
	}
	slices.SortStableFunc(a.Verdicts, func(x, y Verdict) int { return cmp.Compare(y.Saved, x.Saved) })
	for i := range w.paths {
		if name := w.paths[i].Name(); !helped[name] {
			a.Unmoved[name] = w.unmoved(i, spoken[name])
			if little[name] {
				a.Unmoved[name] = "no index pays: it would save less than a millisecond, or less than 1 % of the time"
			}
		}
	}
	return nil
}

// pays tells whether what an average query saves, in seconds, is worth an index or a rewrite: a millisecond, and a hundredth of its time.
func pays(saved float64, plain plan.Cost) bool { return saved >= max(1e-3, 0.01*plain.Seconds) }

// unmoved is why no index helps a column.
func (w *weighing) unmoved(i int, spoken bool) string {
	c := &w.columns[i]
	files := float64(w.table.Snapshot.Files.Len())
	switch {
	case !spoken:
		return "no kind answers such tests of it alone: another form is needed, or the tests stand in an OR with tests of other columns"
	case c.kept*files <= 1.5:
		return fmt.Sprintf("the bounds of its files keep %.1f of %.0f files already", c.kept*files, files)
	case files <= 1:
		return "one file is one read, with or without an index"
	case c.distinct*files <= float64(w.table.Rows):
		return fmt.Sprintf("a value is in nearly every file: some %.0f distinct values in %d rows", c.distinct, w.table.Rows)
	default:
		return "asking an index would take longer than it saves"
	}
}

// verdict weighs one index.
func (w *weighing) verdict(d kinds.Declaration, i int, queries []Query, plain plan.Cost) (Verdict, error) {
	v := Verdict{Declaration: d, Plain: plain}
	made, err := w.sample.build(d, w.numbers(d), w.temp, false)
	if err != nil {
		return v, err
	}
	e := &Estimate{Rows: w.table.Rows, Files: int64(w.table.Snapshot.Files.Len())}
	v.Cost = scaled(d, made, e)
	if v.Cost.Declined != "" {
		return v, nil
	}
	with := &candidate{d: d, size: (v.Cost.Size.Low + v.Cost.Size.High) / 2}
	v.Indexed = w.average(queries, with)
	v.Saved = v.Plain.Seconds - v.Indexed.Seconds
	total := 0.0
	for _, q := range queries {
		total += q.Weight
		if w.cost(q.Filter, with).Seconds < w.cost(q.Filter, nil).Seconds {
			v.Helped += q.Weight
		}
	}
	v.Helped /= math.Max(total, 1e-9)
	v.Why = w.why(i, d)
	return v, nil
}

// why tells what makes the kind fit the column.
func (w *weighing) why(i int, d kinds.Declaration) string {
	c := &w.columns[i]
	files := float64(w.table.Snapshot.Files.Len())
	out := fmt.Sprintf("some %.0f distinct values", c.distinct)
	if c.column.Sketch == nil {
		out += " by a sample"
	}
	out += fmt.Sprintf("; bounds keep %.1f of %.0f files for a value", c.kept*files, files)
	return out + "; " + d.Purpose
}

// average is the mean cost of the queries with one index, or none.
func (w *weighing) average(queries []Query, with *candidate) plan.Cost {
	var out plan.Cost
	total := 0.0
	for _, q := range queries {
		c := w.cost(q.Filter, with)
		out.Requests += q.Weight * c.Requests
		out.Bytes += q.Weight * c.Bytes
		out.Seconds += q.Weight * c.Seconds
		total += q.Weight
	}
	if total > 0 {
		out = plan.Cost{Requests: out.Requests / total, Bytes: out.Bytes / total, Seconds: out.Seconds / total}
	}
	return out
}

// sorting weighs writing the table in the order of each column of the queries.
func (w *weighing) sorting(a *Advice, queries []Query) {
	plain := w.average(queries, nil)
	for i := range w.paths {
		c := &w.columns[i]
		files := float64(w.table.Snapshot.Files.Len())
		if files < 2 || c.kept*files <= 1.5 || w.paths[i].Repeated() || w.paths[i].Derived() {
			continue
		}
		was := c.kept
		c.kept = -1 // sorted: a share of the files as large as that of the rows
		sorted := w.average(queries, nil)
		c.kept = was
		if s := (Sorting{Column: w.paths[i], Plain: plain, Sorted: sorted, Saved: plain.Seconds - sorted.Seconds, Kept: was * files, Of: files}); pays(s.Saved, plain) {
			best := 0.0
			if len(a.Verdicts) > 0 {
				best = a.Verdicts[0].Saved
			}
			s.Why = "bounds would then rule out what an index rules out now, without one"
			if s.Saved > best {
				s.Why = "saves more than any index: matching rows would lie together, so that few files are opened and few pages read"
			}
			a.Sorting = append(a.Sorting, s)
		}
	}
	slices.SortStableFunc(a.Sorting, func(x, y Sorting) int { return cmp.Compare(y.Saved, x.Saved) })
}

// rowsOf is the rows of a mean file.
func (w *weighing) rowsOf() float64 {
	return float64(w.table.Rows) / math.Max(1, float64(w.table.Snapshot.Files.Len()))
}
