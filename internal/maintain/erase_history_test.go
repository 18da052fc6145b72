package maintain

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store/faulty"
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
