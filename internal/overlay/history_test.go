package overlay

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/mem"
)

// unreliable is a store whose writes fail at random: before they happen, or after, when the answer is lost. A crash is a write
// that ends its writer.
type unreliable struct {
	store.Store
	mu  sync.Mutex
	rnd *rand.Rand
	pct int // of writes that go wrong in one of the ways
}

var errCrash = fault.New(fault.Invalid, "process", "killed")

func (u *unreliable) roll() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.rnd.IntN(100) >= u.pct {
		return -1
	}
	return u.rnd.IntN(4)
}

func (u *unreliable) PutNew(ctx context.Context, key string, r io.ReadSeeker) (store.Tag, error) {
	lost := fault.New(fault.Exhausted, key, "timed out").WithRetry()
	switch u.roll() {
	case 0:
		return "", lost
	case 1:
		if _, err := u.Store.PutNew(ctx, key, r); err != nil && !fault.Is(err, fault.Conflict) {
			return "", err
		}
		return "", lost
	case 2:
		return "", errCrash
	case 3:
		_, _ = u.Store.PutNew(ctx, key, r)
		return "", errCrash
	default:
		return u.Store.PutNew(ctx, key, r)
	}
}

func (u *unreliable) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	out := u.Store.Fetch(ctx, reads)
	if u.roll() >= 0 {
		i := len(out) - 1
		out[i] = store.Result{Size: -1, Err: fault.New(fault.Exhausted, reads[i].Key, "timed out").WithRetry()}
	}
	return out
}

// committed is what a committer was told.
type committed struct {
	version   uint64
	changed   bool
	added     string
	dropped   string
	published map[string]string // path → build, of the artifacts that were not discarded
	index     string
}

// TestRandomHistoriesOfSixteenCommitters lets committers with their own view of one unreliable store add, drop, publish and
// sync at random, while readers look on. Then every version is read and compared with a model of its predecessor.
func TestRandomHistoriesOfSixteenCommitters(t *testing.T) {
	rounds := 6
	if s := os.Getenv("SKOMER_HISTORIES"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		rounds = n
	}
	r, _ := seeded(t)
	for range rounds {
		history(t, rand.New(rand.NewPCG(r.Uint64(), 1)), []int{0, 3, 25}[r.IntN(3)])
	}
}

func history(t *testing.T, r *rand.Rand, pct int) {
	base := mem.New()
	mounted(t, base)
	var mu sync.Mutex
	var log []committed
	var wg, watch sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		watch.Go(func() { watchVersions(t, base, stop) })
	}
	for c := range 16 {
		st := &unreliable{Store: base, rnd: rand.New(rand.NewPCG(r.Uint64(), 2)), pct: pct}
		own := rand.New(rand.NewPCG(r.Uint64(), 3))
		wg.Go(func() {
			open := func() *Overlay {
				o := Open(st, "o", Options{})
				o.sizes = sizes{tiny: 700, small: 1500, smallTotal: 5000, tier: 2000, merge: 1 << 20, fanOut: 2} // merges come often
				return o
			}
			o := open()
			for n := range 12 {
				if done, ok := randomStep(t, o, own, fmt.Sprintf("c%d-%d", c, n)); ok {
					mu.Lock()
					log = append(log, done)
					mu.Unlock()
				} else {
					o = open() // a new process takes over
				}
			}
			o.Close()
		})
	}
	wg.Wait()
	close(stop)
	watch.Wait()
	published := 0
	for _, c := range log {
		published += len(c.published)
	}
	require.Greater(t, len(log), 20)
	require.Greater(t, published, 10)
	replay(t, base, log)
}

// randomStep commits one random change. ok is false if it failed.
func randomStep(t *testing.T, o *Overlay, r *rand.Rand, build string) (done committed, ok bool) {
	base, err := o.Latest(t.Context())
	if err != nil {
		return done, false
	}
	time.Sleep(time.Duration(r.IntN(300)) * time.Microsecond)
	var c []Change
	var b Build
	switch kind := r.IntN(10); {
	case kind < 2 || len(base.Indexes()) == 0:
		c = append(c, AddIndex(definition("bloom", r.IntN(4))))
	case kind == 2:
		done.dropped = base.Indexes()[r.IntN(len(base.Indexes()))].ID
		c = append(c, DropIndex(done.dropped))
	case kind == 3:
		up := base.Upstream()
		up.SnapshotID, up.LastUpdatedMs = up.SnapshotID+1, up.LastUpdatedMs+int64(r.IntN(3))
		c = append(c, Synced(up))
	case kind == 4:
		if b, err = replacement(t, base, r, build); err != nil {
			return done, false
		}
		done.index = b.Artifacts[0].IndexID
		c = append(c, Publish(nil, b))
	default:
		done.index = base.Indexes()[r.IntN(len(base.Indexes()))].ID
		b = Build{ID: build, Bundle: "o/data/" + build, SnapshotID: 11, Sequence: 1}
		for i := range 1 + r.IntN(5) {
			files := []Identity{fileID(r.IntN(60))}
			if r.IntN(4) == 0 {
				files = append(files, fileID(100+r.IntN(20)))
			}
			b.Artifacts = append(b.Artifacts, artifact(done.index, i, files...))
		}
		c = append(c, Publish(nil, b))
		if r.IntN(5) == 0 {
			c = append(c, Synced(base.Upstream()))
		}
	}
	rc, err := o.Commit(t.Context(), base, c...)
	if err != nil {
		return done, false
	}
	if r.IntN(4) == 0 {
		_, _ = o.Compact(t.Context())
	}
	done.version, done.changed = rc.Version.Number(), rc.Changed
	if len(rc.Indexes) > 0 {
		done.added = rc.Indexes[0]
	}
	discarded := map[int]bool{}
	for _, d := range rc.Discarded {
		discarded[d.Artifact] = true
	}
	done.published = map[string]string{}
	for i, a := range b.Artifacts {
		for _, f := range a.Files {
			if !discarded[i] {
				done.published[f.Path] = b.ID
			}
		}
	}
	return done, true
}

