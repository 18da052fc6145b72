package maintain

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/faulty"
	"github.com/skomerdb/skomer/internal/store/mem"
)

// scenario is a world in which a vacuum has something of every sort to delete.
func scenario(t *testing.T) *world {
	w := newWorld(t, rand.New(rand.NewPCG(1, 2)))
	w.build("a", "b")
	w.commit(overlay.AddIndex(overlay.Definition{Kind: "zonemap", KindVersion: 1, FieldIDs: []int{2}}))
	w.begin("never")
	w.put("data/stray")
	w.pass(5 * hour)
	v, err := w.o.Latest(t.Context())
	require.NoError(t, err)
	old := w.index
	w.index = v.Indexes()[1].ID
	w.build("a")
	w.commit(overlay.DropIndex(old))
	w.pass(5 * hour)
	w.build("b")
	return w
}

// payloads is all objects but chunks, whose number depends on how often a commit was tried.
func (w *world) payloads() []string {
	return slices.DeleteFunc(w.objects(), func(key string) bool {
		return strings.HasPrefix(key, "chunks/") || strings.HasPrefix(key, overlay.MarksFolder+"/")
	})
}

// TestAVacuumThatIsCutShortLosesNothing fails each operation of a vacuum in turn, before and after it happens, and runs again.
func TestAVacuumThatIsCutShortLosesNothing(t *testing.T) {
	c := Vacuum{Retain: 1, Grace: hour, Abandoned: 6 * hour}
	smooth := scenario(t)
	smooth.vacuumed(c)
	want := smooth.payloads()
	require.NotContains(t, want, "data/stray")
	ran := 0
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			w := scenario(t)
			broken := faulty.New(w.store, uint64(n), faulty.Rule{Nth: n, Err: faulty.Class(fault.Invalid), After: after})
			cut := c
			cut.Overlay = overlay.Open(broken, "o", overlay.Options{Now: func() int64 { return w.clock().UnixMilli() }})
			cut.Store = broken
			_, err := cut.Run(t.Context())
			cut.Overlay.Close()
			w.whole()
			if broken.Injected()[0] == 0 {
				require.NoError(t, err)
				break
			}
			ran++
			w.o = overlay.Open(w.store, "o", overlay.Options{})
			w.pass(2 * hour) // what the first run wrote is past the grace period
			w.vacuumed(c)
			require.Equal(t, want, w.payloads(), "operation %d", n)
		}
	}
	require.Greater(t, ran, 30)
}

// TestVacuumHistories runs random histories of builds, deaths, drops, purges, rollbacks, vacuums and erasures with random bounds and faults.
// Whatever happens, what a retained version names is there, and a live build can publish that no erasure revoked; in the end nothing else is
// left.
func TestVacuumHistories(t *testing.T) {
	rnd := randomOf(t)
	rounds := 30
	if s := os.Getenv("SKOMER_ROUNDS"); s != "" {
		rounds, _ = strconv.Atoi(s)
	}
	for range rounds {
		w := newWorld(t, rnd)
		dead := map[string]bool{}
		for range 60 {
			w.pass(time.Duration(rnd.IntN(90)) * time.Minute)
			w.step(dead)
		}
		for id := range maps.Clone(w.open) {
			if !dead[id] && !w.revoked(id) {
				for _, d := range w.finish(id).Discarded {
					require.Equal(t, "file erased", d.Reason)
				}
			}
		}
		w.pass(100 * hour)
		w.vacuumed(Vacuum{Retain: 1, Grace: hour, Abandoned: 24 * hour, AllowEmpty: true})
		w.pass(100 * hour)
		w.vacuumed(Vacuum{Retain: 1, Grace: hour, Abandoned: 24 * hour, AllowEmpty: true})
		named := w.whole()
		for _, key := range w.payloads() {
			require.True(t, named["o/"+key], "%s is left", key)
		}
	}
}

