package overlay

import (
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/store"
)

// Version is one overlay version. It is immutable and safe for concurrent use.
type Version struct {
	number   uint64
	muted    []bool // per index: in quarantine
	body     *body
	views    []view         // of body.chunks
	lists    []*derivedList // of body.lists; nil where one could not be read
	warnings []Warning
	broken   error // why the version's body could not be used; then it has no indexes and no artifacts
	overlay  *Overlay

	gather  sync.Once
	derived []Derived // that speak, by kind and name

	partial bool             // some of its chunks were not read: see Full
	filling sync.Mutex       // of full
	full    *Version         // what Full made of a partial version
	reached map[pathKey]bool // of files that no unread chunk has: see Reach
}

// view is a chunk as a version sees it.
type view struct {
	chunk *chunk  // nil if it could not be read
	live  []int32 // per index id of the chunk: the number of the definition in this version, or -1
	dead  bitset
	// unread: the chunk was not looked for yet.
	unread bool
}

// Warning is a part of a version that is no index, and why.
type Warning struct {
	Part   string // an object key
	Reason error
}

// Number is the version's number, from 1.
func (v *Version) Number() uint64 { return v.number }

// Commit is the UUID of the commit that made the version.
func (v *Version) Commit() string { return v.body.header.Commit }

// Committed is when it was made, by its writer's clock.
func (v *Version) Committed() time.Time { return time.UnixMilli(v.body.header.CommittedMs) }

// Mounted reports whether the table is mounted.
func (v *Version) Mounted() bool { return v.body.header.Mounted }

// Table is the table that the overlay belongs to.
func (v *Version) Table() Table { return v.body.header.Table }

// Upstream is the table's state at the last sync.
func (v *Version) Upstream() Upstream { return v.body.header.Upstream }

// Indexes lists the declared indexes in the order of their declaration. Do not write to it.
func (v *Version) Indexes() []Definition { return v.body.header.Indexes }

// Index is the definition with the id.
func (v *Version) Index(id string) (Definition, bool) {
	i := v.indexNo(id)
	if i < 0 {
		return Definition{}, false
	}
	return v.body.header.Indexes[i], true
}

func (v *Version) indexNo(id string) int {
	return slices.IndexFunc(v.body.header.Indexes, func(d Definition) bool { return d.ID == id })
}

// Dropped lists the indexes that were dropped last.
func (v *Version) Dropped() []Dropped { return v.body.header.Dropped }

// Warnings lists the parts that could not be used: files that only they cover are unindexed.
func (v *Version) Warnings() []Warning { return v.warnings }

// Broken is why the version as a whole is no index, or nil. Nothing can be committed on top of a broken version.
func (v *Version) Broken() error {
	if !fault.Is(v.broken, fault.Corrupt) {
		return v.broken
	}
	return fault.New(fault.Corrupt, "", "version %d of the overlay is damaged", v.number).WithCause(v.broken).
		WithFix("skomer overlay recover TABLE makes the newest readable version the newest again")
}

// Place locates an artifact within one version.
type Place struct{ Chunk, Row int32 }

// Placement is an artifact that covers a file. It is a claim: the lineage check decides whether it may speak.
type Placement struct {
	At       Place
	Index    int // its number in Indexes
	IndexID  string
	First    uint32   // ordinal of the file's first row in the segment
	Rows     uint32   // rows of the file
	Identity Identity // of the file as the build saw it
}

// Find returns every live artifact that covers a file with the path, but for those of indexes in quarantine.
func (v *Version) Find(path string) []Placement { return v.AppendFind(nil, path) }

// AppendFind appends to dst what Find returns.
func (v *Version) AppendFind(dst []Placement, path string) []Placement {
	return v.find(dst, path, false)
}

// AppendCovering appends to dst what Find returns, and the artifacts of indexes in quarantine.
func (v *Version) AppendCovering(dst []Placement, path string) []Placement {
	return v.find(dst, path, true)
}

func (v *Version) find(dst []Placement, path string, muted bool) []Placement {
	if len(v.views) == 0 {
		return dst
	}
	key := keyOf(path)
	for n := range v.views {
		c := v.views[n].chunk
		if c == nil {
			continue
		}
		for from, to := c.find(key); from < to; from++ {
			dst = v.appendFile(dst, n, from, path, muted)
		}
	}
	return dst
}

func (v *Version) appendFile(dst []Placement, n, file int, path string, muted bool) []Placement {
	w := &v.views[n]
	f := w.chunk.file(file)
	for i := f.fromRef; i < f.toRef; i++ {
		artifact, first := w.chunk.ref(i)
		index := w.liveIndex(artifact)
		if index < 0 || v.muted[index] && !muted {
			continue
		}
		dst = append(dst, Placement{
			At: Place{int32(n), int32(artifact)}, Index: index, IndexID: v.body.header.Indexes[index].ID, First: first, Rows: f.records,
			Identity: Identity{Path: path, Size: f.size, Records: int64(f.records), Tag: f.tag},
		})
	}
	return dst
}

// liveIndex is the number of the artifact's index in the version, -1 if the artifact does not speak.
func (w *view) liveIndex(artifact int) int {
	i := w.chunk.index(artifact)
	if i < 0 || w.dead.has(artifact) {
		return -1
	}
	return int(w.live[i])
}

