package lake

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/factsblob"
	"github.com/skomerdb/skomer/internal/lake/manifest"
)

// Filter chooses among data files by what metadata states of them. It is asked from several goroutines.
type Filter interface {
	// Listed reports whether a manifest can hold a file that is left.
	Listed(l *facts.Listed) bool
	// Keys lists the fields that Sift compares.
	Keys() []int
	// Sift appends the files that are left to dst, ascending.
	Sift(dst []int32, g *facts.Group) []int32
	// Fields is the fields that Judge looks at. It has the last word; paths may be empty.
	Fields() []int
	Judge(files *facts.Snapshot) []bool
}

// Selection is the data files of a snapshot that a filter leaves.
type Selection struct {
	// Snapshot holds those files and no others, with the metrics of the filter's fields, and no deletes.
	Snapshot *facts.Snapshot
	// Ruled is how many other data files the snapshot has. Where a manifest was not read it is what the list states, 0 if it
	// states nothing.
	Ruled int
}

// Size is how many live files the manifest list counts, and whether a filter is no use: the list does not count them, or some
// manifest holds deletes, which may be about any file.
func (v *View) Size(ctx context.Context) (files int, whole bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.list(ctx); err != nil {
		return 0, false, err
	}
	for _, p := range v.parts {
		whole = whole || p.listed.Deletes || p.listed.Added < 0 || p.listed.Existing < 0
		files += int(p.listed.Added + p.listed.Existing)
	}
	return files, whole, nil
}

// Select applies a filter: first to what the list says of each manifest, then to the keys and tuples of those that are left, in
// one wave where they were kept, at last to all that is stated of the files that are left, in another. Manifests of deletes are
// passed over. ok is false where more than most files are left, or a manifest that the list calls one of data files holds deletes.
func (v *View) Select(ctx context.Context, kept Kept, f Filter, most int) (s *Selection, ok bool, err error) {
	q := &selecting{View: v, filter: f, kept: kept, all: factsblob.Want{
		Parts: manifest.Tuples | manifest.Base | manifest.Names, Fields: f.Fields(), Whole: true,
	}}
	if ok, err = q.candidates(ctx); err != nil || !ok {
		return nil, false, err
	}
	q.each(func(c *candidate) { c.rows = f.Sift(make([]int32, 0, 16), c.group()) })
	if err := q.more(ctx); err != nil {
		return nil, false, err
	}
	q.each(q.judge)
	left := 0
	for _, c := range q.found {
		if c.err != nil {
			return nil, false, c.err
		}
		left += len(c.rows)
	}
	if left > most {
		return nil, false, nil
	}
	s, err = q.selection(left)
	return s, err == nil, err
}

// selecting is one Select.
type selecting struct {
	*View
	filter Filter
	kept   Kept
	all    factsblob.Want
	found  []*candidate
	ruled  int // files of manifests that were not read
}

// candidate is a manifest that can hold files that are left.
type candidate struct {
	own  *part
	part         // own as this query saw it, while others may read more of it
	rows []int32 // the entries that are left
	err  error
}

// candidates reads the list, and of the manifests that it does not rule out what Sift needs.
func (q *selecting) candidates(ctx context.Context) (ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.list(ctx); err != nil {
		return false, err
	}
	var left []*part
	for _, p := range q.parts {
		switch {
		case p.listed.Deletes:
		case q.filter.Listed(&facts.Listed{Spec: p.listed.SpecID, Fields: p.listed.Partitions}):
			left = append(left, p)
		default:
			q.ruled += int(max(p.listed.Added, 0) + max(p.listed.Existing, 0))
		}
	}
	keys := factsblob.Want{Parts: manifest.Tuples, Fields: q.filter.Keys()}
	if err := q.load(ctx, q.kept, left, keys, q.all); err != nil {
		return false, err
	}
	a := &assembly{t: q.table, out: q.Shell()}
	for _, p := range left {
		spec, err := a.spec(p)
		if err != nil || p.m.HasDeletes {
			return false, err
		}
		a.tuplesOf(p, spec)
		q.found = append(q.found, &candidate{own: p, part: *p})
	}
	return true, nil
}

// more reads all that is wanted of the manifests in which something is left.
func (q *selecting) more(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var parts []*part
	for _, c := range q.found {
		if len(c.rows) > 0 {
			parts = append(parts, c.own)
		}
	}
	if err := q.load(ctx, q.kept, parts, q.all, q.all); err != nil {
		return err
	}
	for _, c := range q.found {
		c.m = c.own.m
	}
	return nil
}

// each calls f for every candidate on all cores.
func (q *selecting) each(f func(*candidate)) {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, c := range q.found {
		g.Go(func() error { f(c); return nil })
	}
	_ = g.Wait() // no candidate fails here
}

// group is the candidate as a filter sees it.
func (c *candidate) group() *facts.Group {
	g := &facts.Group{N: c.m.N, Spec: int32(c.tuples.spec), Tuple: c.m.Tuple, Tuples: map[int]*facts.PartitionColumn{}, Columns: c.m.Columns}
	for i, f := range c.tuples.fields {
		col := &facts.PartitionColumn{Type: f.typ}
		for _, t := range c.tuples.values {
			col.Known, col.Null, col.Value = append(col.Known, t[i].known), append(col.Null, t[i].null), append(col.Value, t[i].value)
		}
		g.Tuples[f.id] = col
	}
	return g
}

// judge leaves of a candidate's files those that the filter keeps.
func (q *selecting) judge(c *candidate) {
	if len(c.rows) == 0 {
		return
	}
	a := newAssembly(q.table, q.Shell(), len(c.rows))
	a.ids, a.names = q.all.Fields, false
	if c.err = a.addFiles(&c.part, c.rows); c.err != nil {
		return
	}
	a.square()
	left := c.rows[:0]
	for i, keep := range q.filter.Judge(a.out) {
		if keep {
			left = append(left, c.rows[i])
		}
	}
	c.rows = left
}

// selection names the files that are left.
func (q *selecting) selection(left int) (*Selection, error) {
	all := q.ruled
	for _, c := range q.found {
		all += c.m.N
	}
	a := newAssembly(q.table, q.Shell(), left)
	a.ids = q.all.Fields
	for _, c := range q.found {
		if err := a.addFiles(&c.part, c.rows); err != nil {
			return nil, err
		}
	}
	a.square()
	return &Selection{Snapshot: a.out, Ruled: all - left}, nil
}