func (w *world) step(dead map[string]bool) {
	some := func() string {
		ids := slices.Sorted(maps.Keys(w.open))
		if len(ids) == 0 {
			return ""
		}
		return ids[w.rnd.IntN(len(ids))]
	}
	file := func() string { return fmt.Sprint("f", w.builds) }
	switch w.rnd.IntN(16) {
	case 0, 1:
		w.begin(file())
	case 2, 3:
		w.build(file())
	case 4, 5:
		if id := some(); id != "" && !dead[id] {
			w.renewAll(dead)
			w.finish(id)
		}
	case 6:
		if id := some(); id != "" {
			dead[id] = true
		}
	case 7:
		w.commit(overlay.DropIndex(w.index))
		w.declare()
	case 8:
		w.rollback()
	case 9, 10:
		w.renewAll(dead)
		w.erase()
	case 11:
		st := w.failing()
		o := overlay.Open(st, "o", overlay.Options{Now: func() int64 { return w.clock().UnixMilli() }})
		_, _ = (&Vacuum{Overlay: o, Store: st}).Purge(w.Context(), w.index)
		o.Close()
		w.whole()
		w.declare()
	default:
		w.renewAll(dead)
		c := Vacuum{
			Retain: w.rnd.IntN(5), RetainFor: time.Duration(w.rnd.IntN(20)) * hour, Grace: time.Duration(w.rnd.IntN(3)) * hour,
			Abandoned: 24 * hour, DryRun: w.rnd.IntN(5) == 0, AllowEmpty: true,
		}
		c.Store = w.failing()
		c.Overlay = overlay.Open(c.Store, "o", overlay.Options{Now: func() int64 { return w.clock().UnixMilli() }})
		_, _ = c.Run(w.Context())
		c.Overlay.Close()
		w.whole()
		for id := range w.open {
			require.True(w, dead[id] || w.revoked(id) || w.has("data/"+id+".puffin"), id)
		}
	}
}

// renewAll renews the declarations of the live builds.
func (w *world) renewAll(dead map[string]bool) {
	for id, b := range w.open {
		if !dead[id] {
			key := "o/inflight/" + id
			tag := w.store.Stat(w.Context(), []string{key})[0].Tag
			_, err := w.o.Renew(w.Context(), overlay.InFlight{BuildID: id, Bundle: b.Bundle}, tag)
			require.NoError(w, err)
		}
	}
}

func (w *world) rollback() {
	v, err := w.o.Latest(w.Context())
	require.NoError(w, err)
	n := v.Oldest() + w.rnd.Uint64N(v.Number()-v.Oldest()+1)
	to, err := w.o.At(w.Context(), n)
	require.NoError(w, err)
	_, err = w.o.Commit(w.Context(), nil, overlay.Rollback(to))
	if fault.Is(err, fault.Refused) {
		return // it is from before an erasure
	}
	require.NoError(w, err)
	w.declare()
}

// declare makes sure that there is an index, and that it is the one that builds under way are of.
func (w *world) declare() {
	v, err := w.o.Latest(w.Context())
	require.NoError(w, err)
	if len(v.Indexes()) == 0 {
		v = w.commit(overlay.AddIndex(overlay.Definition{Kind: "bloom", KindVersion: 1, FieldIDs: []int{1}})).Version
	}
	w.index = v.Indexes()[0].ID
	for id, b := range w.open {
		for i := range b.Artifacts {
			b.Artifacts[i].IndexID = w.index
		}
		w.open[id] = b
	}
}

// failing is the store with faults of random sorts, often none.
func (w *world) failing() *faulty.Store {
	rate := []float64{0, 0.02, 0.2}[w.rnd.IntN(3)]
	return faulty.New(w.store, w.rnd.Uint64(),
		faulty.Rule{Rate: rate, Err: faulty.TimedOut, After: w.rnd.IntN(2) == 0},
		faulty.Rule{Op: faulty.Fetch, Rate: []float64{0, 0.01}[w.rnd.IntN(2)], Flip: true})
}

