package skomer_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store/s3"
	"github.com/skomerdb/skomer/internal/store/s3/s3test"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// life is a table that changes, an overlay, and processes that work on the overlay at the same time.
type life struct {
	t       *testing.T
	rng     *rand.Rand
	made    *tabletest.Evolving
	table   *skomer.Table // of this process: without faults
	setting lifeSetting
	workers []*lifeWorker
	tally   *tally
	log     []string
}

// wait waits for a result, the end of the process, or its pause.
func (l *life) wait(i int) (r lifeResult, ended bool) {
	w := l.workers[i]
	began := time.Now()
	for {
		select {
		case r, ok := <-w.results:
			if !ok {
				l.buried(i)
				return r, true
			}
			l.finished(w, r)
			return r, true
		case <-time.After(2 * time.Millisecond):
		}
		if w.stopped() {
			if w.doing.Stop == "pause" {
				l.tally.stops["paused"]++
				w.paused = 1 + l.rng.IntN(8)
				return r, false
			}
			require.NoError(l.t, w.cmd.Process.Signal(syscall.SIGCONT))
		}
		if time.Since(began) > 2*time.Second {
			l.wake() // it may wait for what a paused process has begun
		}
		if time.Since(began) > 2*time.Minute { // only a hang takes so long
			if w.cmd != nil {
				_ = w.cmd.Process.Signal(syscall.SIGQUIT) // it shows where it stands
				time.Sleep(3 * time.Second)
				l.note("stopped: %v", w.stopped())
			}
			l.fail("%s %s does not end", w.doing.Op, w.doing.Arg)
		}
	}
}

// wake lets paused processes go on, those too of which it is not known yet that they paused; their results are taken by later steps.
func (l *life) wake() {
	for _, w := range l.workers {
		if w.doing != nil && w.doing.Stop == "pause" {
			require.NoError(l.t, w.cmd.Process.Signal(syscall.SIGCONT))
			w.paused = 0
		}
	}
}

// finished judges what an operation says. Without injected faults only the state of things may have refused it.
func (l *life) finished(w *lifeWorker, r lifeResult) {
	c := *w.doing
	w.doing = nil
	fresh := int64(0)
	for name, n := range r.Faults {
		fresh += n - w.faults[name]
		l.tally.faults[name] += max(0, n-w.faults[name])
	}
	w.faults = r.Faults
	l.note("%s %s: %s %s, %d faults", c.Op, c.Arg, r.Class, r.Err, fresh)
	if r.Err == "" {
		l.tally.ops[c.Op]++
		return
	}
	if fresh == 0 && !slices.Contains(l.excusable(c), r.Class) {
		l.fail("%s %s failed without a fault: %s (%s)", c.Op, c.Arg, r.Err, r.Class)
	}
}

// excusable are the errors that other processes, or a table that moves on, may give an operation.
func (l *life) excusable(c lifeCommand) []string {
	switch c.Op {
	case "query":
		return nil
	case "add":
		return []string{"not found", "invalid", "conflict", "refused"} // the column is gone, another process unmounts
	default:
		return []string{"not found", "conflict", "stale", "refused"}
	}
}

// buried is what is left of a process that was killed.
func (l *life) buried(i int) {
	w := l.workers[i]
	var exit *exec.ExitError
	if w.doing == nil || w.doing.Stop != "kill" || !errors.As(w.err, &exit) || exit.ExitCode() != -1 {
		l.fail("a process ended by itself: %v", w.err)
	}
	l.note("%s was killed", w.doing.Op)
	l.tally.stops["killed"]++
	l.workers[i] = l.start()
}

func (l *life) note(format string, args ...any) {
	l.log = append(l.log, fmt.Sprintf(format, args...))
}

func (l *life) fail(format string, args ...any) {
	l.t.Helper()
	from := max(0, len(l.log)-60)
	if declared, err := filepath.Glob(filepath.Join(l.setting.Overlay, "inflight", "*")); err == nil {
		for _, path := range declared {
			text, err := os.ReadFile(path)
			l.note("in flight: %s %v", text, err)
		}
	}
	l.t.Fatalf("%s\nlast steps:\n%s\ntable:\n%s", fmt.Sprintf(format, args...), strings.Join(l.log[from:], "\n"), strings.Join(l.made.Steps, "\n"))
}

