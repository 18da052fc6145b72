package maintain

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/build"
	"github.com/skomerdb/skomer/internal/bundle"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/faulty"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/wave"
)

// eraser is an erasure of the world's overlay by way of a store, of the files that are to be forgotten, beside those that are not.
func (w *world) eraser(st *faulty.Store, forget, keep []string) *Erase {
	known := map[DataFile]bool{}
	for _, f := range forget {
		known[DataFile{f, 9, 5}] = true
	}
	for _, f := range keep {
		known[DataFile{f, 9, 5}] = false
	}
	o := overlay.Open(st, "o", overlay.Options{Now: func() int64 { return w.clock().UnixMilli() }})
	return &Erase{Vacuum: &Vacuum{Overlay: o, Store: st, AllowEmpty: true}, Known: known}
}

// erasable is a world in which an erasure has something of every sort to forget, and something to keep.
func erasable(t *testing.T) *world {
	w := newWorld(t, randomOf(t))
	w.build("a", "b")
	w.build("c")
	w.build("d")
	w.begin("never")
	return w
}

// TestAnErasureThatReadsWrongBytesAndIsCutShortLosesNothing inverts a bit of each thing in turn that an erasure reads, and ends it at each
// later operation: whatever it makes of it, what the newest version names is there.
func TestAnErasureThatReadsWrongBytesAndIsCutShortLosesNothing(t *testing.T) {
	ran, lost := 0, 0
	for flip := 1; ; flip++ {
		for cut := 1; ; cut++ {
			w := erasable(t)
			done := 0
			st := faulty.New(w.store, 1,
				faulty.Rule{Op: faulty.Fetch, Nth: flip, Flip: true},
				faulty.Rule{Nth: cut, Err: func(key string) error { done++; return faulty.Class(fault.Invalid)(key) }})
			e := w.eraser(st, []string{"a"}, []string{"b", "c", "d"})
			_, err := e.Run(t.Context())
			e.Vacuum.Overlay.Close()
			w.whole()
			if err != nil {
				lost++
			}
			if ran++; st.Injected()[0] == 0 && done == 0 {
				require.Greater(t, ran, 200)
				require.Greater(t, lost, 100)
				return
			}
			if done == 0 {
				break
			}
		}
	}
}

// TestWhatWasPlannedBeforeAnErasureIsNotWrittenAfterIt: a sync sleeps just before it declares something, for each thing that it declares in
// turn, and wakes up when an erasure has ended that could not know of it. It writes nothing of the files that were forgotten, not even an object
// that no version names.
func TestWhatWasPlannedBeforeAnErasureIsNotWrittenAfterIt(t *testing.T) {
	for nth := 1; ; nth++ {
		g := newGround(t, randomOf(t))
		g.made.Append(t, 3, 50)
		g.mount()
		s := g.snapshot()
		forgotten := s.Files.Stated[0]
		erased := false
		st := faulty.New(g.store, 1, faulty.Rule{
			Op: faulty.PutNew, Nth: nth, Key: func(key string) bool { return strings.Contains(key, "/inflight/") },
			Do: func(context.Context, faulty.Op, string) {
				known := map[DataFile]bool{}
				for i, path := range s.Files.Stated {
					known[DataFile{path, s.Files.Size[i], s.Files.Records[i]}] = path == forgotten
				}
				o := overlay.Open(g.store, "o", overlay.Options{})
				r, err := (&Erase{Vacuum: &Vacuum{Overlay: o, Store: g.store, AllowEmpty: true}, Known: known}).Run(t.Context())
				o.Close()
				require.NoError(t, err)
				require.Empty(t, r.Left)
				erased = true
			},
		})
		o := overlay.Open(st, "o", overlay.Options{})
		y := Syncer{
			Overlay: o, Store: st, Phases: []Phase{MergeSketches(), MapFiles(wave.NewRuns(1 << 20)), Consolidate(g.consolidator(s))},
			Build: &build.Builder{Store: local.New(), Footers: parquetio.NewFooters(1 << 20), TempDir: t.TempDir()},
		}
		_, err := y.Sync(t.Context(), s)
		o.Close()
		require.NoError(t, err)
		if !erased {
			require.Greater(t, nth, 2)
			return
		}
		g.holdsNothingOf(forgotten)
	}
}

// holdsNothingOf requires that no bundle and no run of the store was built from a file.
func (g *ground) holdsNothingOf(path string) {
	g.Helper()
	infos, err := listAll(g.Context(), g.store, "o/")
	require.NoError(g, err)
	for _, in := range infos {
		switch {
		case strings.HasPrefix(in.Key, "o/stats/"):
			v, err := g.o.Latest(g.Context())
			require.NoError(g, err)
			names := map[string]bool{}
			for _, d := range v.EveryDerived() {
				names["o/"+d.Key] = true
			}
			require.True(g, names[in.Key], "%s is left", in.Key)
		case strings.Contains(in.Key, "-map"):
			raw := g.store.Fetch(g.Context(), []store.Read{{Key: in.Key}})[0]
			require.NoError(g, raw.Err)
			key := filemap.PathKey(path)
			require.NotContains(g, string(raw.Data[0]), string(key[:]), in.Key)
		case strings.HasPrefix(in.Key, "o/data/") && in.Size > 0:
			b, err := bundle.Open(g.Context(), g.store, in.Key)
			require.NoError(g, err)
			for i := range b.Artifacts {
				records, errs := b.Lineages(g.Context(), []int{i})
				require.NoError(g, errs[0])
				for _, f := range records[0].Files {
					require.NotEqual(g, path, f.Path, in.Key)
				}
			}
		}
	}
}