// erase forgets some of the files.
func (w *world) erase() {
	var forget, keep []string
	for n := range w.builds + 1 {
		if f := fmt.Sprint("f", n); w.rnd.IntN(5) == 0 {
			forget = append(forget, f)
		} else {
			keep = append(keep, f)
		}
	}
	e := w.eraser(w.failing(), forget, keep)
	e.Vacuum.DryRun = w.rnd.IntN(5) == 0
	r, err := e.Run(w.Context())
	e.Vacuum.Overlay.Close()
	named := w.whole()
	if err != nil || e.Vacuum.DryRun || len(r.Left) > 0 {
		return
	}
	for _, key := range w.payloads() {
		require.True(w, named["o/"+key] || strings.HasPrefix(key, "data/"+clockName), "%s is left", key)
	}
}

// revoked tells that an erasure, or a vacuum, took a build for dead.
func (w *world) revoked(id string) bool {
	v, err := w.o.Latest(w.Context())
	require.NoError(w, err)
	return v.Revoked(id)
}

// yielding gives others a chance between any two operations.
type yielding struct{ store.Store }

func (y yielding) Stat(ctx context.Context, keys []string) []store.Info {
	time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
	return y.Store.Stat(ctx, keys)
}

// TestVacuumBesideBuilds lets builders commit while vacuums without any grace period delete: the protocol, not a clock, keeps what is
// about to be named.
func TestVacuumBesideBuilds(t *testing.T) {
	st := faulty.New(mem.New(), 1, faulty.Rule{Rate: 1, Do: func(context.Context, faulty.Op, string) {
		if rand.IntN(4) == 0 {
			time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
		}
	}})
	o := overlay.Open(st, "o", overlay.Options{})
	_, err := o.Commit(t.Context(), nil, overlay.Mount(overlay.Table{UUID: "u", Location: "s3://t"}, overlay.Upstream{}))
	require.NoError(t, err)
	r, err := o.Commit(t.Context(), nil, overlay.AddIndex(overlay.Definition{Kind: "bloom", KindVersion: 1, FieldIDs: []int{1}}))
	require.NoError(t, err)
	index := r.Indexes[0]
	ctx, stop := context.WithCancel(t.Context())
	var builders, vacuums sync.WaitGroup
	for b := range 4 {
		builders.Go(func() {
			o := overlay.Open(yielding{st}, "o", overlay.Options{})
			defer o.Close()
			for n := range 25 {
				id := fmt.Sprintf("b%d-%d", b, n)
				in := buildOf(id, index, "file-"+id)
				_, err := o.Declare(ctx, overlay.InFlight{BuildID: id, Bundle: in.Bundle})
				if err == nil {
					_, err = st.PutNew(ctx, in.Bundle, strings.NewReader(id))
				}
				if err == nil {
					_, err = o.Commit(ctx, nil, overlay.Publish(nil, in))
				}
				if err == nil {
					err = o.Withdraw(ctx, id)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	var ran atomic.Int32
	for range 2 {
		vacuums.Go(func() {
			o := overlay.Open(st, "o", overlay.Options{})
			defer o.Close()
			for ctx.Err() == nil {
				c := Vacuum{Overlay: o, Store: st, Retain: 1, Abandoned: hour, AllowEmpty: true}
				if _, err := c.Run(context.Background()); err != nil {
					t.Error(err)
				}
			}
			ran.Add(1)
		})
	}
	builders.Wait()
	stop()
	vacuums.Wait()
	v, err := overlay.Open(st, "o", overlay.Options{}).Latest(t.Context())
	require.NoError(t, err)
	require.Empty(t, v.Warnings())
	seen := 0
	v.Each(func(a overlay.ArtifactInfo) bool {
		seen++
		require.NoError(t, st.Stat(t.Context(), []string{a.Bundle})[0].Err)
		return true
	})
	require.Equal(t, 100, seen)
	require.Positive(t, ran.Load())
	t.Logf("version %d", v.Number())
}
