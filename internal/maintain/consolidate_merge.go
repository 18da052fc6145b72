package maintain

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/skomerdb/skomer/internal/bundle"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
)

// consolidating is one merge: parcels become one bundle.
type consolidating struct {
	*consolidation
	id      string
	bundle  string
	parcels []parcel
	temp    string // folder of spooled bodies
	out     *bundle.Writer
	build   overlay.Build
	dead    []overlay.Key // artifacts to be retired
	pending []overlay.Artifact
	counts  ConsolidateReport
}

// member is an artifact of a merge.
type member struct {
	overlay.ArtifactInfo
	sum   [32]byte
	files []overlay.Identity
	keep  []bool // parallel to files: whether a retained snapshot has it
	rec   *lineage.Record
	root  []byte
}

// merge runs one task. It reports whether its commit changed anything; what cannot be read is passed over from then on.
func (w *consolidation) merge(ctx context.Context, task []parcel) (done bool, err error) {
	id := uuid.NewString()
	m := &consolidating{consolidation: w, id: id, bundle: w.Overlay.DataKey(id + ".puffin"), parcels: task}
	members, err := m.members(ctx)
	if err != nil {
		return false, m.passOver(err)
	}
	claim, taken, err := declare(ctx, w.Overlay, m.declaration(members))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, claim.end(ctx)) }()
	now, err := w.Overlay.Lean(ctx)
	if err != nil || erasedSince(now, w.version) {
		return false, err
	}
	if m.contended(members, taken) {
		for _, p := range task {
			w.report.Passed[p.bundle] = "somebody else is building or consolidating some of its files"
		}
		return false, nil
	}
	if m.temp, err = os.MkdirTemp(w.TempDir, "skomer-merge-"); err != nil {
		return false, fault.Wrap(fault.Exhausted, "temporary folder", err)
	}
	defer os.RemoveAll(m.temp)
	path, size, err := m.write(ctx, members)
	if err != nil {
		return false, m.passOver(err)
	}
	if len(task) == 1 && m.counts.Dropped+len(m.dead) == 0 {
		w.report.Passed[task[0].bundle] = "its artifacts cannot be merged without the files that are gone"
		return false, nil
	}
	return m.commit(ctx, path, size)
}

// damaged is an error about one bundle.
type damaged struct {
	bundle string
	err    error
}

func (d *damaged) Error() string { return d.bundle + ": " + d.err.Error() }
func (d *damaged) Unwrap() error { return d.err }

// passOver takes a damaged bundle out of the run; repair is for that. Other errors end it.
func (m *consolidating) passOver(err error) error {
	var d *damaged
	if errors.As(err, &d) && (fault.Is(err, fault.Corrupt) || fault.Is(err, fault.NotFound) || fault.Is(err, fault.Unsupported)) && !fault.Retryable(err) {
		m.report.Passed[d.bundle] = d.err.Error()
		return nil
	}
	return err
}

// members reads the roots and the lineage records of the artifacts.
func (m *consolidating) members(ctx context.Context) ([]*member, error) {
	retained := m.retainedPaths(ctx)
	var out []*member
	for _, p := range m.parcels {
		read := store.Read{Key: p.bundle}
		for _, a := range p.artifacts {
			read.Spans = append(read.Spans, store.Span{Off: a.Lineage.Off, Len: min(a.Lineage.Len, lineage.MaxRecord+1)}, store.Span{Off: a.Root.Off, Len: a.Root.Len})
		}
		res := m.Store.Fetch(ctx, []store.Read{read})[0]
		if res.Err != nil {
			return nil, &damaged{p.bundle, res.Err}
		}
		for i, a := range p.artifacts {
			x := &member{ArtifactInfo: a, root: res.Data[2*i+1]}
			paths, sum, err := m.version.Paths(ctx, a.At)
			if err != nil {
				return nil, err
			}
			segment := m.version.Segment(a.At)
			if len(paths) != len(segment) || len(paths) != a.Files {
				return nil, &damaged{p.bundle, fault.New(fault.Corrupt, a.Bundle, "its files in the overlay make no sense")}
			}
			x.sum = sum
			for k, f := range segment {
				x.files = append(x.files, overlay.Identity{Path: paths[k], Size: f.Size, Records: int64(f.Records), Tag: f.Tag})
				x.keep = append(x.keep, retained == nil || retained[paths[k]])
			}
			if x.rec, err = bundle.ParseLineage(a.Bundle, a.Lineage, res.Data[2*i]); err == nil {
				err = bundle.VerifyRoot(a.Bundle, a.Root, x.root)
			}
			if err == nil && len(x.rec.Files) != len(x.files) {
				err = fault.New(fault.Corrupt, a.Bundle, "its lineage is of %d files, in the overlay it has %d", len(x.rec.Files), len(x.files))
			}
			if err != nil {
				return nil, &damaged{p.bundle, err}
			}
			out = append(out, x)
		}
	}
	return out, nil
}

