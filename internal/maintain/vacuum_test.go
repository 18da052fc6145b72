package maintain

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/bundle"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store/faulty"
	"github.com/skomerdb/skomer/internal/store/mem"
)

// world is an overlay whose store has a clock of its own, and builds under way.
type world struct {
	*testing.T
	rnd    *rand.Rand
	mu     sync.Mutex // of now: heads are written behind commits
	now    time.Time
	store  *mem.Store
	o      *overlay.Overlay
	index  string
	builds int
	open   map[string]overlay.Build // declared, written, not committed
}

func randomOf(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		seed = n
	}
	t.Logf("SKOMER_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 7))
}

func newWorld(t *testing.T, rnd *rand.Rand) *world {
	t.Helper()
	w := &world{T: t, rnd: rnd, now: time.Unix(1_700_000_000, 0), open: map[string]overlay.Build{}}
	w.store = mem.New(mem.WithClock(w.clock))
	w.o = overlay.Open(w.store, "o", overlay.Options{Now: func() int64 { return w.clock().UnixMilli() }})
	t.Cleanup(w.o.Close)
	w.commit(overlay.Mount(overlay.Table{UUID: "u", Location: "s3://t"}, overlay.Upstream{SnapshotID: 1}))
	w.index = w.commit(overlay.AddIndex(overlay.Definition{Kind: "bloom", KindVersion: 1, FieldIDs: []int{1}})).Indexes[0]
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) commit(c ...overlay.Change) *overlay.Receipt {
	w.Helper()
	r, err := w.o.Commit(w.Context(), nil, c...)
	require.NoError(w, err)
	return r
}

func (w *world) put(key string) {
	w.Helper()
	_, err := w.store.PutNew(w.Context(), "o/"+key, strings.NewReader("bytes of "+key))
	require.NoError(w, err)
}

// begin declares a build and writes its bundle and a derived object.
func (w *world) begin(files ...string) string {
	w.Helper()
	w.builds++
	id := fmt.Sprintf("build%04d-x", w.builds)
	b, raw := bundleOf(id, w.index, files...)
	_, err := w.o.Declare(w.Context(), overlay.InFlight{BuildID: id, Bundle: b.Bundle})
	require.NoError(w, err)
	_, err = w.store.PutNew(w.Context(), b.Bundle, bytes.NewReader(raw))
	require.NoError(w, err)
	w.put("runs/" + id)
	w.open[id] = b
	return id
}

// buildOf is a build of files of 9 bytes and 5 rows.
func buildOf(id, index string, files ...string) overlay.Build {
	b, _ := bundleOf(id, index, files...)
	return b
}

// bundleOf is a build and the bytes of its bundle.
func bundleOf(id, index string, files ...string) (overlay.Build, []byte) {
	b := overlay.Build{ID: id, Bundle: "o/data/" + id + ".puffin", SnapshotID: 1, Sequence: 1}
	var raw bytes.Buffer
	w := bundle.NewWriter(&raw, bundle.BuildInfo{BuildID: id, TableUUID: "u", SnapshotID: 1, Sequence: 1})
	for _, path := range files {
		body, err := w.Begin(lineage.Record{
			FormatVersion: 2, IndexID: index, Algorithm: "bloom.v1", TableUUID: "u", FilePath: b.Bundle, Files: []lineage.File{{Path: path, Size: 9, Records: 5, Tag: "t"}},
		})
		if err == nil {
			_, err = body.Write([]byte("values of " + path))
		}
		if err == nil {
			err = w.End([]byte("r"))
		}
		if err != nil {
			panic(err)
		}
	}
	written, err := w.Close()
	if err != nil {
		panic(err)
	}
	for i, x := range written {
		b.Artifacts = append(b.Artifacts, overlay.Artifact{
			IndexID: index, FormatVersion: 2, Files: []overlay.Identity{{Path: files[i], Size: 9, Records: 5, Tag: "t"}},
			Body: x.Body, Root: x.Root, Lineage: x.Lineage, RootInline: x.RootBytes, BodySHA256: x.BodySHA256,
		})
	}
	return b, raw.Bytes()
}

// finish publishes a build and withdraws its declaration.
func (w *world) finish(id string) *overlay.Receipt {
	w.Helper()
	run := overlay.Derived{Kind: "run", Name: id, Index: w.index, Key: "runs/" + id, Build: id}
	r := w.commit(overlay.Publish(nil, w.open[id]), overlay.Derive([]overlay.Derived{run}, nil))
	require.NoError(w, w.o.Withdraw(w.Context(), id))
	delete(w.open, id)
	return r
}

func (w *world) build(files ...string) string {
	id := w.begin(files...)
	w.finish(id)
	return id
}