// newLife makes a table and an overlay, and starts processes.
func newLife(t *testing.T, rng *rand.Rand, kind string, processes int, all *tally) *life {
	dir := t.TempDir()
	l := &life{t: t, rng: rng, tally: all, made: tabletest.CreateEvolving(t, rng, filepath.Join(dir, "table"))}
	l.made.Append(t, 3)
	l.setting = lifeSetting{Table: l.made.Dir, Overlay: filepath.Join(dir, "overlay")}
	config := skomer.Config{OverlayRoot: "unused", MaxStaleness: time.Nanosecond, MinPlannedFiles: -1, MinPlannedScanBytes: -1, CacheBytes: 16 << 20}
	if kind == "s3" || kind == "seaweed" {
		var o s3.Options
		if kind == "s3" {
			o = s3test.Start(t, nil, "overlays").Options
		} else {
			o = s3test.Seaweed(t, "overlays")
		}
		l.setting.S3, l.setting.Overlay = &lifeServer{o.Endpoint, o.Region, o.AccessKey, o.Secret}, "s3://overlays/life"
		config.OverlayStore = map[string]string{
			"s3.endpoint": o.Endpoint, "s3.region": o.Region, "s3.access-key-id": o.AccessKey,
			"s3.secret-access-key": o.Secret, "s3.path-style-access": "true",
		}
	}
	if kind == "mem" {
		l.setting.Memory, l.setting.Overlay = true, fmt.Sprintf("/life-%d/overlay", rng.Uint64())
		config = config.WithStores(nil, l.setting.overlays())
	}
	c, err := skomer.New(config)
	require.NoError(t, err)
	l.table, err = c.Open(t.Context(), l.made.Dir, skomer.TableOptions{Overlay: l.setting.Overlay})
	require.NoError(t, err)
	t.Cleanup(l.table.Close)
	require.NoError(t, l.table.Mount(t.Context()))
	for range processes {
		l.workers = append(l.workers, l.start())
	}
	t.Cleanup(func() {
		for _, w := range l.workers {
			w.end()
		}
	})
	return l
}

// step does one thing that changes the table or the overlay.
func (l *life) step() {
	l.tally.steps++
	for i, w := range l.workers {
		if w.paused > 0 {
			if w.paused--; w.paused == 0 {
				require.NoError(l.t, w.cmd.Process.Signal(syscall.SIGCONT))
				w.doing.Stop = ""
			}
		}
		if w.paused == 0 && w.doing != nil {
			l.wait(i)
		}
	}
	i := l.rng.IntN(len(l.workers))
	if l.rng.IntN(3) == 0 || l.workers[i].doing != nil {
		l.change()
		return
	}
	l.operate(i)
}

// change changes the table.
func (l *life) change() {
	before := len(l.made.Steps)
	if l.rng.IntN(3) == 0 {
		l.made.Append(l.t, 2)
	} else {
		l.made.Evolve(l.t)
	}
	for _, s := range l.made.Steps[before:] {
		l.note("table: %s", s)
		l.tally.ops["table: "+strings.Fields(s)[0]]++
	}
}

// operate lets a process do something, sometimes until it is killed or paused in the midst of it, sometimes side by side with another.
func (l *life) operate(i int) {
	c := l.command()
	if c.Op == "" {
		l.change()
		return
	}
	c.Faults = l.rng.IntN(3) > 0
	if l.rng.IntN(4) == 0 && !l.setting.Memory {
		c.Stop, c.Nth, c.After = []string{"pause", "kill"}[l.rng.IntN(2)], 1+l.rng.Int64N(5), l.rng.IntN(2) == 0
	}
	require.NoError(l.t, l.workers[i].send(c))
	if j := l.rng.IntN(len(l.workers)); j != i && l.workers[j].doing == nil {
		if d := l.command(); d.Op != "" {
			l.tally.steps++
			require.NoError(l.t, l.workers[j].send(d))
			l.wait(j)
		}
	}
	l.wait(i)
}

