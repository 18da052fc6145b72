package scan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/wave"
)

// Planner makes plans. Its fields are set once; it is safe for concurrent use.
type Planner struct {
	Data    store.Store // the table's
	Overlay store.Store // the overlay's; unused without a version
	Readers wave.Readers
	// Maps asks the table's file maps; nil: they are not asked. Prefix is the overlay's.
	Maps   *Maps
	Prefix string
	// Prove is asked by strict plans of local tables before an artifact counts, and file maps, which hold no hashes, do not count; nil: tags are enough.
	Prove Prove
}

// Options bound a plan.
type Options struct {
	NoIndex, NoPrune, Strict bool
	// A query whose files left after pruning hold fewer than MinBytes and number at most MinFiles is scanned without an index.
	MinBytes int64
	MinFiles int
	// Costs is what else the cost rule goes by; nil: it knows no more.
	Costs *Costs
	// Explain keeps a Decision per file.
	Explain bool
	// Only is the id of the one index that is asked; empty: every index.
	Only string
}

// Plan decides for every data file of s which rows may match t. v is the overlay's version, nil if there is none.
func (p *Planner) Plan(ctx context.Context, s *facts.Snapshot, t *predicate.Tree, v *overlay.Version, o Options) (*Plan, error) {
	out := &Plan{Snapshot: s, Predicate: t, Report: Report{Total: s.Files.Len()}}
	if o.Explain {
		out.Decisions = make([]Decision, s.Files.Len())
	}
	var pruning *plan.Pruning
	if !o.NoPrune {
		pruning = plan.Prune(s, t)
	}
	left, bytes, rows := out.left(pruning)
	asks := !o.NoIndex && !o.NoPrune && v != nil && v.Mounted() && t.Kind != predicate.True && left > 0
	if asks {
		out.Report.Scanned = cheapScan(left, bytes, o)
		asks = out.Report.Scanned == ""
	}
	e := p.evidence(out, v, o)
	e.pruning = pruning
	asks = asks && e.estimate(left, bytes, rows)
	if asks {
		if err := e.askMaps(ctx); err != nil {
			return nil, err
		}
	}
	if err := e.fill(); err != nil {
		return nil, err
	}
	if o.Strict {
		if err := p.lookUpTags(ctx, out.Files); err != nil {
			return nil, err
		}
	}
	if asks {
		if err := e.gather(ctx); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (p *Planner) evidence(out *Plan, v *overlay.Version, o Options) *evidence {
	s := out.Snapshot
	return &evidence{Planner: p, plan: out, version: v, options: o, lineage: lineage.Options{
		TableUUID: s.TableUUID, TableLastSequence: s.LastSequence, ActiveSnapshotID: s.ID, Strict: o.Strict,
	}}
}

// left is how many files manifest facts do not rule out, their bytes and their rows.
func (p *Plan) left(pruning *plan.Pruning) (n int, bytes, rows int64) {
	for i, size := range p.Snapshot.Files.Size {
		if pruning == nil || pruning.Answers[i] != plan.Out {
			n++
			bytes += size
			rows += p.Snapshot.Files.Records[i]
		}
	}
	return n, bytes, rows
}

// fill keeps the files that neither manifest facts nor file maps rule out, in the order of (path, ordinal).
func (e *evidence) fill() error {
	p, pruning := e.plan, e.pruning
	f := &p.Snapshot.Files
	possible := e.possible(p.Predicate)
	for i := range f.Len() {
		verdict := plan.Maybe
		if pruning != nil {
			verdict = pruning.Answers[i]
		}
		if p.Decisions != nil {
			p.Decisions[i] = Decision{File: i, Kept: verdict != plan.Out}
			if pruning != nil && verdict != plan.Maybe {
				p.Decisions[i].By = pruning.Reason(i).String()
			}
		}
		if verdict == plan.Out {
			p.Report.Pruned++
			continue
		}
		if f.Records[i] < 0 || f.Records[i] > math.MaxUint32 {
			return fault.New(fault.Unsupported, f.Path[i], "holds %d rows, more than a file can be read with", f.Records[i])
		}
		if possible != nil && verdict == plan.Maybe && possible[i>>6]>>(i&63)&1 == 0 {
			e.ruledOut(i)
			continue
		}
		n := uint32(f.Records[i])
		file := File{Ordinal: i, Path: f.Path[i], Size: f.Size[i], Records: n, Verdict: rowset.Maybe(n)}
		if verdict == plan.Whole {
			file.Verdict = rowset.Exactly(rowset.All(n))
		}
		p.Files = append(p.Files, file)
	}
	slices.SortStableFunc(p.Files, func(a, b File) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	p.Report.Unanswered = len(p.Files)
	return nil
}

// cheapScan is why the files are so little that asking an index costs more, or "".
func cheapScan(files int, bytes int64, o Options) string {
	if files <= o.MinFiles && bytes < o.MinBytes {
		if files == 1 {
			return fmt.Sprintf("1 file of %.3g MB is left after pruning: a scan is cheaper", float64(bytes)/1e6)
		}
		return fmt.Sprintf("%d files of %.3g MB are left after pruning: a scan is cheaper", files, float64(bytes)/1e6)
	}
	return ""
}

// evidence gathers what artifacts say.
type evidence struct {
	*Planner
	plan    *Plan
	version *overlay.Version
	options Options
	lineage lineage.Options
	pruning *plan.Pruning // nil: manifests were not asked
	indexes []usable      // parallel to version.Indexes
	asked   map[question]*asked
	tasks   []*wave.Task
	mapped  map[*predicate.Leaf]*mapped // the leaves that file maps answer
	layouts map[*wave.ListedRun]*wave.Layouts
	scene   *plan.Scene // nil: every index is asked
	proven  map[claim]lineage.Verdict
	weighed map[weighed]*judged
}

// usable is a declared index that may say something about the predicate.
type usable struct {
	ok      bool
	tiered  bool // its artifacts cover many files
	lists   bool // a probe reads through the values of its artifact
	kind    index.Kind
	columns []column.Path
	files   int // of the files left that it covers
	asked   bool
	vain    bool // some of its answers could change nothing
	spoke   bool // its answer changed a verdict
}

// question is a leaf, or leaves of one conjunction from this one on, asked of an artifact.
type question struct {
	at     overlay.Place
	leaf   *predicate.Leaf
	leaves int
}

type asked struct {
	leaves []*predicate.Leaf
	probe  *wave.Probe
	task   *wave.Task
	info   overlay.ArtifactInfo
}

// answerOf is a placement that may speak for a file, and the question put to it.
type answerOf struct {
	leaf  *predicate.Leaf
	of    *predicate.Tree // the conjunction, instead of one leaf
	place overlay.Placement
	asked *asked
}

func (e *evidence) gather(ctx context.Context) error {
	e.narrowAll()
	if len(e.plan.Files) == 0 || e.enough() || !e.usable() {
		return nil
	}
	if !e.promising() {
		for i := range e.indexes {
			e.indexes[i].vain = true
		}
		e.vain()
		return nil
	}
	answers, err := e.answers(ctx)
	if err != nil {
		return err
	}
	e.conclude(answers)
	return nil
}

// answers puts the predicate to every artifact that may speak for a file, and runs all of it in lock step.
func (e *evidence) answers(ctx context.Context) ([][]answerOf, error) {
	var err error
	if e.version, err = e.version.Full(ctx); err != nil {
		return nil, err
	}
	if err := e.prove(ctx); err != nil {
		return nil, err
	}
	e.asked = map[question]*asked{}
	answers := make([][]answerOf, len(e.plan.Files))
	var found []overlay.Placement
	for i := range e.plan.Files {
		found = e.version.AppendFind(found[:0], e.statedPath(i))
		answers[i] = e.ask(i, found)
	}
	return answers, wave.Run(ctx, e.Overlay, e.tasks)
}

func (e *evidence) statedPath(i int) string {
	return e.plan.Snapshot.Files.Stated[e.plan.Files[i].Ordinal]
}

// usable finds the indexes that could say something of a leaf; false if there is none.
func (e *evidence) usable() bool {
	some := false
	e.indexes = make([]usable, len(e.version.Indexes()))
	for i, d := range e.version.Indexes() {
		k, ok := kinds.ByName(d.Kind)
		if !ok || d.KindVersion > k.Version || e.options.Only != "" && d.ID != e.options.Only {
			continue
		}
		u := usable{kind: k.Kind, tiered: k.Scope == index.Tiered}
		if l, ok := k.Kind.(index.Listing); ok {
			u.lists = l.ListsValues()
		}
		if u.columns, ok = kinds.Columns(e.plan.Snapshot.Schema, d.FieldIDs, d.Params); ok {
			e.plan.Predicate.Leaves(func(l *predicate.Leaf) { u.ok = u.ok || u.kind.Says(u.columns, l) != index.Nothing })
		}
		some = some || u.ok
		e.indexes[i] = u
	}
	return some
}

// lookUpTags asks the table's store for the present tag of every file left: what is read, indexes and kept footers
// must match it.
func (p *Planner) lookUpTags(ctx context.Context, files []File) error {
	keys := make([]string, len(files))
	for i := range files {
		keys[i] = files[i].Path
	}
	for i, info := range p.Data.Stat(ctx, keys) {
		if info.Err == nil {
			files[i].Tag = info.Tag
		}
	}
	return ctx.Err()
}

// ask puts each leaf to the artifacts that cover file i, each artifact and leaf once for all files.
func (e *evidence) ask(i int, found []overlay.Placement) []answerOf {
	var valid []overlay.Placement
	for _, p := range found {
		if e.indexes[p.Index].ok && e.believed(i, p) {
			e.indexes[p.Index].files++
			valid = append(valid, p)
		}
	}
	if len(valid) == 0 {
		return nil
	}
	sources := make([]plan.Source, len(valid))
	for k, p := range valid {
		sources[k] = plan.Source{Kind: e.indexes[p.Index].kind, Columns: e.indexes[p.Index].columns}
	}
	return e.questions(i, valid, sources)
}

// believed runs the lineage check; a rejection is recorded.
func (e *evidence) believed(i int, p overlay.Placement) bool {
	f := &e.plan.Files[i]
	info, ok := e.version.Artifact(p.At)
	if !ok {
		e.reject(p, f.Path, "unreadable", "its entry in the overlay makes no sense")
		return false
	}
	// the tag is known in strict mode only
	if v := p.Check(&info, f.Size, int64(f.Records), f.Tag, e.lineage); !v.OK() {
		e.reject(p, f.Path, v.Reason.String(), v.Message)
		return false
	}
	if v := e.proven[claim{f.Ordinal, p.At}]; !v.OK() {
		e.reject(p, f.Path, v.Reason.String(), v.Message)
		return false
	}
	if uint64(p.First)+uint64(p.Rows) > uint64(info.Rows) {
		e.reject(p, f.Path, "unreadable", "its rows lie outside its segment")
		return false
	}
	if v := lineage.CheckColumns(info.Claim(), info.Columns, absentNow(&info, e.plan.Snapshot)); !v.OK() {
		e.reject(p, f.Path, v.Reason.String(), v.Message)
		return false
	}
	if why := exprChanged(&info, e.indexes[p.Index].columns); why != "" {
		e.reject(p, f.Path, lineage.EncodingMismatch.String(), why)
		return false
	}
	if why := columnsMoved(&info, e.plan.Snapshot); why != "" {
		e.reject(p, f.Path, lineage.LeafMismatch.String(), why)
		return false
	}
	return true
}

func (e *evidence) reject(p overlay.Placement, file, reason, detail string) {
	info, _ := e.version.Artifact(p.At)
	e.plan.Report.Rejected = append(e.plan.Report.Rejected, Rejection{
		Index: p.IndexID, Bundle: info.Bundle, File: file, Reason: reason, Detail: detail,
	})
}

func (e *evidence) question(p overlay.Placement, leaves []*predicate.Leaf) *asked {
	q := question{p.At, leaves[0], len(leaves)}
	if a, ok := e.asked[q]; ok {
		return a
	}
	info, ok := e.version.Artifact(p.At)
	if !ok {
		return nil
	}
	a := &asked{info: info, leaves: leaves}
	a.probe = wave.NewJointProbe(info.Bundle, wave.Artifact{
		Kind: e.indexes[p.Index].kind, Rows: info.Rows,
		Root: span(info.Root), RootCRC: info.Root.CRC, RootSum: info.RootSHA256, RootData: info.RootInline, Body: span(info.Body),
	}, leaves, e.Readers)
	e.bound(a.probe, info.Rows, leaves)
	a.task = &wave.Task{Key: info.Bundle, Steps: a.probe}
	a.task.Err = a.probe.Prepare()
	e.asked[q] = a
	e.tasks = append(e.tasks, a.task)
	return a
}

func span(p lineage.Place) store.Span { return store.Span{Off: p.Off, Len: p.Len} }

// conclude folds the answers of every file and drops those that hold no match.
func (e *evidence) conclude(answers [][]answerOf) {
	kept := e.plan.Files[:0]
	e.plan.Report.Unanswered = 0
	for i, f := range e.plan.Files {
		e.conclude1(&f, answers[i])
		if f.Verdict.May.Empty() {
			e.plan.Report.RuledOut++
			continue
		}
		if len(answers[i]) == 0 && !f.mapped {
			e.plan.Report.Unanswered++
		}
		kept = append(kept, f)
	}
	e.plan.Files = kept
	e.summarise(len(answers))
}

// conclude1 settles the verdict of one file and the tag that its reads must match. Artifacts that saw different tags speak of
// different bytes: none of them counts. Nor does any where evidence contradicts itself.
func (e *evidence) conclude1(f *File, answers []answerOf) {
	before := f.withoutMaps()
	if e.options.Strict {
		before.Tag = f.Tag
	}
	tags := e.fold(f, answers)
	if len(tags) > 0 && f.mapped {
		tags = append(tags, f.mapTag)
	}
	switch tags = slices.Compact(tags); {
	case !f.Verdict.Must.Empty() && !rowset.AndNot(f.Verdict.Must, f.Verdict.May).Empty():
		*f = before
		e.reject(answers[0].place, f.Path, "contradiction", "some evidence proves rows that other evidence rules out")
		tags = nil
	case len(tags) > 1:
		*f = before
		e.reject(answers[0].place, f.Path, lineage.TagMismatch.String(),
			fmt.Sprintf("its artifacts saw different entity tags: %s and %s", tags[0], tags[1]))
		tags = nil
	}
	if len(tags) == 1 && !e.options.Strict {
		f.Tag = tags[0]
	}
}

// fold narrows the file's verdict by the answers about it and returns the tags under which they were built; none where they change nothing.
func (e *evidence) fold(f *File, answers []answerOf) (tags []store.Tag) {
	if len(answers) == 0 {
		return nil
	}
	var by []string
	var spoke []int
	if f.mapped && e.plan.Decisions != nil {
		by = append(by, e.plan.Decisions[f.Ordinal].By)
	}
	said := func(a *answerOf) (v rowset.Verdict, ok bool) {
		if a.asked.task.Err != nil {
			return v, false
		}
		v = rowset.SliceVerdict(a.asked.probe.Verdict(), a.place.First, a.place.First+a.place.Rows)
		if v.May.Full() && v.Must.Empty() {
			return v, false
		}
		spoke = append(spoke, a.place.Index)
		tags = append(tags, a.place.Identity.Tag)
		if e.plan.Decisions != nil {
			by = append(by, fmt.Sprintf("%s on %s: %s", a.place.IndexID, a.asked.text(), v.May))
		}
		return v, true
	}
	verdict := plan.FoldJoint(e.plan.Predicate, f.Records, func(l *predicate.Leaf) rowset.Verdict {
		v := e.stated(f, l)
		for i := range answers {
			if a := &answers[i]; a.leaf == l {
				if x, ok := said(a); ok {
					v = rowset.Tighten(v, x)
				}
			}
		}
		return v
	}, func(and *predicate.Tree) (out []plan.Jointly) {
		for i := range answers {
			if a := &answers[i]; a.of == and {
				if x, ok := said(a); ok {
					out = append(out, plan.Jointly{Verdict: x, Leaves: a.asked.leaves})
				}
			}
		}
		return out
	})
	before := f.Verdict
	f.Verdict = rowset.Tighten(before, verdict)
	if f.Verdict.May.Equal(before.May) && f.Verdict.Must.Equal(before.Must) {
		return nil
	}
	f.Indexed = true
	for _, i := range spoke {
		e.indexes[i].spoke = true
	}
	if d := e.plan.Decisions; d != nil {
		d[f.Ordinal].Kept = !f.Verdict.May.Empty()
		d[f.Ordinal].Must, d[f.Ordinal].May = f.Verdict.Must.Count(), f.Verdict.May.Count()
		if len(by) > 0 {
			d[f.Ordinal].By, d[f.Ordinal].ByIndex = strings.Join(slices.Compact(by), "; "), true
		}
	}
	return tags
}

// summarise names the indexes that spoke, those that lack files, and the artifacts that failed on the way.
func (e *evidence) summarise(files int) {
	r := &e.plan.Report
	for i, d := range e.version.Indexes() {
		u := e.indexes[i]
		if u.spoke {
			e.used(d.ID)
		}
		if u.ok && u.files < files {
			r.Missing = append(r.Missing, d.ID)
		}
	}
	e.stopped()
	e.vain()
	for _, a := range e.asked {
		if a.task.Err != nil {
			r.Rejected = append(r.Rejected, Rejection{
				Index: a.info.IndexID, Bundle: a.info.Bundle, Reason: fault.ClassOf(a.task.Err).String(), Detail: a.task.Err.Error(),
			})
		}
	}
}
