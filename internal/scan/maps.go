package scan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/wave"
)

// mapped is a leaf put to the file maps of its column.
type mapped struct {
	*Coverage
	looks []*looking // per run; nil: the run says nothing of the leaf
	spoke []bool     // per run: it ruled a file out
	may   []uint64   // a bit per file
	// hits is per file the rows that may pass, unless that is none or all.
	hits map[int][]rowset.Range
}

// rows is the rows of file i, of so many, that may pass.
func (m *mapped) rows(i int, records uint32) *rowset.Set {
	switch some := m.hits[i]; {
	case m.may[i>>6]>>(i&63)&1 == 0:
		return rowset.None(records)
	case some == nil:
		return rowset.All(records)
	default:
		return rowset.FromRanges(records, some)
	}
}

// looking is a look-up in one run.
type looking struct {
	look  *filemap.Look
	data  [][]byte
	tasks []*wave.Task
}

// leafRead is the leaves of a look-up that lie in one object.
type leafRead struct {
	of    *looking
	at    []int // in of.data
	spans []store.Span
}

// Need is the leaves, once.
func (l *leafRead) Need() []store.Span { return l.spans }

// Feed keeps them.
func (l *leafRead) Feed(data [][]byte) error {
	for i, at := range l.at {
		l.of.data[at] = data[i]
	}
	l.spans = nil
	return nil
}

// askMaps puts those leaves to the file maps that can rule files out, in one wave, or two where roots are not in memory. What cannot change
// which files are left is not asked: one side of a disjunction where another is not answered.
func (e *evidence) askMaps(ctx context.Context) error {
	if e.Maps == nil || e.proves() {
		return nil
	}
	e.mapped = map[*predicate.Leaf]*mapped{}
	use := plan.Matter(e.plan.Predicate, func(l *predicate.Leaf) plan.Best {
		return plan.Best{Rules: e.mappable(l) && e.mapPays(l) && !e.mapDearer(l)}
	})
	var err error
	e.plan.Predicate.Leaves(func(l *predicate.Leaf) {
		switch {
		case err != nil || e.mapped[l] != nil:
		case use[l].Rules:
			err = e.cover(ctx, l)
		default:
			e.mapUnasked(l)
		}
	})
	if err != nil {
		return err
	}
	e.dropVain()
	var tasks []*wave.Task
	others := beside(e.plan.Predicate)
	for l := range e.mapped {
		tasks = e.look(l, others[l], tasks)
	}
	tasks = e.askLayouts(tasks)
	if err := wave.Run(ctx, e.Overlay, tasks); err != nil {
		return err
	}
	e.lostLayouts()
	for _, m := range e.mapped {
		e.gatherHits(m)
	}
	return nil
}

// mappable reports whether the overlay lists a run that may have an answer to a leaf.
func (e *evidence) mappable(l *predicate.Leaf) bool {
	some, every, path := e.mapSpeaks(l)
	if !some {
		return false
	}
	if only := e.options.Only; only != "" {
		return OnField(e.version, only, path.Leaf().ID)
	}
	return e.Maps.listed(e.plan.Snapshot, e.version, path.Leaf().ID, !every)
}

func (e *evidence) mapSpeaks(l *predicate.Leaf) (some, every bool, path column.Path) {
	if path = e.plan.Snapshot.Schema.ByID(l.Column.ID()); path == nil {
		return false, false, nil
	}
	some, every = filemap.Speaks(path, l)
	return some, every, path
}

// dropVain leaves out what turned out to stand beside a leaf that no run covers.
func (e *evidence) dropVain() {
	use := plan.Matter(e.plan.Predicate, func(l *predicate.Leaf) plan.Best { return plan.Best{Rules: e.mapped[l] != nil} })
	for l := range e.mapped {
		if !use[l].Rules {
			delete(e.mapped, l)
		}
	}
}