// ArtifactInfo is what the overlay knows of one artifact.
type ArtifactInfo struct {
	At                  Place
	Index               int // its number in Indexes
	IndexID             string
	Bundle              string // object key
	BuildID             string
	SnapshotID          int64 // the table snapshot that its build read
	Sequence            int64
	FormatVersion       int
	TableUUID           string
	Rows                uint32 // of the segment
	Files               int
	Body, Root, Lineage lineage.Place
	RootInline          []byte // nil: read it from the bundle; the checksum is the caller's to verify, here too
	Columns             []lineage.Column
	// RootSHA256 is that of the root where versions are signed; nil where checksums that are no proof are enough.
	RootSHA256 *[32]byte
}

// Key names the artifact in every version.
func (a *ArtifactInfo) Key() Key { return Key{a.Bundle, a.Lineage.Off} }

// Claim is what the lineage check wants to know.
func (a *ArtifactInfo) Claim() lineage.Claim {
	return lineage.Claim{
		Index: a.Bundle, FormatVersion: a.FormatVersion, TableUUID: a.TableUUID,
		SnapshotID: a.SnapshotID, SequenceNumber: a.Sequence, Rows: int64(a.Rows),
	}
}

// Artifact describes the artifact at a place that this version gave. ok is false where the bytes make no sense.
func (v *Version) Artifact(at Place) (a ArtifactInfo, ok bool) {
	w := &v.views[at.Chunk]
	index := w.liveIndex(int(at.Row))
	if index < 0 {
		return a, false
	}
	b, ok := w.chunk.bundle(int(at.Row))
	raw := w.chunk.artifacts.at(int(at.Row))
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(raw[at:]) }
	i64 := func(at int) int64 { return int64(binary.LittleEndian.Uint64(raw[at:])) }
	from, to := w.chunk.cover(int(at.Row))
	a = ArtifactInfo{
		At: at, Index: index, IndexID: v.body.header.Indexes[index].ID,
		Bundle: b.name, BuildID: b.build, SnapshotID: b.snapshot, Sequence: b.sequence,
		FormatVersion: int(u32(76)), TableUUID: v.body.header.Table.UUID, Rows: u32(12), Files: to - from,
		Body:    lineage.Place{Off: i64(16), Len: i64(24), CRC: u32(56)},
		Root:    lineage.Place{Off: i64(32), Len: int64(u32(48)), CRC: u32(60)},
		Lineage: lineage.Place{Off: i64(40), Len: int64(u32(52)), CRC: u32(64)},
	}
	for _, p := range []lineage.Place{a.Body, a.Root, a.Lineage} {
		ok = ok && p.Off >= 0 && p.Len >= 0 && p.End() >= p.Off
	}
	if shape := int(u32(8)); shape < len(w.chunk.shapes) {
		a.Columns = w.chunk.shapes[shape]
	} else {
		ok = false
	}
	if inline := u32(72); inline != notInline {
		end := uint64(inline) + uint64(a.Root.Len)
		if end > uint64(len(w.chunk.heap)) {
			return a, false
		}
		a.RootInline = w.chunk.heap[inline:end:end]
	}
	if v.overlay != nil && v.overlay.Keyed() {
		wide := w.chunk.wide.Load()
		if wide == nil {
			return a, false
		}
		sum := wide.root(int(at.Row))
		a.RootSHA256, ok = &sum, ok && (sum != [32]byte{} || a.RootInline != nil)
		if a.RootInline != nil {
			a.RootSHA256 = nil // it is a part of the chunk
		}
	}
	return a, ok && a.Bundle != "" && a.Files > 0
}

// Check runs the lineage check of the artifact for the placed file, of which the snapshot's manifest states size and records; tag is
// its present entity tag, empty where it was not looked up.
func (p *Placement) Check(a *ArtifactInfo, size, records int64, tag store.Tag, o lineage.Options) lineage.Verdict {
	now := lineage.Current{FooterRecords: lineage.Unknown}
	now.Path, now.Size, now.Records, now.Tag = p.Identity.Path, size, records, string(tag)
	recorded := lineage.File{Path: p.Identity.Path, Size: p.Identity.Size, Records: p.Identity.Records, Tag: string(p.Identity.Tag)}
	return lineage.Check(a.Claim(), recorded, now, o)
}

// Covered is one file of a segment.
type Covered struct {
	First   uint32 // ordinal of its first row
	Records uint32
	Size    int64
	Tag     store.Tag
	file    int
}

// Segment lists the files of the artifact at a place in ordinal order.
func (v *Version) Segment(at Place) []Covered {
	c := v.views[at.Chunk].chunk
	from, to := c.cover(int(at.Row))
	out := make([]Covered, 0, to-from)
	first := uint32(0)
	for i := from; i < to; i++ {
		no := int(binary.LittleEndian.Uint32(c.covers.at(i)))
		if no >= c.files.n {
			return nil
		}
		f := c.file(no)
		out = append(out, Covered{First: first, Records: f.records, Size: f.size, Tag: f.tag, file: no})
		first += f.records
	}
	return out
}

// Each calls f for every live artifact until it returns false.
func (v *Version) Each(f func(ArtifactInfo) bool) {
	for n := range v.views {
		c := v.views[n].chunk
		if c == nil {
			continue
		}
		for i := range c.artifacts.n {
			if a, ok := v.Artifact(Place{int32(n), int32(i)}); ok && !f(a) {
				return
			}
		}
	}
}

// lookup is the place of a live artifact.
func (v *Version) lookup(k Key) (Place, bool) {
	for n := range v.views {
		w := &v.views[n]
		if w.chunk == nil {
			continue
		}
		if i := w.chunk.search(k); i >= 0 && w.liveIndex(i) >= 0 {
			return Place{int32(n), int32(i)}, true
		}
	}
	return Place{}, false
}
