package scan

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/wave"
)

// Coverage is which data files of a snapshot the file maps of a column speak for. It is immutable.
type Coverage struct {
	Runs     []*wave.ListedRun // those that may speak for some file
	Rejected []Rejection       // runs, and files of runs, that are not believed
	// at is per file of the snapshot the run that speaks for it, counted from 1, and its slot there.
	at       []covering
	files    [][]int32 // per run and slot the file, -1: none
	twins    map[int32][]int32
	uncovers []uint64 // a bit per file that no run speaks for
}

type covering struct {
	run  uint32
	slot uint32
}

// Covers reports whether a run speaks for file i.
func (c *Coverage) Covers(i int) bool { return c.at[i].run > 0 }

// tag is the entity tag of file i as the run that speaks for it was built.
func (c *Coverage) tag(i int) store.Tag {
	a := c.at[i]
	return store.Tag(c.Runs[a.run-1].Run.Files[a.slot].Tag)
}

// Cover finds out for which files of s the runs of one column may speak. A file that two runs saw with different tags is not covered: one
// of them speaks of bytes that are gone.
func Cover(s *facts.Snapshot, runs []*wave.ListedRun, o lineage.Options) *Coverage {
	n := s.Files.Len()
	c := &Coverage{at: make([]covering, n), twins: map[int32][]int32{}, uncovers: allFiles(n)}
	var keys [][16]byte
	for _, r := range runs {
		if why := rejectRun(r, s, o); why != nil {
			c.Rejected = append(c.Rejected, *why)
			continue
		}
		if keys == nil {
			keys = make([][16]byte, n)
			for i, p := range s.Files.Stated {
				keys[i] = filemap.PathKey(p)
			}
		}
		c.add(s, r, keys, o)
	}
	c.forgive(s)
	return c
}

// forgive forgets rejections of files that another run speaks for.
func (c *Coverage) forgive(s *facts.Snapshot) {
	if len(c.Rejected) == 0 {
		return
	}
	covered := map[string]bool{}
	for i, path := range s.Files.Path {
		if c.Covers(i) {
			covered[path] = true
		}
	}
	c.Rejected = slices.DeleteFunc(c.Rejected, func(x Rejection) bool { return covered[x.File] })
}

// rejectRun is why a run as a whole may not speak, or nil.
func rejectRun(r *wave.ListedRun, s *facts.Snapshot, o lineage.Options) *Rejection {
	reason := func(reason, detail string) *Rejection {
		return &Rejection{Index: r.Index, Bundle: r.Key, Reason: reason, Detail: detail}
	}
	if r.Err != nil || r.Run == nil || r.Meta == nil {
		return reason("unreadable", r.Err.Error())
	}
	if v := lineage.CheckClaim(r.Meta.Claim(r.Key), o); !v.OK() {
		return reason(v.Reason.String(), v.Message)
	}
	info := overlay.ArtifactInfo{Bundle: r.Key, Columns: r.Meta.Columns}
	if v := Outdated(&info, s); !v.OK() {
		return reason(v.Reason.String(), v.Message)
	}
	if why := columnsMoved(&info, s); why != "" {
		return reason(lineage.LeafMismatch.String(), why)
	}
	return nil
}

// add enters the files that one run may speak for.
func (c *Coverage) add(s *facts.Snapshot, r *wave.ListedRun, keys [][16]byte, o lineage.Options) {
	files := r.Run.Files
	to := make([]int32, len(files))
	for i := range to {
		to[i] = -1
	}
	run := uint32(len(c.Runs) + 1)
	o.Strict = false // tags are compared when a query looked them up
	for i := range keys {
		slot, found := slices.BinarySearchFunc(files, keys[i], func(f filemap.File, key [16]byte) int { return bytes.Compare(f.Path[:], key[:]) })
		if !found || s.Files.Format[i] != facts.Parquet {
			continue
		}
		for ; slot < len(files) && files[slot].Path == keys[i]; slot++ {
			if _, gone := slices.BinarySearch(r.Meta.Invalid, uint32(slot)); gone {
				continue
			}
			if v := checkFile(r, s, i, &files[slot], o); !v.OK() {
				c.Rejected = append(c.Rejected, Rejection{Index: r.Index, Bundle: r.Key, File: s.Files.Path[i], Reason: v.Reason.String(), Detail: v.Message})
				continue
			}
			c.claim(i, covering{run, uint32(slot)}, &files[slot], to)
		}
	}
	c.Runs, c.files = append(c.Runs, r), append(c.files, to)
}

func checkFile(r *wave.ListedRun, s *facts.Snapshot, i int, f *filemap.File, o lineage.Options) lineage.Verdict {
	path := s.Files.Stated[i]
	now := lineage.Current{FooterRecords: lineage.Unknown}
	now.Path, now.Size, now.Records = path, s.Files.Size[i], s.Files.Records[i]
	return lineage.CheckFile(r.Meta.Claim(r.Key), lineage.File{Path: path, Size: f.Size, Records: f.Records, Tag: f.Tag}, now, o)
}

// contested marks a file that runs saw with different tags.
const contested = ^uint32(0)