func (m *consolidating) declaration(members []*member) overlay.InFlight {
	out := overlay.InFlight{BuildID: m.id, Bundle: m.bundle, StartedMs: time.Now().UnixMilli(), Writer: writer()}
	for _, x := range members {
		if !slices.Contains(out.Indexes, x.IndexID) {
			out.Indexes = append(out.Indexes, x.IndexID)
		}
		for _, f := range x.files {
			if h := fileHash(f.Path); len(out.Files) < 2048 && !slices.Contains(out.Files, h) {
				out.Files = append(out.Files, h)
			}
		}
	}
	return out
}

func (m *consolidating) contended(members []*member, taken map[hashedTarget]bool) bool {
	if len(taken) == 0 {
		return false
	}
	for _, x := range members {
		for _, f := range x.files {
			if taken[hashedTarget{fileHash(f.Path), x.IndexID}] {
				return true
			}
		}
	}
	return false
}

// write writes the bundle to a temporary file: per index merged segments, then what is copied.
func (m *consolidating) write(ctx context.Context, members []*member) (path string, size int64, err error) {
	file, err := os.CreateTemp(m.temp, "*.puffin")
	if err != nil {
		return "", 0, fault.Wrap(fault.Exhausted, "temporary folder", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	m.build = overlay.Build{ID: m.id, Bundle: m.bundle, SnapshotID: members[0].SnapshotID, Sequence: math.MinInt64}
	for _, x := range members {
		if x.Sequence > m.build.Sequence {
			m.build.SnapshotID, m.build.Sequence = x.SnapshotID, x.Sequence
		}
	}
	m.out = bundle.NewWriter(file, bundle.BuildInfo{
		BuildID: m.id, TableUUID: m.version.Table().UUID, SnapshotID: m.build.SnapshotID, Sequence: m.build.Sequence,
	})
	for _, d := range m.version.Indexes() {
		if err := m.index(ctx, d, members); err != nil {
			return "", 0, err
		}
	}
	placed, err := m.out.Close()
	if err != nil {
		return "", 0, err
	}
	for i, p := range placed {
		a := m.pending[i]
		a.Body, a.Root, a.Lineage, a.BodySHA256, a.RootInline = p.Body, p.Root, p.Lineage, p.BodySHA256, p.RootBytes
		m.build.Artifacts = append(m.build.Artifacts, a)
	}
	info, err := file.Stat()
	if err != nil {
		return "", 0, fault.Wrap(fault.Exhausted, file.Name(), err)
	}
	return file.Name(), info.Size(), nil
}

// index writes the artifacts of one index.
func (m *consolidating) index(ctx context.Context, d overlay.Definition, members []*member) error {
	k, ok := kinds.ByName(d.Kind)
	if !ok {
		return nil
	}
	var copies []*member
	var groups [][]*member
next:
	for _, x := range members {
		switch {
		case x.IndexID != d.ID:
			continue
		case !slices.Contains(x.keep, true):
			m.dead = append(m.dead, x.Key())
			continue
		case !tiered(k) || x.rec.Algorithm != k.Algorithm() || x.FormatVersion != lineage.FormatVersion:
			copies = append(copies, x)
			continue
		}
		for i := range groups {
			if mergeable(groups[i], x) {
				groups[i] = append(groups[i], x)
				continue next
			}
		}
		groups = append(groups, []*member{x})
	}
	_, there := kinds.Columns(m.Snapshot.Schema, d.FieldIDs, d.Params)
	for _, g := range groups {
		if !there || len(g) == 1 && !slices.Contains(g[0].keep, false) {
			copies = append(copies, g...)
			continue
		}
		reason, err := m.segment(ctx, d, k, g)
		if err != nil {
			return err
		}
		if reason != "" {
			m.report.Unmerged[d.ID] = reason
			copies = append(copies, g...)
		}
	}
	return m.copy(ctx, copies)
}

// mergeable tells whether an artifact may be merged with those of a group: their columns were found and taken in the same way, the same
// chunks were read, and no file is in both, let alone under another identity.
func mergeable(group []*member, x *member) bool {
	first := group[0]
	if !slices.Equal(first.Columns, x.Columns) || !slices.Equal(first.rec.ReadFieldIDs, x.rec.ReadFieldIDs) || first.rec.BlobType != x.rec.BlobType {
		return false
	}
	rows := uint64(x.Rows)
	for _, y := range group {
		rows += uint64(y.Rows)
		for _, f := range x.files {
			if slices.ContainsFunc(y.files, func(g overlay.Identity) bool { return g.Path == f.Path }) {
				return false
			}
		}
	}
	return rows <= math.MaxUint32
}

// segment merges artifacts into one. A reason: they cannot be merged, and nothing was written that speaks.
func (m *consolidating) segment(ctx context.Context, d overlay.Definition, k kinds.Entry, group []*member) (reason string, err error) {
	spec := index.Spec{Params: d.Params}
	spec.Columns, _ = kinds.Columns(m.Snapshot.Schema, d.FieldIDs, d.Params)
	rows, sources := make([]uint32, len(group)), make([]index.Source, len(group))
	for i, x := range group {
		rows[i] = x.Rows
		body, err := m.spool(ctx, x)
		if err != nil {
			return "", err
		}
		defer body.Close()
		sources[i] = index.Source{Root: x.root, Rows: x.Rows, Body: body, Size: x.Body.Len}
	}
	ordinals, a, rec, err := m.lineUp(group, rows, &spec)
	if err != nil {
		return "", err
	}
	sink, err := m.out.Begin(rec)
	if err != nil {
		return "", err
	}
	root, reason, err := k.Kind.Merge(spec, sources, ordinals, index.Budget{Memory: m.Memory, TempDir: m.temp}, sink)
	if fault.Is(err, fault.Corrupt) || fault.Is(err, fault.Unsupported) {
		root, reason, err = nil, err.Error(), nil // verified, and yet not what the kind writes now: copied, it stays as good as it was
	}
	if root == nil || err != nil {
		return reason, errors.Join(err, m.out.Abandon())
	}
	if err := m.out.End(root); err != nil {
		return "", err
	}
	m.pending = append(m.pending, a)
	for _, x := range group {
		m.counts.Dropped += x.gone()
	}
	if len(group) > 1 {
		m.counts.Segments++
	}
	return "", nil
}

// gone is the number of files that no retained snapshot has.
func (x *member) gone() (n int) {
	for _, k := range x.keep {
		if !k {
			n++
		}
	}
	return n
}

// lineUp puts the files that stay one after the other: the map of their rows, the artifact and its lineage.
func (m *consolidating) lineUp(group []*member, rows []uint32, spec *index.Spec) (*index.OrdinalMap, overlay.Artifact, lineage.Record, error) {
	first := group[0]
	ordinals, at := index.NewOrdinalMap(rows), uint32(0)
	a := overlay.Artifact{IndexID: first.IndexID, FormatVersion: lineage.FormatVersion, Columns: first.Columns}
	rec := *first.rec
	rec.TableUUID, rec.SnapshotID, rec.SequenceNumber, rec.FilePath = m.version.Table().UUID, m.build.SnapshotID, m.build.Sequence, m.bundle
	rec.Files, rec.BlockHashes, rec.BlockRows = nil, nil, nil
	for i, x := range group {
		old := uint32(0)
		var kept []rowset.Range
		for k, f := range x.files {
			n := uint32(f.Records)
			if x.keep[k] {
				ordinals.Move(i, rowset.Range{Start: old, End: old + n}, at)
				if n > 0 {
					spec.RowGroups = append(spec.RowGroups, at)
				}
				kept, at = append(kept, rowset.Range{Start: old, End: old + n}), at+n
				file := x.rec.Files[k]
				file.Tag = string(f.Tag)
				a.Files, rec.Files = append(a.Files, f), append(rec.Files, file)
			}
			old += n
		}
		addBlocks(&rec, x.rec, x.Rows, rowset.FromRanges(x.Rows, kept))
		a.Replaces = append(a.Replaces, x.Key())
	}
	spec.Rows, spec.Pages = at, spec.RowGroups
	return ordinals, a, rec, ordinals.Seal(at)
}

// blockRows is the rows of a block of a record that does not say.
const blockRows = 65536

// addBlocks adds the blocks of a source, of which the kept rows stay.
func addBlocks(to, from *lineage.Record, rows uint32, kept *rowset.Set) {
	if len(to.BlockHashes) == 0 {
		to.BlockHashes = make([][]string, len(from.BlockHashes))
	}
	for i, start := 0, uint32(0); start < rows; i++ {
		n := min(uint32(blockRows), rows-start)
		if from.BlockRows != nil && i < len(from.BlockRows) {
			n = min(from.BlockRows[i], rows-start)
		}
		if n == 0 {
			break
		}
		left := uint32(0)
		for _, r := range kept.Ranges() {
			if a, b := max(r.Start, start), min(r.End, start+n); a < b {
				left += b - a
			}
		}
		start += n
		if left == 0 {
			continue
		}
		to.BlockRows = append(to.BlockRows, left)
		for c := range to.BlockHashes {
			hash := ""
			if left == n && c < len(from.BlockHashes) && i < len(from.BlockHashes[c]) {
				hash = from.BlockHashes[c][i]
			}
			to.BlockHashes[c] = append(to.BlockHashes[c], hash)
		}
	}
}

// commit uploads the bundle and puts its artifacts in the place of the old ones.
func (m *consolidating) commit(ctx context.Context, path string, size int64) (done bool, err error) {
	changes := []overlay.Change{overlay.Retire(m.dead...)}
	if len(m.build.Artifacts) > 0 {
		file, err := os.Open(path)
		if err != nil {
			return false, fault.Wrap(fault.NotFound, path, err)
		}
		defer file.Close()
		if _, err := m.Store.PutNew(ctx, m.bundle, file); err != nil {
			return false, fault.About(m.bundle, err)
		}
		m.report.BytesWritten += size
		changes = append(changes, m.spare(overlay.Publish(nil, m.build)))
	}
	receipt, err := m.Overlay.Commit(ctx, m.version, changes...)
	if err != nil {
		return false, err
	}
	m.report.Version = receipt.Version
	if published := len(m.build.Artifacts) - len(receipt.Discarded); published == 0 && len(m.dead) == 0 {
		return false, nil
	}
	m.report.Merges++
	m.report.Segments += m.counts.Segments
	m.report.Copied += m.counts.Copied
	m.report.Dropped += m.counts.Dropped
	m.report.Retired += len(m.dead)
	return true, nil
}

// spare vouches for a merge that left no file out.
func (m *consolidating) spare(c overlay.Change) overlay.Change {
	if m.counts.Dropped > 0 {
		return c
	}
	return overlay.Sparing(c)
}

func spoolName(x *member) string { return fmt.Sprintf("%d-%d.body", x.At.Chunk, x.At.Row) }