// beside is, for each leaf of a conjunction, the others on its column: a row passes all of them with one value, unless that is a list.
// A leaf that stands in several places is left alone.
func beside(t *predicate.Tree) map[*predicate.Leaf][]*predicate.Leaf {
	times := map[*predicate.Leaf]int{}
	t.Leaves(func(l *predicate.Leaf) { times[l]++ })
	out := map[*predicate.Leaf][]*predicate.Leaf{}
	var walk func(t *predicate.Tree)
	walk = func(t *predicate.Tree) {
		for _, k := range t.Kids {
			walk(k)
			if t.Kind != predicate.And || k.Kind != predicate.Test || times[k.Leaf] > 1 || manyValued(k.Leaf) {
				continue
			}
			for _, o := range t.Kids {
				if o.Kind == predicate.Test && o.Leaf != k.Leaf && o.Leaf.Column.ID() == k.Leaf.Column.ID() {
					out[k.Leaf] = append(out[k.Leaf], o.Leaf)
				}
			}
		}
	}
	walk(t)
	return out
}

func manyValued(l *predicate.Leaf) bool {
	return l.Op == predicate.Contains || l.Column.Path.Repeated()
}

// cover finds which files the maps of a leaf's column speak for.
func (e *evidence) cover(ctx context.Context, l *predicate.Leaf) error {
	o := e.lineage
	o.Strict = false
	c, err := e.coverage(ctx, l.Column.ID(), o)
	if err != nil || c == nil {
		return err
	}
	e.covered(c)
	if len(c.Runs) > 0 {
		e.mapped[l] = &mapped{Coverage: c, looks: make([]*looking, len(c.Runs)), spoke: make([]bool, len(c.Runs)), hits: map[int][]rowset.Range{}}
	}
	return nil
}

// coverage is that of the file maps on a field, or of the one index that is asked; nil if there is none.
func (e *evidence) coverage(ctx context.Context, field int, o lineage.Options) (*Coverage, error) {
	if e.options.Only == "" {
		return e.Maps.coverage(ctx, e.Planner, e.plan.Snapshot, e.version, field, o)
	}
	runs, err := e.Maps.Runs.Load(ctx, e.Overlay, e.Prefix, e.version, func(index string) bool {
		return index == e.options.Only && OnField(e.version, index, field)
	})
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	return Cover(e.plan.Snapshot, runs, o), nil
}

// covered reports what a coverage does not believe, once.
func (e *evidence) covered(c *Coverage) {
	for _, m := range e.mapped {
		if m.Coverage == c {
			return
		}
	}
	e.plan.Report.Rejected = append(e.plan.Report.Rejected, c.Rejected...)
}

// look starts the look-ups of a leaf, of rows that pass the others as well.
func (e *evidence) look(l *predicate.Leaf, others []*predicate.Leaf, tasks []*wave.Task) []*wave.Task {
	m := e.mapped[l]
	for r, run := range m.Runs {
		look := run.Run.Look(l, others...)
		if look == nil {
			continue
		}
		need := look.Need()
		k := &looking{look: look, data: make([][]byte, len(need))}
		m.looks[r] = k
		reads := map[int]*leafRead{}
		for i, p := range need {
			read := reads[p.Object]
			if read == nil {
				read = &leafRead{of: k}
				reads[p.Object] = read
				k.tasks = append(k.tasks, &wave.Task{Key: e.Prefix + "/" + run.Meta.Objects[p.Object].Key, Steps: read})
			}
			read.at = append(read.at, i)
			read.spans = append(read.spans, store.Span{Off: run.Meta.Objects[p.Object].Off + p.Off, Len: p.Len})
		}
		tasks = append(tasks, k.tasks...)
	}
	return tasks
}

