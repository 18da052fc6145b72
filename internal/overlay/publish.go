package overlay

import (
	"context"
	"crypto/sha256"
	"math"
	"slices"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
)

// Confirm tells, after the table moved under a build, which files still are in it with the same identity; the answer runs
// parallel to files.
type Confirm func(ctx context.Context, now Upstream, files []Identity) ([]bool, error)

type publish struct {
	builds  []Build
	confirm Confirm
	repair  bool
}

// Publish adds the artifacts of finished builds. An artifact is discarded, and the rest published, when
//
//   - a vacuum revoked its build,
//   - its index was dropped,
//   - a file of its build was erased, and the build did not leave out deleted rows,
//   - one of its files already has an artifact of that index with the same identity (the first commit wins),
//   - an artifact that it replaces is gone,
//   - the table was synced to another snapshot since the build's version, and none of its files is confirmed. A nil confirm
//     keeps all: artifacts of files that left the table are never looked up.
func Publish(confirm Confirm, builds ...Build) Change {
	return &publish{builds: builds, confirm: confirm}
}

// Repair is Publish for artifacts that take the place of rejected ones: confirm is asked whether or not the table moved, and it is
// no matter if somebody else took out what an artifact replaces. An artifact of the same incarnation that was published meanwhile
// is the newer one and stays.
func Repair(confirm Confirm, builds ...Build) Change {
	return &publish{builds: builds, confirm: confirm, repair: true}
}

func (p *publish) apply(ctx context.Context, d *draft) error {
	if err := d.mounted(); err != nil {
		return err
	}
	gone, err := p.gone(ctx, d)
	if err != nil {
		return err
	}
	for b := range p.builds {
		build := &p.builds[b]
		erased := d.readErased(build)
		for i := range build.Artifacts {
			if err := d.publish(build, i, gone, p.repair, erased); err != nil {
				return err
			}
		}
	}
	return nil
}

// gone is the files that the table no longer has.
func (p *publish) gone(ctx context.Context, d *draft) (map[Identity]bool, error) {
	if p.confirm == nil || !p.repair && d.planned.Upstream().SnapshotID == d.header.Upstream.SnapshotID {
		return nil, nil
	}
	var files []Identity
	seen := map[Identity]bool{}
	for b := range p.builds {
		for i := range p.builds[b].Artifacts {
			for _, f := range p.builds[b].Artifacts[i].Files {
				if !seen[f] {
					seen[f] = true
					files = append(files, f)
				}
			}
		}
	}
	still, err := p.confirm(ctx, d.header.Upstream, files)
	if err != nil {
		return nil, err
	}
	if len(still) != len(files) {
		return nil, fault.New(fault.Invalid, "build", "%d files were asked about, %d answered", len(files), len(still))
	}
	gone := map[Identity]bool{}
	for i, f := range files {
		gone[f] = !still[i]
	}
	return gone, nil
}

func (d *draft) publish(build *Build, i int, gone map[Identity]bool, lenient, erased bool) error {
	a := &build.Artifacts[i]
	if err := a.check(build); err != nil {
		return err
	}
	replaced, reason := d.admit(a, gone, lenient)
	switch {
	case d.revoked(build.ID):
		reason = "build revoked"
	case erased:
		reason = "file erased"
	}
	if reason != "" {
		d.receipt.Discarded = append(d.receipt.Discarded, Discarded{build.ID, i, a.IndexID, reason})
		return nil
	}
	if d.shape == "" || !slices.Equal(d.columns, a.Columns) {
		var err error
		if d.shape, err = shapeOf(a.Columns); err != nil {
			return fault.Wrap(fault.Invalid, build.Bundle, err)
		}
		d.columns = a.Columns
	}
	info := bundleInfo{build.Bundle, build.ID, build.SnapshotID, build.Sequence}
	if other, ok := d.bundles[build.Bundle]; ok && other != info {
		return fault.New(fault.Invalid, build.Bundle, "is the bundle of two builds")
	}
	key := Key{build.Bundle, a.Lineage.Off}
	if _, ok := d.base.lookup(key); ok || d.keys[key] {
		return fault.New(fault.Invalid, build.Bundle, "two artifacts have their lineage at %d", a.Lineage.Off)
	}
	d.bundles[build.Bundle], d.keys[key] = info, true
	for _, at := range replaced {
		d.dead[at.Chunk] = d.dead[at.Chunk].with(int(at.Row))
	}
	for _, f := range a.Files {
		d.taken[claimed{a.IndexID, f}] = true
	}
	d.fresh = append(d.fresh, entry{
		index: a.IndexID, bundle: info, shape: d.shape,
		format: uint32(a.FormatVersion), files: a.Files, body: a.Body, root: a.Root, lineage: a.Lineage,
		inline: d.inline(a), sha: a.BodySHA256, rootSHA: rootSum(a.RootInline),
	})
	d.changed = true
	return nil
}

