package skomer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/predicate"
)

// use tells what an index contributes.
func (r *Rows) use(d overlay.Definition) IndexUse {
	u := IndexUse{Expr: exprOf(d)}
	used, missing := false, false
	for _, id := range r.plan.Report.Used {
		used = used || id == d.ID
	}
	for _, id := range r.plan.Report.Missing {
		missing = missing || id == d.ID
	}
	switch {
	case used && missing:
		u.Use, u.Reason = "partly", "ruled out rows, but does not cover every file left: run skomer sync"
	case used:
		u.Use, u.Reason = "used", "ruled out files, or rows of files"
	case missing:
		u.Use, u.Reason = "silent", "covers no file left: run skomer sync"
	case r.couldSpeak(d):
		u.Use, u.Reason = "silent", "ruled nothing out, or other evidence was enough"
	default:
		u.Use, u.Reason = "no use", r.unable(d)
	}
	for _, x := range r.plan.Report.Unasked {
		if x.Index == d.ID && !used {
			u.Use, u.Reason = "not asked", x.Why
			if x.Stopped {
				u.Use = "stopped"
			}
		}
	}
	if r.plan.Report.Scanned != "" && r.couldSpeak(d) {
		u.Use, u.Reason = "silent", r.plan.Report.Scanned
	}
	return u
}

// unable is why an index can say nothing of the filter.
func (r *Rows) unable(d overlay.Definition) string {
	k, known := kinds.ByName(d.Kind)
	cols, there := columnsOf(r.plan.Snapshot.Schema, d)
	if !known || !there {
		return unbuildable(r.plan.Snapshot.Schema, d)
	}
	var tests []string
	r.plan.Predicate.Leaves(func(l *predicate.Leaf) {
		if slices.ContainsFunc(cols, func(c column.Path) bool { return c[0].ID == l.Column.Path[0].ID }) {
			tests = append(tests, brief(l))
		}
	})
	if len(tests) == 0 {
		return "the filter does not test " + strings.Join(d.Names, " or ")
	}
	return fmt.Sprintf("does not answer %s; %s is for %s", strings.Join(tests, " or "), d.Kind, k.Purpose)
}

func (r *Rows) couldSpeak(d overlay.Definition) bool {
	could := false
	r.plan.Predicate.Leaves(func(l *predicate.Leaf) { could = could || r.speaks(d, l) })
	return could
}

// speaks tells whether an index can say something of a leaf.
func (r *Rows) speaks(d overlay.Definition, l *predicate.Leaf) bool {
	k, ok := kinds.ByName(d.Kind)
	if !ok {
		return false
	}
	cols, ok := columnsOf(r.plan.Snapshot.Schema, d)
	return ok && k.Kind.Says(cols, l) != index.Nothing
}

// unindexed is the leaves of which no index can say anything.
func (r *Rows) unindexed() (out []string) {
	r.plan.Predicate.Leaves(func(l *predicate.Leaf) {
		if !slices.ContainsFunc(r.version.Indexes(), func(d overlay.Definition) bool { return r.speaks(d, l) }) {
			out = append(out, brief(l))
		}
	})
	return slices.Compact(out)
}

// brief is a leaf without the end of a long list of values.
func brief(l *predicate.Leaf) string {
	const most = 80
	text := []rune(l.String())
	if len(text) > most {
		return string(text[:most-1]) + "…"
	}
	return string(text)
}