// gatherHits turns the look-ups of a leaf into files and rows. A run that could not be read says nothing.
func (e *evidence) gatherHits(m *mapped) {
	m.may = slices.Clone(m.uncovers)
	for r, run := range m.Runs {
		k := m.looks[r]
		if k != nil {
			if err := k.finish(); err != nil {
				e.plan.Report.Rejected = append(e.plan.Report.Rejected, Rejection{
					Index: run.Index, Bundle: run.Key, Reason: fault.ClassOf(err).String(), Detail: err.Error(),
				})
				if fault.Is(err, fault.Corrupt) {
					e.forget(run)
				}
				k = nil
			}
		}
		if k == nil || k.look.All {
			m.looks[r] = nil
			for slot := range m.files[r] {
				m.each(r, uint32(slot), func(i int) { m.may[i>>6] |= 1 << (i & 63) })
			}
			continue
		}
		k.look.Hits(func(h filemap.Hit) {
			rows := run.Run.Rows(h)
			m.each(r, h.Slot, func(i int) {
				m.may[i>>6] |= 1 << (i & 63)
				// all rows of a file are its last hit: without another it needs no entry
				if n := len(m.hits[i]); n > 0 || rows.End-rows.Start < uint32(run.Run.Files[h.Slot].Records) {
					m.hits[i] = append(m.hits[i], rows)
				}
			})
		})
	}
}

// finish feeds a look-up.
func (k *looking) finish() error {
	for _, t := range k.tasks {
		if t.Err != nil {
			return t.Err
		}
	}
	return k.look.Feed(k.data)
}

// forget makes a cache drop the objects of a run whose leaves are damaged: the next query reads them anew.
func (e *evidence) forget(run *wave.ListedRun) {
	f, ok := e.Overlay.(interface{ Forget(key string) })
	for _, o := range run.Meta.Objects {
		if ok {
			f.Forget(e.Prefix + "/" + o.Key)
		}
	}
}

// possible is a bit per file that may hold a match by the file maps; nil: every file may. In strict mode every file is left until its
// tag was looked up.
func (e *evidence) possible(t *predicate.Tree) []uint64 {
	if e.options.Strict {
		return nil
	}
	switch t.Kind {
	case predicate.Test:
		if m := e.mapped[t.Leaf]; m != nil {
			return m.may
		}
		return nil
	case predicate.And:
		var out []uint64
		for _, k := range t.Kids {
			kid := e.possible(k)
			switch {
			case kid == nil:
			case out == nil:
				out = slices.Clone(kid)
			default:
				for i := range out {
					out[i] &= kid[i]
				}
			}
		}
		return out
	case predicate.Or:
		var out []uint64
		for i, k := range t.Kids {
			kid := e.possible(k)
			if kid == nil {
				return nil
			}
			if i == 0 {
				out = slices.Clone(kid)
				continue
			}
			for w := range out {
				out[w] |= kid[w]
			}
		}
		return out
	default:
		return nil
	}
}

// narrowAll tightens the verdicts of the files left by the file maps, and drops those that hold no match.
func (e *evidence) narrowAll() {
	if len(e.mapped) == 0 {
		return
	}
	kept := e.plan.Files[:0]
	e.plan.Report.Unanswered = 0
	for i := range e.plan.Files {
		f := e.plan.Files[i]
		e.narrow(&f)
		if f.Verdict.May.Empty() {
			e.plan.Report.RuledOut++
			continue
		}
		if !f.mapped {
			e.plan.Report.Unanswered++
		}
		kept = append(kept, f)
	}
	e.plan.Files = kept
}

