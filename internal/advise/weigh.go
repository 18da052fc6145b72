package advise

import (
	"math"
	"slices"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/index/sketch"
	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/predicate"
)

// candidate is an index that a query could have.
type candidate struct {
	d    kinds.Declaration
	size float64 // bytes
}

// numbers is where in the sample a declaration's columns are.
func (w *weighing) numbers(d kinds.Declaration) (out []int) {
	for _, p := range d.Columns {
		out = append(out, slices.IndexFunc(w.paths, func(q column.Path) bool { return q.Leaf().ID == p.Leaf().ID }))
	}
	return out
}

// measure sketches the sample: distinct values, quantiles and the bytes of a row, for columns without a sketch of their own too.
func (w *weighing) measure() error {
	w.known = plan.Known{}
	sketchKind, _ := kinds.ByName("sketch")
	for i, p := range w.paths {
		m := measured{column: w.columnOf(p)}
		d := kinds.Declaration{Entry: sketchKind, Columns: []column.Path{p}} // no index: sketches of an expression serve here alone
		parts, err := w.sample.build(d, []int{i}, w.temp, true)
		if err != nil {
			return err
		}
		sum, rows, inGroup, err := united(parts)
		if err != nil {
			return err
		}
		m.inGroup = inGroup
		m.distinct = grown(sum.Distinct.Value, float64(sum.Values), float64(w.table.Rows)*float64(sum.Values)/math.Max(1, float64(rows)))
		if s := m.column.Sketch; s != nil {
			m.distinct, sum = s.Distinct.Value, s
		} else {
			sum.Distinct.Value = m.distinct
		}
		w.known[p.Leaf().ID] = sum
		for k := range w.sample.groups {
			m.bytes += float64(w.sample.groups[k].bytes[i])
		}
		m.bytes /= math.Max(1, float64(rows))
		m.kept = 1
		if o := plan.OverlapOf(plan.FileBounds(w.table.Snapshot, predicate.Column{Path: p}), sum.Quantiles); o.Granules > 0 && o.Unbounded < o.Granules {
			m.kept = o.Share()
		} else if g := m.column.Groups; g.Granules > 1 && g.Unbounded < g.Granules {
			m.kept = g.Share() // files state nothing: their row groups do
		}
		w.columns = append(w.columns, m)
	}
	return nil
}

func (w *weighing) columnOf(p column.Path) *Column {
	for i := range w.table.Columns {
		if c := &w.table.Columns[i]; c.Path.Leaf().ID == p.Leaf().ID {
			return c
		}
	}
	return &Column{Path: p}
}

// united is the sketch of all sampled row groups, their rows, and the mean of their distinct values.
func united(parts []made) (sum *sketch.Summary, rows int64, inGroup float64, err error) {
	u := &sketch.Union{}
	for _, m := range parts {
		r, err := sketch.OpenRoot(m.root)
		if err != nil {
			return nil, 0, 0, err
		}
		l := r.Load()
		var data [][]byte
		for _, s := range l.Need() {
			data = append(data, m.body[s.Off:s.Off+s.Len])
		}
		if err := l.Feed(data); err != nil {
			return nil, 0, 0, err
		}
		inGroup += l.Sketch().Distinct().Value / float64(len(parts))
		rows += int64(m.rows)
		if err := u.Add(l.Sketch()); err != nil {
			return nil, 0, 0, err
		}
	}
	s, err := u.Sketch()
	if err != nil {
		return nil, 0, 0, err
	}
	out, err := s.Summary()
	return &out, rows, inGroup, err
}

// grown extends the distinct values of n sampled values to all values: of D equally frequent ones a sample of n shows
// D·(1 − e^(−n/D)).
func grown(seen, n, all float64) float64 {
	if n <= 0 || seen <= 0 {
		return 0
	}
	if seen >= 0.98*n {
		return seen / n * all
	}
	low, high := seen, 1e18
	for range 200 {
		d := math.Sqrt(low * high)
		if d*(1-math.Exp(-n/d)) < seen {
			low = d
		} else {
			high = d
		}
	}
	return math.Min(low, all)
}

// assumed is a test for one value of each column: the quantile in the middle.
func (w *weighing) assumed() []Query {
	var out []Query
	for _, p := range w.paths {
		s := w.known[p.Leaf().ID]
		key := s.At(0.5)
		if key == nil {
			continue
		}
		v, ok := column.KeyValue(p.Leaf().Type, key)
		if !ok {
			continue
		}
		leaf := &predicate.Leaf{Column: predicate.Column{Path: p}, Op: predicate.Equal, Values: []column.Value{v}}
		out = append(out, Query{Filter: &predicate.Tree{Kind: predicate.Test, Leaf: leaf}, Weight: 1})
	}
	return out
}

