package maintain

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/build"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/store/mem"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// However large appends are, and however long they go on, no byte is written more than three times and few bundles are left.
func TestTiersWriteEveryByteAtMostThreeTimes(t *testing.T) {
	rnd := randomOf(t)
	for name, draw := range map[string]func() (rows, files int64){
		"one small file":      func() (int64, int64) { return 1 + rnd.Int64N(1000), 1 },
		"files of 30k rows":   func() (int64, int64) { return 20_000 + rnd.Int64N(20_000), 1 },
		"files of 1M rows":    func() (int64, int64) { return 800_000 + rnd.Int64N(400_000), 1 },
		"several files":       func() (int64, int64) { n := 1 + rnd.Int64N(9); return n * rnd.Int64N(50_000), n },
		"sizes of every kind": func() (int64, int64) { return 1 << rnd.IntN(22), 1 + rnd.Int64N(3) },
	} {
		var live []parcel
		written, appended, most := int64(0), int64(0), 0
		for i := range int64(4000) {
			rows, files := draw()
			weight := max(rows, files*usualTiers.fileRows)
			live = append(live, parcel{bundle: fmt.Sprint(i), sequence: i, weight: weight})
			written, appended = written+weight, appended+weight
			small := 0
			for tasks := usualTiers.tasks(live); len(tasks) > 0; tasks = usualTiers.tasks(live) {
				merged := parcel{bundle: "merged " + tasks[0][0].bundle, sequence: tasks[0][len(tasks[0])-1].sequence}
				gone := map[string]bool{}
				for _, p := range tasks[0] {
					merged.weight += p.weight
					gone[p.bundle] = true
				}
				written += merged.weight
				kept := []parcel{merged}
				for _, p := range live {
					if !gone[p.bundle] {
						kept = append(kept, p)
					}
				}
				live = kept
				require.Less(t, merged.weight, 2*usualTiers.full+usualTiers.full/16)
			}
			for _, p := range live {
				if p.weight < usualTiers.full {
					small++
				}
			}
			most = max(most, small)
		}
		amplification := float64(written) / float64(appended)
		t.Logf("%s: written %.2f times, %d bundles, at most %d of them not full", name, amplification, len(live), most)
		require.LessOrEqual(t, amplification, 3.0, name)
		require.LessOrEqual(t, most, 2*(usualTiers.fanOut-1), name)
	}
}

// ground is a table on disk with an overlay in memory.
type ground struct {
	*testing.T
	made    *tabletest.Table
	o       *overlay.Overlay
	store   store.Store
	tiers   tiering
	seen    map[overlay.Key]bool
	written int64 // bytes of all artifacts that ever were
}

func newGround(t *testing.T, rnd *rand.Rand) *ground {
	t.Helper()
	g := &ground{T: t, made: tabletest.Create(t, rnd, filepath.Join(t.TempDir(), "t")), store: mem.New(), seen: map[overlay.Key]bool{}, tiers: tiering{full: 16 * 200, fanOut: 4, fileRows: 200}}
	g.o = overlay.Open(g.store, "o", overlay.Options{})
	t.Cleanup(g.o.Close)
	return g
}

func (g *ground) snapshot() *facts.Snapshot {
	g.Helper()
	table, err := lake.New(lake.Options{Resolve: func(location string) (store.Store, string, error) { return local.New(), location, nil }}).Open(g.Context(), g.made.Dir)
	require.NoError(g, err)
	s, err := table.Snapshot(g.Context(), lake.Current())
	require.NoError(g, err)
	return s
}

// mount mounts the table with an index of every kind on its id.
func (g *ground) mount() {
	g.Helper()
	s := g.snapshot()
	_, err := g.o.Commit(g.Context(), nil, overlay.Mount(overlay.Table{UUID: s.TableUUID, Location: g.made.Dir}, Upstream(s, time.Time{})))
	require.NoError(g, err)
	for _, k := range kinds.All() {
		d, err := kinds.ParseExpr(k.Name+"(id)", s.Schema)
		if err != nil {
			continue
		}
		_, err = g.o.Commit(g.Context(), nil, overlay.AddIndex(overlay.Definition{Kind: d.Name, KindVersion: d.Version, FieldIDs: []int{1}, Params: d.Params}))
		require.NoError(g, err)
	}
}