func (w *world) objects() []string {
	w.Helper()
	infos, err := listAll(context.Background(), w.store, "o/")
	require.NoError(w, err)
	var out []string
	for _, in := range infos {
		if key := strings.TrimPrefix(in.Key, "o/"); !strings.HasPrefix(key, "versions/") && key != overlay.HeadName {
			out = append(out, key)
		}
	}
	return out
}

func (w *world) has(key string) bool { return slices.Contains(w.objects(), key) }

// whole checks that everything which a retained version names is there, as a new process sees it.
func (w *world) whole() (named map[string]bool) {
	w.Helper()
	ctx := context.Background()
	named = map[string]bool{}
	there := map[string]bool{}
	for _, key := range w.objects() {
		there["o/"+key] = true
	}
	p := overlay.Open(w.store, "o", overlay.Options{})
	newest, err := p.Latest(ctx)
	require.NoError(w, err)
	for n := newest.Oldest(); n <= newest.Number(); n++ {
		v, err := p.At(ctx, n)
		require.NoError(w, err, "version %d", n)
		require.Empty(w, v.Warnings(), "version %d", n)
		v.Each(func(a overlay.ArtifactInfo) bool {
			if !newest.Purged()[a.IndexID] {
				require.True(w, there[a.Bundle], "version %d of %d names %s", n, newest.Number(), a.Bundle)
				named[a.Bundle] = true
			}
			return true
		})
		for _, e := range v.Derived("run") {
			if !newest.Purged()[e.Index] {
				require.True(w, there["o/"+e.Key], "version %d of %d names %s", n, newest.Number(), e.Key)
				named["o/"+e.Key] = true
			}
		}
	}
	return named
}

func (w *world) vacuum(c Vacuum) (*VacuumReport, error) {
	w.o.Close()
	c.Overlay, c.Store = w.o, w.store
	return c.Run(w.Context())
}

func (w *world) vacuumed(c Vacuum) *VacuumReport {
	w.Helper()
	r, err := w.vacuum(c)
	require.NoError(w, err)
	w.whole()
	return r
}

const hour = time.Hour

func TestVacuumDeletesWhatNoRetainedVersionNames(t *testing.T) {
	w := newWorld(t, randomOf(t))
	first := w.build("a", "b")
	second := w.build("c")
	other := w.commit(overlay.AddIndex(overlay.Definition{Kind: "zonemap", KindVersion: 1, FieldIDs: []int{1}})).Indexes[0]
	w.pass(48 * hour)
	w.commit(overlay.DropIndex(w.index))
	w.index = other
	third := w.build("a")
	w.pass(2 * hour)
	r := w.vacuumed(Vacuum{Retain: 1, RetainFor: 7 * 24 * hour, Grace: hour, Abandoned: hour, DryRun: true})
	require.Empty(t, r.Deleted, "the versions before the drop are retained")
	want := w.objects()
	r = w.vacuumed(Vacuum{Retain: 1, Grace: hour, Abandoned: hour, DryRun: true})
	require.Equal(t, want, w.objects(), "a dry run changes nothing")
	require.GreaterOrEqual(t, r.Deleted[reasonUnnamed].Objects, 4)
	r = w.vacuumed(Vacuum{Retain: 1, Grace: hour, Abandoned: hour})
	require.Greater(t, r.Expired, 3)
	for _, id := range []string{first, second} {
		require.False(t, w.has("data/"+id+".puffin"))
		require.False(t, w.has("runs/"+id))
	}
	require.True(t, w.has("data/"+third+".puffin"))
	again := w.vacuumed(Vacuum{Retain: 1, Grace: hour, Abandoned: hour})
	require.Equal(t, r.Version, again.Version, "nothing is left to do, and nothing is committed")
	require.Empty(t, again.Deleted)
}

// live is the objects of the newest version with the prefix.
func (w *world) live(prefix string) (out []string) {
	all, err := w.o.Versions(w.Context())
	require.NoError(w, err)
	names, err := w.o.Names(w.Context(), all[:1], nil, nil)
	require.NoError(w, err)
	for key := range names.Chunks {
		if strings.HasPrefix(key, "o/"+prefix) {
			out = append(out, key)
		}
	}
	return out
}

// TestAReaderThatIsBehindIsSpared: what went out of use just now stays for the grace period, however old it is.
func TestAReaderThatIsBehindIsSpared(t *testing.T) {
	w := newWorld(t, randomOf(t))
	id := w.build("a")
	w.pass(1000 * hour)
	old := w.index
	w.index = w.commit(overlay.AddIndex(overlay.Definition{Kind: "zonemap", KindVersion: 1, FieldIDs: []int{1}})).Indexes[0]
	w.build("a")
	w.commit(overlay.DropIndex(old))
	w.pass(30 * time.Minute)
	w.vacuumed(Vacuum{Retain: 1, Grace: hour, Abandoned: hour})
	require.True(t, w.has("data/"+id+".puffin"))
	w.pass(40 * time.Minute)
	w.vacuumed(Vacuum{Retain: 1, Grace: hour, Abandoned: hour})
	require.False(t, w.has("data/"+id+".puffin"))
}