// command draws an operation.
func (l *life) command() lifeCommand {
	named := func(op string) lifeCommand {
		all, err := l.table.Indexes(l.t.Context())
		if err != nil || len(all) < 6 {
			return lifeCommand{}
		}
		return lifeCommand{Op: op, Arg: all[l.rng.IntN(len(all))].ID}
	}
	switch n := l.rng.IntN(34); {
	case n == 33:
		return lifeCommand{Op: "erase"}
	case n >= 30:
		return named([]string{"purge", "silence", "resume"}[n-30])
	case n >= 20:
		return lifeCommand{Op: []string{
			"sweep", "consolidate", "consolidate", "repair", "scrub", "reindex", "vacuum", "vacuum", "vacuum", "rollback",
		}[n-20]}
	case n < 9:
		return lifeCommand{Op: "sync"}
	case n < 14:
		expr := l.declaration()
		if expr == "" {
			return lifeCommand{Op: "sync"}
		}
		return lifeCommand{Op: "add", Arg: expr}
	case n < 17:
		return named("drop")
	case n < 18:
		return lifeCommand{Op: "unmount"}
	default:
		return lifeCommand{Op: "reopen"}
	}
}

// declaration is an index that the table's columns allow. Kinds for few types are as likely as those for all.
func (l *life) declaration() string {
	schema := l.made.Schema()
	var columns []string
	schema.Walk(func(p column.Path) bool {
		columns = append(columns, quote(p))
		return true
	})
	var all [][]string // by kind
	for _, k := range kinds.All() {
		var allowed []string
		for _, c := range columns {
			for _, of := range []string{c, c + ", " + columns[l.rng.IntN(len(columns))]} {
				if expr := k.Name + "(" + of + ")"; allows(schema, expr) {
					allowed = append(allowed, expr)
				}
			}
		}
		if len(allowed) > 0 {
			all = append(all, allowed)
		}
	}
	if len(all) == 0 {
		return ""
	}
	of := all[l.rng.IntN(len(all))]
	return of[l.rng.IntN(len(of))]
}

func allows(schema *column.Schema, expr string) bool {
	_, err := kinds.ParseExpr(expr, schema)
	return err == nil
}

// check holds answers of this process, and of an idle one under faults, against the oracle.
func (l *life) check() {
	view := l.made.Current()
	if l.rng.IntN(3) == 0 {
		view = l.made.Past()
	}
	e := l.filter(view)
	want := view.Answer(e)
	q := ways[l.rng.IntN(len(ways))]
	q.Where, q.At = e.SQL(), view.At
	got, stats := positions(l.t, l.table, q)
	if describe(got) != describe(want) {
		l.explain(q, got, want)
		l.fail("at %q NoIndex %v NoPrune %v Strict %v: %s\n%s\nstats %+v", q.At, q.NoIndex, q.NoPrune, q.Strict, q.Where,
			difference(view.Table, got, want), stats)
	}
	l.tally.asked++
	l.tally.indexed += len(stats.IndexesUsed)
	for _, expr := range stats.IndexesUsed {
		kind, of, _ := strings.Cut(expr, "(")
		l.tally.ops["answer: "+kind]++
		if strings.Contains(of, ", ") {
			l.tally.ops["answer: several columns"]++
		}
	}
	if len(want) > 0 {
		l.tally.nonEmpty++
	}
	for i, w := range l.workers {
		if w.doing != nil || l.rng.IntN(2) > 0 {
			continue
		}
		require.NoError(l.t, w.send(lifeCommand{Op: "query", Arg: q.Where, At: q.At, Faults: true}))
		if r, _ := l.wait(i); r.Err == "" && r.Answer != describe(want) {
			l.fail("a process answered %s to %s at %q, and should %s", r.Answer, q.Where, q.At, describe(want))
		}
		return
	}
}