func (g *ground) sync(s *facts.Snapshot, phases ...Phase) *Report {
	g.Helper()
	y := Syncer{
		Overlay: g.o, Store: g.store, Phases: phases,
		Build: &build.Builder{Store: local.New(), Footers: parquetio.NewFooters(1 << 20), TempDir: g.TempDir()},
	}
	r, err := y.Sync(g.Context(), s)
	require.NoError(g, err)
	g.live()
	return r
}

func (g *ground) consolidator(s *facts.Snapshot) Consolidator {
	return Consolidator{Overlay: g.o, Store: g.store, Snapshot: s, TempDir: g.TempDir(), tiers: g.tiers}
}

// check fails unless every index has exactly one artifact of every file of the snapshot, a sync finds nothing to do, and every artifact's
// bytes have their checksums.
func (g *ground) check(s *facts.Snapshot) (bundles int, bytes int64) {
	g.Helper()
	v, err := g.o.Latest(g.Context())
	require.NoError(g, err)
	for _, path := range s.Files.Stated {
		seen := map[string]int{}
		for _, p := range v.Find(path) {
			info, ok := v.Artifact(p.At)
			require.True(g, ok)
			require.True(g, p.Check(&info, p.Identity.Size, p.Identity.Records, "", (&run{snapshot: s}).lineage()).OK())
			seen[p.IndexID]++
		}
		for _, d := range v.Indexes() {
			require.LessOrEqual(g, seen[d.ID], 1, "%s of %s", d.Kind, path)
		}
	}
	require.Zero(g, g.sync(s).Artifacts, "a sync after a consolidation builds something")
	y := Syncer{Overlay: g.o, Store: g.store, Build: &build.Builder{Store: local.New(), Footers: parquetio.NewFooters(1 << 20), TempDir: g.TempDir()}}
	found, err := y.Repair(g.Context(), s, true)
	require.NoError(g, err)
	require.Empty(g, found.Found)
	return g.live()
}

// live is the bundles and the bytes of the artifacts there are; those that are new count as written.
func (g *ground) live() (bundles int, bytes int64) {
	g.Helper()
	v, err := g.o.Latest(g.Context())
	require.NoError(g, err)
	at := map[string]bool{}
	v.Each(func(a overlay.ArtifactInfo) bool {
		at[a.Bundle] = true
		bytes += a.Body.Len + a.Root.Len
		if !g.seen[a.Key()] {
			g.seen[a.Key()] = true
			g.written += a.Body.Len + a.Root.Len
		}
		return true
	})
	return len(at), bytes
}

// TestU53BundlesStayFew: a table that grows file by file keeps few bundles, and few bytes are written for each that lives.
func TestU53BundlesStayFew(t *testing.T) {
	g := newGround(t, randomOf(t))
	g.made.Append(t, 1, 200)
	g.mount()
	for range 40 {
		s := g.snapshot()
		g.sync(s, Phase{Name: "count", Run: func(context.Context, *State) error { g.live(); return nil }}, Phase{Name: "consolidate", Run: func(ctx context.Context, st *State) error {
			c := g.consolidator(s)
			r, err := c.Run(ctx)
			st.Version = r.Version
			return err
		}})
		g.made.Append(t, 1, 200)
	}
	s := g.snapshot()
	g.sync(s)
	bundles, live := g.check(s)
	require.LessOrEqual(t, bundles, 3+3+41/16+1)
	t.Logf("%d bundles of 41 syncs, %d bytes live, %d written, %.2f times", bundles, live, g.written, float64(g.written)/float64(live))
	require.LessOrEqual(t, float64(g.written), 3*float64(live)) // tiers of 4: two merges at most
	v, err := g.o.Latest(t.Context())
	require.NoError(t, err)
	segments := map[string]int{}
	v.Each(func(a overlay.ArtifactInfo) bool {
		d, _ := v.Index(a.IndexID)
		segments[d.Kind]++
		return true
	})
	require.LessOrEqual(t, segments["ordered"], bundles, "segments are merged")
}