// Distinct values up to which value sets and bitmaps are kept, by their default caps.
const (
	valuesetCap = 1024
	bitmapCap   = 4096
)

// candidates is the kinds that could answer some leaf of the queries on column i.
func (w *weighing) candidates(i int, queries []Query) (out []kinds.Declaration) {
	p := w.paths[i]
	for _, k := range kinds.All() {
		m := &w.columns[i]
		switch k.Name {
		case "bloom":
			if m.inGroup <= valuesetCap/4 {
				continue
			}
		case "valueset":
			if m.inGroup > valuesetCap {
				continue
			}
		case "bitmap":
			if m.distinct > bitmapCap {
				continue
			}
		}
		alone, err := kinds.Declare(k, p)
		if err != nil {
			continue
		}
		all := []kinds.Declaration{alone}
		for _, second := range w.paths {
			if d, err := kinds.Declare(k, p, second); err == nil {
				all = append(all, d)
			}
		}
		for n, d := range all {
			speaks := false
			for _, q := range queries {
				t := w.answered(q.Filter, &candidate{d: d})
				speaks = speaks || t != nil && (n == 0 || len(columnsIn(t)) > 1)
			}
			if speaks {
				out = append(out, d)
			}
		}
	}
	return out
}

// cost is what a query is expected to take, on files of equal size over which the matching rows of an unclustered column are scattered:
// one for the footer and one a column for every file that is opened, the columns of the filter in it, and the pages of the answer.
func (w *weighing) cost(t *predicate.Tree, with *candidate) plan.Cost {
	files := float64(w.table.Snapshot.Files.Len())
	rows := w.rowsOf()
	kept := files * w.boundsKeep(t)
	share, known := w.known.Share(t)
	if !known {
		share = unknownShare
	}
	matches := share * float64(w.table.Rows)
	opened, read, ask := kept, 1.0, plan.Cost{}
	if with != nil {
		opened, read, ask = w.indexed(t, with, kept)
	}
	columns, bytes := w.filterColumns(t)
	if bytes *= read; read == 0 {
		columns = 0
	}
	hit := opened * (1 - math.Exp(-matches/math.Max(opened, 1)))
	rest := (float64(w.table.Bytes)/files - bytes*rows) / pagesInFile
	c := ask
	add(&c, w.profile, opened*(1+columns)+hit, opened*(footerBytes+bytes*rows)+hit*math.Max(rest, 0), opened*rows*columns*4e-9)
	return c
}

// Rough figures: rows that a leaf of an unknown kind passes, bytes of a footer with page index, and how many pages a file is cut into.
const (
	unknownShare = 1e-3
	footerBytes  = 16 << 10
	pagesInFile  = 20
)

func add(c *plan.Cost, p plan.Profile, requests, bytes, cpu float64) {
	c.Requests += requests
	c.Bytes += bytes
	c.Seconds += requests*p.Request + bytes/p.BytesPerSecond + cpu
}

// filterColumns is the columns of a filter and their bytes a row.
func (w *weighing) filterColumns(t *predicate.Tree) (n, bytes float64) {
	seen := map[int]bool{}
	t.Leaves(func(l *predicate.Leaf) {
		id := l.Column.ID()
		if seen[id] {
			return
		}
		seen[id] = true
		n++
		for i := range w.paths {
			if w.paths[i].Leaf().ID == id {
				bytes += w.columns[i].bytes
			}
		}
	})
	return n, bytes
}

// boundsKeep is the share of the files that bounds keep for a filter.
func (w *weighing) boundsKeep(t *predicate.Tree) float64 {
	switch t.Kind {
	case predicate.And:
		out := 1.0
		for _, k := range t.Kids {
			out = math.Min(out, w.boundsKeep(k))
		}
		return out
	case predicate.Or:
		out := 0.0
		for _, k := range t.Kids {
			out += w.boundsKeep(k)
		}
		return math.Min(1, out)
	case predicate.Test:
		for i := range w.paths {
			if w.paths[i].Leaf().ID == t.Leaf.Column.ID() {
				return w.leafKeeps(i, t.Leaf)
			}
		}
	}
	return 1
}

// leafKeeps is the share of files that bounds keep for one leaf: those that hold a value, and of a range those that its rows fill.
func (w *weighing) leafKeeps(i int, l *predicate.Leaf) float64 {
	kept := w.columns[i].kept
	share, known := w.known.Share(&predicate.Tree{Kind: predicate.Test, Leaf: l})
	if !known {
		return 1
	}
	files := math.Max(1, float64(w.table.Snapshot.Files.Len()))
	if kept < 0 { // sorted
		kept = math.Min(1, 1/files)
	}
	points := 1.0
	if l.Op == predicate.In {
		points = float64(len(l.Values))
	}
	return math.Min(1, math.Max(kept*points, kept+share))
}