// pattern draws a filter that an index of parts of texts can answer, where there is such an index.
func (l *life) pattern(view tabletest.View, all []skomer.Index) (e tabletest.Expr, ok bool) {
	for _, x := range all {
		for range 100 {
			if x.Kind != "ngram" {
				break
			}
			e = view.Expr(0)
			if sql := e.SQL(); strings.Contains(sql, columnOf(x)) && strings.Contains(sql, "LIKE '%") {
				return e, true
			}
		}
	}
	return e, false
}

// columnOf is the first column of an index as filters name it.
func columnOf(x skomer.Index) string {
	return strings.ReplaceAll(strconv.Quote(x.Columns[0]), ".", `"."`)
}

// filter draws a filter, mostly one on a column that is indexed.
func (l *life) filter(view tabletest.View) tabletest.Expr {
	all, err := l.table.Indexes(l.t.Context())
	if e, ok := l.pattern(view, all); ok && l.rng.IntN(2) == 0 {
		return e
	}
	e := view.Expr(l.rng.IntN(3))
	for range 6 {
		for _, x := range all {
			if strings.Contains(e.SQL(), columnOf(x)) {
				return e
			}
		}
		if err == nil {
			e = view.Expr(l.rng.IntN(3))
		}
	}
	return e
}

// explain notes what the planner says of files whose rows are wrong.
func (l *life) explain(q skomer.Query, got, want map[string][]int) {
	x, err := l.table.Explain(l.t.Context(), q, false)
	if err != nil {
		l.note("not explained: %v", err)
		return
	}
	for _, f := range x.Files {
		if !slices.Equal(got[f.Path], want[f.Path]) {
			l.note("%+v", f)
		}
	}
	for _, use := range x.Indexes {
		l.note("%+v", use)
	}
	st, prefix, err := l.setting.overlays()(l.setting.Overlay)
	require.NoError(l.t, err)
	v, err := overlay.Open(st, prefix, overlay.Options{}).Latest(l.t.Context())
	require.NoError(l.t, err)
	for _, f := range x.Files {
		if slices.Equal(got[f.Path], want[f.Path]) {
			continue
		}
		for _, p := range v.Find(f.Path) {
			a, ok := v.Artifact(p.At)
			l.note("artifact %+v of %+v %v: first %d of %d, %d rows", a.Columns, v.Indexes()[p.Index], ok, p.First, a.Rows, p.Rows)
		}
	}
	for _, r := range x.Rejected {
		l.note("rejected: %+v", r)
	}
}

// rest lets every process come to its end.
func (l *life) rest() {
	l.wake()
	for i, w := range l.workers {
		for w.doing != nil && w == l.workers[i] {
			if _, ended := l.wait(i); !ended {
				l.wake()
			}
		}
	}
}

// settle brings the overlay to the table without faults, and demands that everything is covered.
func (l *life) settle() {
	l.rest()
	ctx := l.t.Context()
	require.NoError(l.t, l.table.Mount(ctx)) // an unmount may have been cut short
	report, err := l.table.Sync(ctx, skomer.SyncOptions{})
	if err != nil {
		l.fail("a sync without faults: %v", err)
	}
	status, err := l.table.Status(ctx)
	require.NoError(l.t, err)
	if len(status.Warnings) > 0 || len(status.Rejected) > 0 {
		l.note("it said: %+v", *report)
		for _, x := range status.Indexes {
			l.note("%s covers %d of %d, %s %s", x.Expr, x.Covered, x.Total, x.Problem, x.Paused)
		}
		l.fail("after a sync without faults: warnings %v, rejected %v", status.Warnings, status.Rejected)
	}
	defer l.clean()
	if status.Backlog.Files > 0 {
		for _, x := range status.Indexes {
			l.note("%s covers %d of %d", x.Expr, x.Covered, x.Total)
		}
		l.fail("after a sync without faults %d files lack an index", status.Backlog.Files)
	}
}

