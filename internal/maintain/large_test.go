package maintain

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/build"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/store/faulty"
	"github.com/skomerdb/skomer/internal/store/local"
)

// TestALargeFileIsIndexedByProcessesThatDieEarly: no process lives until all indexes of a file are built. Each publishes those of a column, and
// the next goes on from there; no column is read twice.
func TestALargeFileIsIndexedByProcessesThatDieEarly(t *testing.T) {
	rnd := randomOf(t)
	g := newGround(t, rnd)
	for g.made.Append(t, 1, 50); g.snapshot().Files.Records[0] == 0; g.made.Append(t, 1, 50) {
		g = newGround(t, rnd)
	}
	g.mount() // with indexes of every kind on one column
	s := g.snapshot()
	for _, f := range s.Schema.Fields[1:] {
		d, err := kinds.ParseExpr("bloom("+`"`+f.Name+`"`+")", s.Schema)
		if err != nil {
			continue
		}
		_, err = g.o.Commit(t.Context(), nil, overlay.AddIndex(overlay.Definition{Kind: d.Name, KindVersion: d.Version, FieldIDs: []int{f.ID}, Params: d.Params}))
		require.NoError(t, err)
	}
	live := func() error {
		ctx, die := context.WithCancel(t.Context())
		defer die()
		st := faulty.New(g.store, 1, faulty.Rule{
			Op: faulty.PutNew, Nth: 2, Do: func(context.Context, faulty.Op, string) { die() },
			Key: func(key string) bool { return strings.HasSuffix(key, ".puffin") && !strings.Contains(key, "-map") },
		})
		o := overlay.Open(st, "o", overlay.Options{})
		defer o.Close()
		y := Syncer{Overlay: o, Store: st, largeRows: 1, Build: &build.Builder{Store: local.New(), Footers: parquetio.NewFooters(1 << 20), TempDir: t.TempDir()}}
		_, err := y.Sync(ctx, s)
		return err
	}
	covered := func() map[int]int {
		v, err := g.o.Latest(t.Context())
		require.NoError(t, err)
		out := map[int]int{}
		for _, p := range v.Find(s.Files.Stated[0]) {
			out[v.Indexes()[p.Index].FieldIDs[0]]++
		}
		return out
	}
	for before, died := 0, true; died; {
		err := live()
		now := len(covered())
		if died = err != nil; died {
			require.Equal(t, before+1, now, err)
		}
		before = now
	}
	require.Greater(t, len(covered()), 1)
	v, err := g.o.Latest(t.Context())
	require.NoError(t, err)
	found := v.Find(s.Files.Stated[0])
	records, errs := (&run{Syncer: &Syncer{Store: g.store}}).records(t.Context(), infosOf(v, found))
	for i, rec := range records {
		require.NoError(t, errs[i])
		require.Len(t, rec.ReadFieldIDs, 1)
	}
	g.live()
}

// TestALargeFileIsCountedOnce: another process builds the indexes of one of its columns meanwhile, and gives up.
func TestALargeFileIsCountedOnce(t *testing.T) {
	rnd := randomOf(t)
	for range 5 {
		g := newGround(t, rnd)
		for g.made.Append(t, 1, 50); g.snapshot().Files.Records[0] == 0; g.made.Append(t, 1, 50) {
			g = newGround(t, rnd)
		}
		g.mount()
		s := g.snapshot()
		for _, f := range s.Schema.Fields {
			if d, err := kinds.ParseExpr("bloom("+`"`+f.Name+`"`+")", s.Schema); err == nil {
				_, err = g.o.Commit(t.Context(), nil, overlay.AddIndex(overlay.Definition{Kind: d.Name, KindVersion: d.Version, FieldIDs: []int{f.ID}, Params: d.Params}))
				require.NoError(t, err)
			}
		}
		v, err := g.o.Latest(t.Context())
		require.NoError(t, err)
		held := overlay.InFlight{BuildID: "beside", StartedMs: 1, Files: []string{fileHash(s.Files.Stated[0])}}
		for _, d := range v.Indexes() {
			if d.FieldIDs[0] != v.Indexes()[0].FieldIDs[0] {
				held.Indexes = append(held.Indexes, d.ID)
			}
		}
		other, err := begin(t.Context(), overlay.Open(g.store, "o", overlay.Options{}), held)
		require.NoError(t, err)
		var once sync.Once
		var last Progress
		y := Syncer{
			Overlay: overlay.Open(g.store, "o", overlay.Options{}), Store: g.store, largeRows: 1,
			Build: &build.Builder{Store: local.New(), Footers: parquetio.NewFooters(1 << 20), TempDir: t.TempDir()},
			Progress: func(p Progress) {
				if p.RowsDone > 0 && p.RowsDone == last.RowsDone { // another round begins
					once.Do(func() { require.NoError(t, other.end(t.Context())) })
				}
				last = p
			},
		}
		r, err := y.Sync(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, s.Files.Len(), r.Files)
		require.Equal(t, last.FilesTotal, last.FilesDone)
	}
}

func infosOf(v *overlay.Version, found []overlay.Placement) (out []overlay.ArtifactInfo) {
	for _, p := range found {
		info, _ := v.Artifact(p.At)
		out = append(out, info)
	}
	return out
}

// TestIndexesThatShareColumnsAreBuiltTogether holds sets of indexes against the components of their graph.
func TestIndexesThatShareColumnsAreBuiltTogether(t *testing.T) {
	rnd := randomOf(t)
	g := newGround(t, rnd)
	s := g.snapshot()
	var ids []int
	for _, f := range s.Schema.Fields {
		if _, err := kinds.ParseExpr("ordered("+`"`+f.Name+`"`+")", s.Schema); err == nil {
			ids = append(ids, f.ID)
		}
	}
	require.Greater(t, len(ids), 1)
	r := &run{Syncer: &Syncer{}, snapshot: s}
	for range 200 {
		var all []overlay.Definition
		for range 1 + rnd.IntN(6) {
			some := slices.Clone(ids)
			rand.New(rnd).Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
			all = append(all, overlay.Definition{Kind: "ordered", FieldIDs: some[:1+rnd.IntN(min(2, len(some)))]})
		}
		of := map[int]int{} // set by column
		n := 0
		for i, set := range r.apart(all) {
			n += len(set)
			mine := map[int]bool{}
			for k, d := range set {
				linked := k == 0
				for _, id := range d.FieldIDs {
					was, there := of[id]
					require.True(t, !there || was == i, "column %d is read twice", id)
					of[id] = i
					linked = linked || mine[id]
				}
				for _, e := range set[k+1:] {
					linked = linked || slices.ContainsFunc(e.FieldIDs, func(id int) bool { return slices.Contains(d.FieldIDs, id) })
				}
				require.True(t, linked, "%v: nothing of %v is read by another of its set", all, d.FieldIDs)
				for _, id := range d.FieldIDs {
					mine[id] = true
				}
			}
		}
		require.Equal(t, len(all), n)
	}
}