// replacing ends the ids of builds that replace an artifact by one of the same files.
const replacing = "-replacing"

// replacement is a build that replaces a random artifact.
func replacement(t *testing.T, base *Version, r *rand.Rand, build string) (b Build, err error) {
	var all []ArtifactInfo
	base.Each(func(a ArtifactInfo) bool { all = append(all, a); return true })
	if len(all) == 0 {
		return b, fault.New(fault.NotFound, "history", "nothing to replace")
	}
	old := all[r.IntN(len(all))]
	paths, _, err := base.Paths(t.Context(), old.At)
	if err != nil {
		return b, err
	}
	a := artifact(old.IndexID, 0)
	for i, f := range base.Segment(old.At) {
		a.Files = append(a.Files, Identity{paths[i], f.Size, int64(f.Records), f.Tag})
	}
	a.Replaces = []Key{old.Key()}
	return Build{ID: build + replacing, Bundle: "o/data/" + build, SnapshotID: 11, Sequence: 1, Artifacts: []Artifact{a}}, nil
}

// watchVersions reads the newest version again and again: it never goes back and is always whole.
func watchVersions(t *testing.T, st store.Store, stop chan struct{}) {
	o := Open(st, "o", Options{})
	last := uint64(0)
	for {
		select {
		case <-stop:
			return
		case <-time.After(200 * time.Microsecond):
		}
		v, err := o.Latest(t.Context())
		if err != nil || v.Number() < last || len(v.Warnings()) > 0 {
			t.Errorf("after version %d: %v", last, err)
			return
		}
		last = v.Number()
		v.Each(func(a ArtifactInfo) bool {
			if _, ok := v.Index(a.IndexID); !ok {
				t.Errorf("version %d: an artifact of %s speaks", last, a.IndexID)
			}
			return true
		})
	}
}

// state is what a version says, without how it is stored.
type state struct {
	indexes  map[string]bool
	placed   map[string]string // index and path → build
	upstream Upstream
}

func stateOf(t *testing.T, v *Version) state {
	t.Helper()
	s := state{indexes: map[string]bool{}, placed: map[string]string{}, upstream: v.Upstream()}
	for _, d := range v.Indexes() {
		s.indexes[d.ID] = true
	}
	for i := range 120 {
		for _, p := range v.Find(fileID(i).Path) {
			a, ok := v.Artifact(p.At)
			require.True(t, ok)
			require.Equal(t, fileID(i), p.Identity)
			key := p.IndexID + " " + p.Identity.Path
			require.NotContains(t, s.placed, key, "two artifacts for one incarnation")
			s.placed[key] = a.BuildID
		}
	}
	return s
}

// replay reads all versions and checks that each follows from the one before, and that everything that a committer was told
// is so.
func replay(t *testing.T, st store.Store, log []committed) {
	o := Open(st, "o", Options{})
	newest := latest(t, o).Number()
	told := map[uint64][]committed{}
	for _, c := range log {
		told[c.version] = append(told[c.version], c)
		require.LessOrEqual(t, c.version, newest)
	}
	commits, merges := map[string]bool{}, 0
	ever := map[string]bool{}
	var before state
	for n := uint64(1); n <= newest; n++ {
		v, err := Open(st, "o", Options{}).At(t.Context(), n)
		require.NoError(t, err)
		require.Empty(t, v.Warnings())
		require.False(t, commits[v.Commit()], "one commit made two versions")
		commits[v.Commit()] = true
		now := stateOf(t, v)
		for id := range now.indexes {
			require.False(t, ever[id] && !before.indexes[id], "%s came back", id)
			ever[id] = true
		}
		if n > 1 {
			follows(t, n, before, now)
		}
		makers := 0
		for _, c := range told[n] {
			if c.changed {
				makers++
			}
			if c.dropped != "" {
				require.False(t, now.indexes[c.dropped])
			}
			if c.added != "" {
				require.True(t, now.indexes[c.added])
			}
			for path, build := range c.published {
				require.Equal(t, build, now.placed[c.index+" "+path])
			}
		}
		require.LessOrEqual(t, makers, 1)
		if n > 1 && reflect.DeepEqual(before, now) && len(told[n]) == 0 {
			merges++
		}
		before = now
	}
	t.Logf("%d versions, %d of them merges", newest, merges)
}

// follows checks that a version lost nothing that its predecessor had, except what belongs to a dropped index.
func follows(t *testing.T, n uint64, before, now state) {
	t.Helper()
	require.GreaterOrEqual(t, now.upstream.LastUpdatedMs, before.upstream.LastUpdatedMs)
	for key, build := range before.placed {
		index, _, _ := strings.Cut(key, " ")
		if now.indexes[index] && !strings.HasSuffix(now.placed[key], replacing) {
			require.Equal(t, build, now.placed[key], "version %d: %s", n, key)
		}
	}
	builds := map[string]bool{}
	for key, build := range now.placed {
		index, _, _ := strings.Cut(key, " ")
		require.True(t, now.indexes[index])
		if before.placed[key] != build {
			builds[build] = true
		}
	}
	require.LessOrEqual(t, len(builds), 1, "version %d adds the artifacts of several builds", n)
}