// TestU33: what an abandoned write left is collected after the grace period, and its declaration with it.
func TestU33AbandonedWritesAreCollected(t *testing.T) {
	w := newWorld(t, randomOf(t))
	w.build("a")
	dead := w.begin("b")
	w.put("data/undeclared.puffin")
	c := Vacuum{Retain: 1, Grace: hour, Abandoned: 2 * hour}
	w.vacuumed(c)
	w.pass(90 * time.Minute)
	r := w.vacuumed(c)
	require.False(t, w.has("data/undeclared.puffin"), "past the grace period")
	require.True(t, w.has("data/"+dead+".puffin"), "of a build that may be alive")
	require.Equal(t, 2, r.Kept[reasonFlight].Objects)
	w.pass(hour)
	r = w.vacuumed(c)
	require.Equal(t, []string{dead}, r.Revoked)
	require.False(t, w.has("data/"+dead+".puffin"))
	require.False(t, w.has("inflight/"+dead))
	require.False(t, w.has("runs/"+dead))
	got := w.finish(dead)
	require.Len(t, got.Discarded, 1, "it was not dead, and learns that it lost")
	require.Len(t, got.Unfit, 1)
}

// TestU35: builds in flight are declared, not guessed by their age: however old the objects of one are, they stay as long as its
// declaration is renewed.
func TestU35BuildsInFlightAreDeclared(t *testing.T) {
	w := newWorld(t, randomOf(t))
	w.build("a")
	w.builds++
	id := "slow-1"
	f := overlay.InFlight{BuildID: id, Bundle: "o/data/" + id + ".puffin"}
	tag, err := w.o.Declare(t.Context(), f)
	require.NoError(t, err)
	w.put("data/" + id + ".puffin")
	w.put("runs/" + id)
	w.open[id] = buildOf(id, w.index, "z")
	for range 50 {
		w.pass(hour)
		tag, err = w.o.Renew(t.Context(), f, tag)
		require.NoError(t, err)
		w.vacuumed(Vacuum{Retain: 1, Abandoned: hour})
	}
	require.Empty(t, w.finish(id).Discarded)
	w.pass(hour)
	w.vacuumed(Vacuum{Retain: 1, Abandoned: hour})
	require.True(t, w.has("data/"+id+".puffin"))
}

// TestU37: a vacuum that finds nothing in use deletes nothing.
func TestU37AnEmptyLiveSetIsRefused(t *testing.T) {
	w := newWorld(t, randomOf(t))
	id := w.build("a")
	w.commit(overlay.DropIndex(w.index))
	w.pass(48 * hour)
	before := w.objects()
	for _, dry := range []bool{true, false} {
		_, err := w.vacuum(Vacuum{Retain: 1, DryRun: dry})
		require.True(t, fault.Is(err, fault.Refused), err)
		require.Equal(t, before, w.objects())
	}
	r := w.vacuumed(Vacuum{Retain: 1, AllowEmpty: true})
	require.False(t, w.has("data/"+id+".puffin"))
	require.Positive(t, r.Deleted[reasonUnnamed].Objects)

	damaged := newWorld(t, w.rnd)
	damaged.build("a")
	damaged.pass(hour)
	for _, key := range damaged.live("chunks/") {
		require.NoError(t, damaged.store.Delete(t.Context(), []string{key}))
	}
	damaged.o = overlay.Open(damaged.store, "o", overlay.Options{})
	_, err := damaged.vacuum(Vacuum{Retain: 1, AllowEmpty: true})
	require.True(t, fault.Is(err, fault.Refused), err)
	require.Contains(t, fault.FixOf(err), "recover")
}

// TestU31: bundles that were replaced are counted and go with the versions that named them.
func TestU31ReplacedBundlesGo(t *testing.T) {
	w := newWorld(t, randomOf(t))
	one, two := w.build("a"), w.build("b")
	v := w.finish(w.begin("c")).Version
	var keys []overlay.Key
	v.Each(func(a overlay.ArtifactInfo) bool { keys = append(keys, a.Key()); return true })
	merged := w.begin("a")
	b := w.open[merged]
	b.Artifacts[0].Files = nil
	for _, path := range []string{"a", "b", "c"} {
		b.Artifacts[0].Files = append(b.Artifacts[0].Files, overlay.Identity{Path: path, Size: 9, Records: 5, Tag: "t"})
	}
	b.Artifacts[0].Replaces = keys
	require.Empty(t, w.finish(merged).Discarded)
	w.pass(2 * hour)
	r := w.vacuumed(Vacuum{Retain: 1, Grace: hour, Abandoned: hour})
	require.False(t, w.has("data/"+one+".puffin"))
	require.False(t, w.has("data/"+two+".puffin"))
	require.True(t, w.has("data/"+merged+".puffin"))
	require.True(t, w.has("runs/"+one), "a derived object is not replaced with an artifact")
	require.GreaterOrEqual(t, r.Deleted[reasonUnnamed].Objects, 3)
}