// claim makes a slot speak for file i.
func (c *Coverage) claim(i int, by covering, f *filemap.File, to []int32) {
	switch at := c.at[i]; {
	case at.slot == contested:
	case at.run == 0:
		c.at[i] = by
		c.uncovers[i>>6] &^= 1 << (i & 63)
		if first := to[by.slot]; first >= 0 { // the snapshot lists the file twice
			c.twins[first] = append(c.twins[first], int32(i))
			return
		}
		to[by.slot] = int32(i)
	case at.run == by.run || c.tag(i) != store.Tag(f.Tag):
		c.uncovers[i>>6] |= 1 << (i & 63)
		c.at[i] = covering{slot: contested}
	}
}

// each calls f for every file that slot of run r, counted from 0, speaks for.
func (c *Coverage) each(r int, slot uint32, f func(i int)) {
	first := c.files[r][slot]
	if first < 0 {
		return
	}
	for _, i := range append([]int32{first}, c.twins[first]...) {
		if c.at[i] == (covering{uint32(r + 1), slot}) {
			f(int(i))
		}
	}
}

// allFiles is a bit for each of n files.
func allFiles(n int) []uint64 {
	out := make([]uint64, (n+63)/64)
	for i := range out {
		out[i] = ^uint64(0)
	}
	if rest := n & 63; rest != 0 {
		out[len(out)-1] = 1<<rest - 1
	}
	return out
}

// Maps keeps which files the file maps of a table cover, for the last few pairs of snapshot and overlay version. It is safe for concurrent use.
type Maps struct {
	Runs *wave.Runs

	mu    sync.Mutex
	known []knownCoverage // newest last
}

type knownCoverage struct {
	snapshot *facts.Snapshot
	version  *overlay.Version
	fields   map[int]*Coverage // nil: no run
	runs     map[int]listing   // what the version lists on the field
}

// maxCoverages is how many pairs of snapshot and version are kept, at 20 bytes a file and column.
const maxCoverages = 4

// coverage is that of the file maps on a field; nil if there is none.
func (m *Maps) coverage(ctx context.Context, p *Planner, s *facts.Snapshot, v *overlay.Version, field int, o lineage.Options) (*Coverage, error) {
	if c, ok := m.kept(s, v, field); ok {
		return c, nil
	}
	runs, err := m.Runs.Load(ctx, p.Overlay, p.Prefix, v, func(index string) bool { return OnField(v, index, field) })
	if err != nil {
		return nil, err
	}
	var c *Coverage
	lasting := true
	if len(runs) > 0 {
		c = Cover(s, runs, o)
		for _, r := range runs {
			lasting = lasting && r.Err == nil
		}
	}
	if lasting {
		m.keep(s, v, field, c)
	}
	return c, nil
}

// OnField reports whether an index is on the one field.
func OnField(v *overlay.Version, index string, field int) bool {
	d, ok := v.Index(index)
	return ok && len(d.FieldIDs) == 1 && d.FieldIDs[0] == field
}

func (m *Maps) kept(s *facts.Snapshot, v *overlay.Version, field int) (c *Coverage, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.known {
		if k := &m.known[i]; k.snapshot == s && k.version == v {
			c, ok = k.fields[field]
			return c, ok
		}
	}
	return nil, false
}

// drop forgets what is worth least: what another version than v says, then what is made anew with the least work.
func (m *Maps) drop(v *overlay.Version) {
	worst := 0
	for i := range m.known {
		a, b := &m.known[i], &m.known[worst]
		stale := a.version != v && b.version == v
		if stale || (a.version != v) == (b.version != v) && a.snapshot.Files.Len() < b.snapshot.Files.Len() {
			worst = i
		}
	}
	m.known = slices.Delete(m.known, worst, worst+1)
}

// Clear forgets everything.
func (m *Maps) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = nil
}

func (m *Maps) keep(s *facts.Snapshot, v *overlay.Version, field int, c *Coverage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entry(s, v).fields[field] = c
}

// entry is what is kept of a snapshot and a version. The lock is held.
func (m *Maps) entry(s *facts.Snapshot, v *overlay.Version) *knownCoverage {
	for i := range m.known {
		if k := &m.known[i]; k.snapshot == s && k.version == v {
			return k
		}
	}
	if len(m.known) == maxCoverages {
		m.drop(v)
	}
	m.known = append(m.known, knownCoverage{s, v, map[int]*Coverage{}, map[int]listing{}})
	return &m.known[len(m.known)-1]
}

// listing is which runs a version lists on a field: any, and any with a value map.
type listing struct{ some, valued bool }

// listed tells whether the version lists a run on the field, one with a value map where only those have an answer: else asking costs no
// read of roots.
func (m *Maps) listed(s *facts.Snapshot, v *overlay.Version, field int, byValues bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.entry(s, v)
	l, known := k.runs[field]
	if !known {
		for _, d := range v.Derived(filemap.Kind) {
			if !OnField(v, d.Index, field) {
				continue
			}
			l.some = true
			meta, err := filemap.ParseMeta(d.Name, d.Meta)
			l.valued = l.valued || err == nil && meta.Values != nil
		}
		k.runs[field] = l
	}
	return l.some && (l.valued || !byValues)
}
