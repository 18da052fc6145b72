package maintain

import (
	"context"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index/sketch"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/wave"
)

// resume takes the sketch made before into u and returns the pieces that it lacks; ok is false where it holds one that is no longer
// live, or cannot be read.
func (m *merging) resume(ctx context.Context, old overlay.Derived, pieces []piece, u *sketch.Union) (rest []piece, ok bool) {
	s, sources, err := readDerived(ctx, m.Store, m.Overlay.Prefix(), old)
	if err != nil {
		return nil, false
	}
	have := map[uint64]bool{}
	for _, n := range sources {
		have[n] = true
	}
	for _, p := range pieces {
		if have[p.name] {
			delete(have, p.name)
			continue
		}
		rest = append(rest, p)
	}
	return rest, len(have) == 0 && s.Encoding() == m.want && u.Add(s) == nil
}

// add reads the sketches of pieces in as many waves as one takes, and adds them. One with values of another type is left out: the sketch
// then speaks for fewer rows. So is one that cannot be read; the next sync tries it again.
func (m *merging) add(ctx context.Context, u *sketch.Union, pieces []piece, failed map[uint64]bool) error {
	loads := make([]*loading, len(pieces))
	tasks := make([]*wave.Task, len(pieces))
	for i := range pieces {
		loads[i] = &loading{info: &pieces[i].info}
		tasks[i] = &wave.Task{Key: pieces[i].info.Bundle, Steps: loads[i]}
		if root := pieces[i].info.RootInline; root != nil {
			tasks[i].Err = loads[i].open(root)
		}
	}
	if err := wave.Run(ctx, m.Store, tasks); err != nil {
		return err
	}
	for i, l := range loads {
		err := tasks[i].Err
		other := err == nil && l.inner.Sketch().Encoding() != m.want
		switch {
		case other:
			err = fault.New(fault.Unsupported, pieces[i].info.Bundle, "holds values of the column's earlier type")
		case err == nil:
			err = u.Add(l.inner.Sketch())
		}
		failed[pieces[i].name] = err != nil && !other
		if err != nil {
			m.Report.Declined[pieces[i].info.IndexID] = "not in the table's sketch: " + err.Error()
		}
	}
	return nil
}

// loading reads one artifact: its root where the overlay does not hold it, then its sketches.
type loading struct {
	info  *overlay.ArtifactInfo
	inner *sketch.Loading
}

func (l *loading) Need() []store.Span {
	if l.inner == nil {
		return []store.Span{{Off: l.info.Root.Off, Len: l.info.Root.Len}}
	}
	var out []store.Span
	for _, s := range l.inner.Need() {
		out = append(out, store.Span{Off: l.info.Body.Off + s.Off, Len: s.Len})
	}
	return out
}

func (l *loading) Feed(data [][]byte) error {
	if l.inner == nil {
		return l.open(data[0])
	}
	return l.inner.Feed(data)
}

func (l *loading) open(root []byte) error {
	if err := bytescan.CheckCRC("sketch root", root, l.info.Root.CRC); err != nil {
		return err
	}
	r, err := sketch.OpenRoot(root)
	if err == nil && r.Rows != int64(l.info.Rows) {
		err = fault.New(fault.Corrupt, l.info.Bundle, "sketch of %d rows, of a segment of %d", r.Rows, l.info.Rows)
	}
	if err == nil {
		l.inner = r.Load()
	}
	return err
}