func snapshotOf(paths ...string) func(context.Context) (*facts.Snapshot, error) {
	return func(context.Context) (*facts.Snapshot, error) {
		s := &facts.Snapshot{}
		s.Files.Stated, s.Files.Path = paths, paths
		return s, nil
	}
}

// TestU36: what is about files that are gone follows them out, when no retained snapshot has them any more.
func TestU36ArtifactsAndMasksFollowTheirFilesOut(t *testing.T) {
	w := newWorld(t, randomOf(t))
	id := w.build("a", "b", "old")
	gone := w.build("gone")
	masks := map[string]string{}
	for _, path := range []string{"a", "gone"} {
		key := "positions\x00" + path + "\x00" + path + "\x009\x00deletes"
		raw := append([]byte("SKMD\x01"), byte(len(key)))
		masks[path] = "masks/of-" + path
		_, err := w.store.PutNew(t.Context(), "o/"+masks[path], bytes.NewReader(append(raw, key...)))
		require.NoError(t, err)
	}
	w.pass(2 * hour)
	c := Vacuum{Retain: 1, Abandoned: hour, Snapshots: []func(context.Context) (*facts.Snapshot, error){
		snapshotOf("a", "b"), snapshotOf("a", "old"),
	}}
	broken := c
	broken.Snapshots = append(slices.Clone(c.Snapshots), func(context.Context) (*facts.Snapshot, error) {
		return nil, fault.New(fault.NotFound, "manifest", "gone")
	})
	r := w.vacuumed(broken)
	require.Zero(t, r.Retired)
	require.Contains(t, r.Warnings[0], "manifest")
	r = w.vacuumed(c)
	require.Equal(t, 1, r.Retired)
	require.Equal(t, 1, r.Deleted[reasonMaskGone].Objects)
	require.True(t, w.has(masks["a"]))
	require.False(t, w.has(masks["gone"]))
	w.pass(time.Minute)
	r = w.vacuumed(c)
	require.True(t, w.has("data/"+id+".puffin"), "an older snapshot has a file of it")
	require.False(t, w.has("data/"+gone+".puffin"))
	v, err := w.o.Latest(t.Context())
	require.NoError(t, err)
	require.Len(t, v.Find("old"), 1)
	require.Empty(t, v.Find("gone"))
	require.Zero(t, r.Retired)
}

func TestVacuumLeavesForeignObjectsAlone(t *testing.T) {
	w := newWorld(t, randomOf(t))
	w.build("a")
	for _, key := range []string{"README", "photos/1", "data2/x"} {
		w.put(key)
	}
	w.pass(999 * hour)
	r := w.vacuumed(Vacuum{Retain: 1})
	require.Equal(t, 3, r.Kept[reasonForeign].Objects)
	require.True(t, w.has("photos/1"))
}

// TestU32: names go after payloads. Bundles and derived objects are deleted before the lists that name them, these before the bodies of
// their versions, and declarations of dead builds after what those builds wrote.
func TestU32NamesGoAfterPayloads(t *testing.T) {
	w := scenario(t)
	var order []string
	seen := faulty.New(w.store, 1, faulty.Rule{Rate: 1, Do: func(_ context.Context, op faulty.Op, key string) {
		stage := strings.Split(strings.TrimPrefix(key, "o/"), "/")[0]
		switch {
		case strings.Contains(key, clockName) || op != faulty.Delete && op != faulty.PutIf || stage == overlay.HeadName:
			return
		case stage == "data" || stage == "runs":
			stage = "payload"
		}
		if len(order) == 0 || order[len(order)-1] != stage {
			order = append(order, stage)
		}
	}})
	w.o.Close()
	c := Vacuum{Overlay: overlay.Open(seen, "o", overlay.Options{Now: func() int64 { return w.clock().UnixMilli() }}), Store: seen, Retain: 1, Grace: hour, Abandoned: 6 * hour}
	_, err := c.Run(t.Context())
	c.Overlay.Close()
	require.NoError(t, err)
	require.Equal(t, []string{"payload", "chunks", "versions", "inflight"}, order)
	w.whole()
}