// narrow tightens the verdict of a file. Runs that saw another tag than the one that was looked up do not count, nor does any where they saw
// different bytes or contradict the manifest.
func (e *evidence) narrow(f *File) {
	var by, spoke []string
	var tags []store.Tag
	var layout filemap.Layout
	said := plan.Fold(e.plan.Predicate, f.Records, func(l *predicate.Leaf) rowset.Verdict {
		m := e.mapped[l]
		if m == nil || !m.Covers(f.Ordinal) || m.looks[m.at[f.Ordinal].run-1] == nil {
			return rowset.Maybe(f.Records)
		}
		run, tag := m.Runs[m.at[f.Ordinal].run-1], m.tag(f.Ordinal)
		if e.options.Strict && tag != f.Tag {
			e.rejectTag(run, f, tag)
			return rowset.Maybe(f.Records)
		}
		may := m.rows(f.Ordinal, f.Records)
		tags = append(tags, tag)
		spoke = append(spoke, run.Index)
		if l, ok := e.layouts[run].Of(int(m.at[f.Ordinal].slot)); ok {
			layout = l
		}
		if e.plan.Decisions != nil {
			by = append(by, fmt.Sprintf("file map of %s on %s: %s", run.Index, l, may))
		}
		return rowset.AtMost(may)
	})
	slices.Sort(tags)
	verdict := rowset.Tighten(f.Verdict, said)
	if tags = slices.Compact(tags); len(tags) != 1 || !rowset.AndNot(verdict.Must, verdict.May).Empty() {
		return
	}
	if !verdict.May.Equal(f.Verdict.May) {
		for _, index := range spoke {
			e.used(index)
		}
	}
	f.facts, f.Verdict, f.mapTag, f.mapped, f.Indexed = f.Verdict, verdict, tags[0], true, true
	if !e.options.Strict {
		f.Tag = f.mapTag
	}
	if f.layout = layout; f.laidOut() {
		by = append(by, "its pages are read without its footer")
	}
	if d := e.plan.Decisions; d != nil {
		d[f.Ordinal].By, d[f.Ordinal].ByIndex = strings.Join(by, "; "), true
		d[f.Ordinal].Kept = !verdict.May.Empty()
		d[f.Ordinal].Must, d[f.Ordinal].May = verdict.Must.Count(), verdict.May.Count()
	}
}

// withoutMaps is the file as it was before file maps spoke.
func (f *File) withoutMaps() File {
	out := *f
	if f.mapped {
		out.Verdict, out.Tag, out.mapped, out.Indexed, out.layout = f.facts, "", false, false, filemap.Layout{}
	}
	return out
}

func (e *evidence) rejectTag(run *wave.ListedRun, f *File, tag store.Tag) {
	r := Rejection{Index: run.Index, Bundle: run.Key, File: f.Path, Reason: lineage.TagMismatch.String()}
	r.Detail = fmt.Sprintf("entity tag mismatch (expected %s, got %s)", f.Tag, tag)
	if f.Tag == "" {
		r.Reason, r.Detail = lineage.TagUnknown.String(), "entity tag of the data file was not looked up"
	}
	if !slices.Contains(e.plan.Report.Rejected, r) {
		e.plan.Report.Rejected = append(e.plan.Report.Rejected, r)
	}
}

// ruledOut reports a file that file maps rule out.
func (e *evidence) ruledOut(i int) {
	e.plan.Report.RuledOut++
	d := e.plan.Decisions
	if d != nil {
		d[i] = Decision{File: i, By: "file maps: no row matches", ByIndex: true}
	}
	for l, m := range e.mapped {
		if !m.Covers(i) || m.may[i>>6]>>(i&63)&1 == 1 {
			continue
		}
		run := m.at[i].run - 1
		if !m.spoke[run] {
			m.spoke[run] = true
			e.used(m.Runs[run].Index)
		}
		if d != nil {
			d[i].By = fmt.Sprintf("file map of %s on %s: not among the files that hold it", m.Runs[run].Index, l)
		}
	}
}

// used notes that an index narrowed something.
func (e *evidence) used(index string) {
	if !slices.Contains(e.plan.Report.Used, index) {
		e.plan.Report.Used = append(e.plan.Report.Used, index)
	}
}

// mapEnough is the bytes of data that are read rather than asking for rows: an artifact costs its root and a block, two round trips.
const mapEnough = 1 << 20

// enough reports whether file maps left so little of files that they cover that artifacts need not be asked.
func (e *evidence) enough() bool {
	var bytes int64
	for i := range e.plan.Files {
		f := &e.plan.Files[i]
		if !f.mapped {
			return false
		}
		bytes += f.mayBytes()
	}
	return bytes < min(mapEnough, e.options.MinBytes*4)
}
