package scan

import (
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/predicate"
)

// mostBeside is the number of files left up to which it is looked into whether their artifacts answer for less than roots of file maps.
const mostBeside = 32

// mapDearer reports whether file maps would have roots read to answer a leaf while the overlay lists the roots of all artifacts of the same
// index on the files left, which answer it for less: where manifests left few files of many, the root of a file map is about the others.
func (e *evidence) mapDearer(l *predicate.Leaf) bool {
	if e.scene == nil || e.scene.Files > mostBeside || e.options.Strict {
		return false
	}
	field := l.Column.ID()
	if _, known := e.Maps.kept(e.plan.Snapshot, e.version, field); known {
		return false
	}
	roots, bytes := e.Maps.Runs.Unread(e.Prefix, e.version, func(index string) bool { return OnField(e.version, index, field) })
	if roots == 0 {
		return false
	}
	artifacts, all := e.inlined(l)
	return all && !e.scene.RootsPay(roots, bytes, artifacts)
}

// inlined is how many artifacts with roots that the overlay lists answer a leaf on the files that manifests left; all is false where a
// file has none.
func (e *evidence) inlined(l *predicate.Leaf) (artifacts int, all bool) {
	if !e.usable() {
		return 0, false
	}
	some := map[overlay.Place]bool{}
	var found []overlay.Placement
	s := e.plan.Snapshot
	for i, answer := range e.pruning.Answers {
		if answer != plan.Maybe {
			continue
		}
		found = e.version.AppendFind(found[:0], s.Files.Stated[i])
		has := false
		for k := range found {
			p := &found[k]
			if u := &e.indexes[p.Index]; !u.ok || !OnField(e.version, p.IndexID, l.Column.ID()) || u.kind.Says(u.columns, l) == index.Nothing ||
				!e.worth(p.Index, []*predicate.Leaf{l}) {
				continue
			}
			info, ok := e.version.Artifact(p.At)
			if ok && info.RootInline != nil && p.Check(&info, s.Files.Size[i], s.Files.Records[i], "", e.lineage).OK() {
				some[p.At], has = true, true
			}
		}
		if !has {
			return 0, false
		}
	}
	return len(some), true
}