// Files that no retained snapshot has leave their segments; those of an older snapshot stay.
func TestConsolidationLeavesOutWhatIsGone(t *testing.T) {
	g := newGround(t, randomOf(t))
	g.made.Append(t, 1, 200)
	g.mount()
	for range 3 {
		g.sync(g.snapshot())
		g.made.Append(t, 1, 200)
	}
	old := g.snapshot()
	g.sync(old)
	g.made.Remove(t)
	s := g.snapshot()
	if len(s.Files.Stated) != 3 {
		t.Fatal("nothing was removed")
	}
	for _, c := range []struct {
		snapshots []*facts.Snapshot
		fails     error
		files     int
	}{{nil, nil, 4}, {[]*facts.Snapshot{s}, fault.New(fault.Denied, "snapshot", "unreadable"), 4}, {[]*facts.Snapshot{s, old}, nil, 4}, {[]*facts.Snapshot{s}, nil, 3}} {
		raw := copyOf(t, g.store)
		o := overlay.Open(raw, "o", overlay.Options{})
		w := g.consolidator(s)
		w.Overlay, w.Store = o, raw
		for _, snap := range c.snapshots {
			w.Snapshots = append(w.Snapshots, func(context.Context) (*facts.Snapshot, error) { return snap, c.fails })
		}
		r, err := w.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, r.Merges)
		v, err := o.Latest(t.Context())
		require.NoError(t, err)
		v.Each(func(a overlay.ArtifactInfo) bool {
			if d, _ := v.Index(a.IndexID); d.Kind == "ordered" {
				require.Equal(t, c.files, a.Files)
			}
			return true
		})
		o.Close()
	}
}

func copyOf(t *testing.T, from store.Store) store.Store {
	t.Helper()
	to := mem.New()
	infos, err := from.List(t.Context(), "", "", 10000)
	require.NoError(t, err)
	for _, in := range infos {
		res := from.Fetch(t.Context(), []store.Read{{Key: in.Key}})[0]
		require.NoError(t, res.Err)
		_, err := to.PutNew(t.Context(), in.Key, bytes.NewReader(res.Data[0]))
		require.NoError(t, err)
	}
	return to
}

// TestU03OtherIncarnationsAreNotMerged: neither the same file twice nor a file that was overwritten gets into one segment with itself, nor
// what was read in another way.
func TestU03OtherIncarnationsAreNotMerged(t *testing.T) {
	of := func(edit func(*member), files ...overlay.Identity) *member {
		m := &member{files: files, rec: &lineage.Record{BlobType: "skomer.ordered.v1", ReadFieldIDs: []int{1}}}
		m.Rows, m.Columns = 10, []lineage.Column{{FieldID: 1, LeafPath: "id", Resolved: "id", Encoding: "key-v1:long"}}
		edit(m)
		return m
	}
	same := func(*member) {}
	file := func(path string, size int64, tag store.Tag) overlay.Identity {
		return overlay.Identity{Path: path, Size: size, Records: 5, Tag: tag}
	}
	group := []*member{of(same, file("a", 1, "x"), file("b", 1, "x"))}
	require.True(t, mergeable(group, of(same, file("c", 1, "x"))))
	for what, m := range map[string]*member{
		"the same file":     of(same, file("c", 1, "x"), file("b", 1, "x")),
		"another tag":       of(same, file("b", 1, "y")),
		"another size":      of(same, file("b", 2, "x")),
		"too many rows":     of(func(m *member) { m.Rows = 1<<32 - 5 }, file("c", 1, "x")),
		"another leaf":      of(func(m *member) { m.Columns[0].LeafPath = "ID" }, file("c", 1, "x")),
		"another encoding":  of(func(m *member) { m.Columns[0].Encoding = "key-v1:int" }, file("c", 1, "x")),
		"other columns":     of(func(m *member) { m.rec.ReadFieldIDs = []int{1, 2} }, file("c", 1, "x")),
		"another blob type": of(func(m *member) { m.rec.BlobType = "skomer.ordered.v2" }, file("c", 1, "x")),
	} {
		require.False(t, mergeable(group, m), what)
	}
}