// admit finds the artifacts that a replaces, or the reason to discard it.
func (d *draft) admit(a *Artifact, gone map[Identity]bool, lenient bool) (replaced []Place, reason string) {
	if !d.declared(a.IndexID) {
		return nil, "index dropped"
	}
	for _, k := range a.Replaces {
		at, ok := d.base.lookup(k)
		if !ok || d.dead[at.Chunk].has(int(at.Row)) {
			if lenient {
				continue
			}
			return nil, "replaced artifact is gone"
		}
		replaced = append(replaced, at)
	}
	left := 0
	for _, f := range a.Files {
		if !gone[f] {
			left++
		}
		if d.taken[claimed{a.IndexID, f}] || d.covered(a.IndexID, f, replaced) {
			return nil, "file already indexed"
		}
	}
	if left == 0 {
		return nil, "files left the table"
	}
	return replaced, ""
}

func (d *draft) declared(id string) bool {
	for i := range d.header.Indexes {
		if d.header.Indexes[i].ID == id {
			return true
		}
	}
	return false
}

// covered reports whether a live artifact of the index, apart from those in replaced, is about the same incarnation.
func (d *draft) covered(index string, f Identity, replaced []Place) bool {
next:
	for _, p := range d.base.find(nil, f.Path, true) {
		if p.IndexID != index || p.Identity != f || d.dead[p.At.Chunk].has(int(p.At.Row)) {
			continue
		}
		for _, r := range replaced {
			if r == p.At {
				continue next
			}
		}
		return true
	}
	return false
}

func rootSum(root []byte) (sum [32]byte) {
	if root != nil {
		sum = sha256.Sum256(root)
	}
	return sum
}

// inline is the root if it is small and the commit has room for it.
func (d *draft) inline(a *Artifact) []byte {
	if a.RootInline == nil || len(a.RootInline) > maxRootInline || d.inlined+len(a.RootInline) > maxInlineTotal {
		return nil
	}
	d.inlined += len(a.RootInline)
	return a.RootInline
}

// check refuses what no builder may hand in.
func (a *Artifact) check(build *Build) error {
	bad := func(reason string, args ...any) error { return fault.New(fault.Invalid, build.Bundle, reason, args...) }
	if build.Bundle == "" || a.IndexID == "" || len(a.Files) == 0 {
		return bad("an artifact needs a bundle, an index and files")
	}
	for _, p := range []lineage.Place{a.Body, a.Root, a.Lineage} {
		if p.Off < 0 || p.Len < 0 || p.End() < p.Off {
			return bad("no range: offset %d, length %d", p.Off, p.Len)
		}
	}
	if a.Root.Len > math.MaxUint32 || a.Lineage.Len > math.MaxUint32 || a.Lineage.Len == 0 {
		return bad("root of %d bytes, lineage of %d", a.Root.Len, a.Lineage.Len)
	}
	if a.RootInline != nil && (int64(len(a.RootInline)) != a.Root.Len || bytescan.CRC32C(a.RootInline) != a.Root.CRC) {
		return bad("the root at hand is not the root of the bundle")
	}
	rows := int64(0)
	seen := make(map[string]bool, len(a.Files))
	for _, f := range a.Files {
		if f.Path == "" || len(f.Path) > maxPath || f.Size < 0 || f.Records < 0 || f.Records >= lineage.MaxRows {
			return bad("file %q of %d bytes and %d rows cannot be indexed", f.Path, f.Size, f.Records)
		}
		if rows += f.Records; rows >= lineage.MaxRows {
			return bad("segment of %d rows", rows)
		}
		if seen[f.Path] {
			return bad("file %s stands twice in one segment", f.Path)
		}
		seen[f.Path] = true
	}
	return nil
}