// indexed is how many of the files that bounds keep an index leaves, the share of the filter's columns that is read in them (0: the index
// knows the rows), and what asking takes.
func (w *weighing) indexed(t *predicate.Tree, with *candidate, kept float64) (opened, read float64, ask plan.Cost) {
	part := w.answered(t, with)
	if part == nil {
		return kept, 1, ask
	}
	share, known := w.known.Share(part)
	if !known {
		share = unknownShare
	}
	matches := share * float64(w.table.Rows)
	opened = kept * (1 - math.Exp(-matches/math.Max(kept, 1)))
	points, leaves, all := 0, 0, 0
	exact := true
	part.Leaves(func(l *predicate.Leaf) {
		alone := with.d.Kind.Says([]column.Path{l.Column.Path}, l) // in company each is as exact
		exact = exact && alone == index.Exact
		points += plan.PointsOf(l)
		leaves++
	})
	t.Leaves(func(*predicate.Leaf) { all++ })
	read = 1
	switch with.d.Name {
	case "ordered", "bitmap", "ngram": // name rows, so that only their pages are read to test the rest
		read = 1 - math.Exp(-matches/math.Max(opened, 1)/pagesInFile)
	}
	if exact && leaves == all {
		read = 0
	}
	files := float64(w.table.Snapshot.Files.Len())
	switch {
	case with.d.Scope == index.Tiered:
		segments := math.Ceil(float64(w.table.Rows) / (4 << 20))
		add(&ask, w.profile, 2*segments, segments*16*1024+math.Max(share*with.size, float64(points)*4096), matches*60e-9)
	case with.d.Name == "bitmap":
		add(&ask, w.profile, math.Min(kept, 1+kept/8), kept*2048+share*with.size, matches*30e-9)
	case with.d.Name == "zonemap":
		add(&ask, w.profile, 1, 512*kept, kept*1e-6)
		opened, read = kept, 1
	default: // per row group; neighbours in a bundle are joined
		add(&ask, w.profile, math.Min(kept, 1+kept/8), math.Min(with.size*kept/math.Max(files, 1), kept*float64(points)*8192), kept*float64(points)*1e-6)
		opened = math.Min(kept, opened+0.01*kept)
	}
	return opened, read, ask
}

// answered is the part of a filter that the index answers and whose answer narrows the whole, or nil: of a conjunction what it can, of a
// disjunction all or nothing.
func (w *weighing) answered(t *predicate.Tree, with *candidate) *predicate.Tree {
	switch t.Kind {
	case predicate.Test:
		if slices.ContainsFunc(with.d.Columns, func(p column.Path) bool { return p.Leaf().ID == t.Leaf.Column.ID() }) &&
			with.d.Kind.Says(with.d.Columns, t.Leaf) != index.Nothing {
			return t
		}
	case predicate.And:
		out := &predicate.Tree{Kind: predicate.And}
		joined := joins(t, with)
		for _, k := range t.Kids {
			if k.Kind == predicate.Test && slices.Contains(joined, k.Leaf) {
				out.Kids = append(out.Kids, k)
			} else if part := w.answered(k, with); part != nil {
				out.Kids = append(out.Kids, part)
			}
		}
		if len(out.Kids) > 0 {
			return out
		}
	case predicate.Or:
		out := &predicate.Tree{Kind: predicate.Or}
		for _, k := range t.Kids {
			part := w.answered(k, with)
			if part == nil {
				return nil
			}
			out.Kids = append(out.Kids, part)
		}
		return out
	}
	return nil
}

// joins is the leaves of a conjunction that one probe answers together.
func joins(t *predicate.Tree, with *candidate) []*predicate.Leaf {
	joint, ok := with.d.Kind.(index.Joint)
	if !ok || len(with.d.Columns) < 2 {
		return nil
	}
	var leaves []*predicate.Leaf
	for _, k := range t.Kids {
		if k.Kind == predicate.Test {
			leaves = append(leaves, k.Leaf)
		}
	}
	return joint.Joins(with.d.Columns, leaves)
}

// columnsIn is the columns that a filter tests.
func columnsIn(t *predicate.Tree) map[int]bool {
	out := map[int]bool{}
	t.Leaves(func(l *predicate.Leaf) { out[l.Column.ID()] = true })
	return out
}