// clean vacuums without faults and demands that the bundles that are left are those that the newest version names: no more, no less.
func (l *life) clean() {
	if l.t.Failed() {
		return
	}
	ctx := l.t.Context()
	for range 2 { // the first retires artifacts that the version before it names; the second deletes their bundles
		report, err := l.table.Vacuum(ctx, skomer.VacuumOptions{Retain: 1, Grace: -1, AllowEmpty: true})
		if err != nil {
			l.fail("a vacuum without faults: %v", err)
		}
		l.note("vacuum deleted %v and kept %v", report.Deleted, report.Kept)
	}
	st, prefix, err := l.setting.overlays()(l.setting.Overlay)
	require.NoError(l.t, err)
	over := overlay.Open(st, prefix, overlay.Options{})
	v, err := over.Latest(ctx)
	require.NoError(l.t, err)
	building, err := over.InFlight(ctx) // by processes that were killed a moment ago
	require.NoError(l.t, err)
	named := map[string]bool{}
	v.Each(func(a overlay.ArtifactInfo) bool {
		if d, ok := v.Index(a.IndexID); ok {
			l.tally.ops["kept: "+d.Kind]++
		}
		named[a.Bundle] = true
		return true
	})
	for _, d := range v.EveryDerived() {
		if strings.HasPrefix(d.Key, "data/") {
			named[prefix+"/"+d.Key] = true
		}
		if m, err := filemap.ParseMeta(d.Name, d.Meta); d.Kind == filemap.Kind && err == nil && m.Values != nil {
			l.tally.ops["value map"]++
		} else if d.Kind == filemap.Kind && err == nil {
			l.tally.ops["fingerprint run"]++
		}
	}
	for after := ""; ; {
		page, err := st.List(ctx, prefix+"/data/", after, 1000)
		require.NoError(l.t, err)
		for _, in := range page {
			name := strings.TrimPrefix(in.Key, prefix+"/data/")
			declared := slices.ContainsFunc(building, func(f overlay.InFlight) bool { return strings.HasPrefix(name, f.BuildID) })
			if !named[in.Key] && !declared && !strings.HasPrefix(name, "clock-") { // another vacuum may be looking at the clock
				l.fail("vacuum left %s, which nothing names", in.Key)
			}
			delete(named, in.Key)
			after = in.Key
		}
		if len(page) < 1000 {
			break
		}
	}
	if len(named) > 0 {
		l.fail("vacuum deleted %v, which version %d names", slices.Sorted(maps.Keys(named)), v.Number())
	}
	l.tally.ops["clean"]++
}

// TestLifeOfAnOverlay is the metamorphic test of everything that changes a table or an overlay: random histories, by several processes
// at the same time, which fail, pause and die, never change an answer, and end in an overlay that is whole. SKOMER_LIFE_STEPS is how
// long it goes on.
func TestLifeOfAnOverlay(t *testing.T) {
	rng, _ := seeded(t)
	steps := 300
	if s := os.Getenv("SKOMER_LIFE_STEPS"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		steps = n
	}
	all := newTally()
	for life := 0; all.steps < steps && !t.Failed(); life++ {
		kind := []string{"local", "mem", "local", "s3"}[life%4]
		t.Run(fmt.Sprintf("%d %s", life, kind), func(t *testing.T) {
			newLife(t, rng, kind, 2+rng.IntN(3), all).run(min(150, steps-all.steps))
		})
	}
	if !t.Failed() {
		all.report(t, steps)
	}
}

// TestInteropLifeOnSeaweedFS is the same with the overlay on a real S3 server. It goes on until what it is about has happened.
func TestInteropLifeOnSeaweedFS(t *testing.T) {
	rng, _ := seeded(t)
	all := newTally()
	l := newLife(t, rng, "seaweed", 3, all)
	happened := func() bool {
		return all.indexed > 0 && all.stops["killed"] > 0 && all.faults["overlay timed out after success"] > 0
	}
	for l.run(300); !happened(); l.run(50) {
		require.Less(t, all.steps, 2000, "%d index answers, stopped %v, faults %v", all.indexed, all.stops, all.faults)
	}
}

// run lives for so many steps.
func (l *life) run(steps int) {
	for end := l.tally.steps + steps; l.tally.steps < end; {
		l.step()
		if l.rng.IntN(2) == 0 {
			l.check()
		}
		if l.rng.IntN(40) == 0 {
			l.settle()
		}
	}
	l.settle()
	for range 5 {
		l.check()
	}
}
