package scan

import (
	"context"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
)

// Prove compares the content of files with what artifacts recorded of it.
type Prove func(ctx context.Context, s *facts.Snapshot, v *overlay.Version, file []int, placements []overlay.Placement) ([]lineage.Verdict, error)

// claim is an artifact that speaks for a file.
type claim struct {
	file int
	at   overlay.Place
}

// proves tells that only what content proves counts: strict plans of local tables, whose tags can be restored by whoever may write.
func (e *evidence) proves() bool {
	return e.options.Strict && e.Prove != nil && e.plan.Snapshot.Restorable()
}

// prove compares the files left with what the artifacts that could speak for them were made of.
func (e *evidence) prove(ctx context.Context) error {
	if !e.proves() {
		return nil
	}
	var files []int
	var placements, found []overlay.Placement
	for i := range e.plan.Files {
		found = e.version.AppendFind(found[:0], e.statedPath(i))
		for _, p := range found {
			if e.indexes[p.Index].ok && p.Identity.Tag == e.plan.Files[i].Tag {
				files, placements = append(files, e.plan.Files[i].Ordinal), append(placements, p)
			}
		}
	}
	verdicts, err := e.Prove(ctx, e.plan.Snapshot, e.version, files, placements)
	if err != nil {
		return err
	}
	e.proven = map[claim]lineage.Verdict{}
	for k, v := range verdicts {
		e.proven[claim{files[k], placements[k].At}] = v
	}
	return nil
}
