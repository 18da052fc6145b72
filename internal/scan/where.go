package scan

import (
	"context"
	"math"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/mask"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Evidence asks the indexes of an overlay where the keys of equality deletes may be. It implements mask.Evidence.
type Evidence struct {
	Planner *Planner
	Version *overlay.Version // mounted
}

// Where is the rows of data files that may satisfy t, by index evidence alone, and the tag of the bytes that it is about.
func (x *Evidence) Where(ctx context.Context, s *facts.Snapshot, t *predicate.Tree, files []int) ([]mask.Where, error) {
	out := make([]mask.Where, len(files))
	p := &Plan{Snapshot: s, Predicate: t}
	for _, i := range files {
		if n := s.Files.Records[i]; n < 0 || n > math.MaxUint32 {
			return out, nil
		}
		n := uint32(s.Files.Records[i])
		p.Files = append(p.Files, File{Ordinal: i, Path: s.Files.Path[i], Size: s.Files.Size[i], Records: n, Verdict: rowset.Maybe(n)})
	}
	e := x.Planner.evidence(p, x.Version, Options{})
	if !e.usable() {
		return out, nil
	}
	answers, err := e.answers(ctx)
	if err != nil {
		return nil, err
	}
	for i := range p.Files {
		f := &p.Files[i]
		e.conclude1(f, answers[i])
		if f.Indexed && f.Tag != "" {
			out[i] = mask.Where{Rows: f.Verdict.May, Tag: f.Tag}
		}
	}
	return out, nil
}
