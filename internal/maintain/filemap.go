package maintain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/google/uuid"

	"github.com/skomerdb/skomer/internal/build"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/scan"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/wave"
)

// mappedKinds is the kinds whose builds feed a file map: those that answer =, IN or contains on one column.
var mappedKinds = map[string]bool{"bloom": true, "valueset": true, "bitmap": true, "ordered": true}

// Mapped is the indexes that own a file map: of every column the first declared one of a kind that feeds it.
func Mapped(indexes []overlay.Definition) []overlay.Definition {
	var out []overlay.Definition
	for _, d := range indexes {
		taken := slices.ContainsFunc(out, func(o overlay.Definition) bool { return o.FieldIDs[0] == d.FieldIDs[0] })
		if mappedKinds[d.Kind] && len(d.FieldIDs) == 1 && !taken {
			out = append(out, d)
		}
	}
	return out
}

// mappable is what a build needs to know to feed the file map of an index; false where the table as it is has no such column.
func mappable(s *facts.Snapshot, d overlay.Definition) (build.Index, bool) {
	k, ok := kinds.ByName(d.Kind)
	path := s.Schema.ByID(d.FieldIDs[0])
	if !ok || path == nil {
		return build.Index{}, false
	}
	x := build.Index{Definition: d, Kind: k, Columns: []column.Path{slices.Clone(path)}}
	_, err := index.OneColumnOrElement(filemap.Kind, x.Columns)
	return x, err == nil
}

// feeds is the indexes of a build whose file maps its files are to be entered in.
func (r *run) feeds(missing []overlay.Definition) []build.Index {
	var out []build.Index
	if r.Overlay.Keyed() {
		return nil // blocks of runs have no checksum that is a proof
	}
	for _, d := range Mapped(r.base.Indexes()) {
		if !slices.ContainsFunc(missing, func(m overlay.Definition) bool { return m.ID == d.ID }) {
			continue
		}
		if x, ok := mappable(r.snapshot, d); ok {
			out = append(out, x)
		}
	}
	return out
}

// putMaps uploads the runs of a build and lists them. Runs over files of which rows were erased are left out.
func putMaps(ctx context.Context, s *State, res *build.Result) (out []overlay.Derived, bytes int64, err error) {
	defer func() {
		for _, m := range res.Maps {
			for _, p := range m.Files.Paths {
				err = errors.Join(err, os.Remove(p))
			}
		}
	}()
	for n, m := range res.Maps {
		if slices.ContainsFunc(m.Covered, s.Version.Erased) {
			continue
		}
		put, err := putRun(ctx, s, res.Build.ID, n, m)
		if err != nil {
			return nil, 0, err
		}
		out = append(out, put...)
		for _, size := range m.Files.Sizes {
			bytes += size
		}
	}
	return out, bytes, nil
}

// putRun uploads the nth run of a declared build under a name that was never used: the objects and what the overlay lists of them, the
// run itself first. If the build is revoked before they are listed, they are not.
func putRun(ctx context.Context, s *State, declared string, n int, m build.Map) ([]overlay.Derived, error) {
	name := fmt.Sprintf("%s-map%d", declared, n)
	var out []overlay.Derived
	for k, path := range m.Files.Paths {
		object := fmt.Sprintf("%s-%d.puffin", name, k)
		if err := upload(ctx, s.Store, path, s.Overlay.DataKey(object)); err != nil {
			return nil, err
		}
		key := "data/" + object
		m.Meta.Objects = append(m.Meta.Objects, filemap.Object{Key: key, Off: m.Files.First[k]})
		if k < len(m.Files.Paths)-1 {
			out = append(out, overlay.Derived{Kind: filemap.PartKind, Name: fmt.Sprintf("%s/%d", name, k), Index: m.IndexID, Key: key, Build: declared})
		}
	}
	if at := m.Files.Layouts; at != nil {
		m.Meta.Layouts = new(filemap.Stored(*at))
	}
	root := m.Files.Root
	if root.Len <= filemap.MaxRootInline {
		var err error
		if m.Meta.Root, err = readAt(m.Files.Paths[len(m.Files.Paths)-1], root); err != nil {
			return nil, err
		}
	}
	meta, err := json.Marshal(m.Meta)
	if err != nil {
		return nil, err
	}
	last := m.Meta.Objects[len(m.Meta.Objects)-1].Key
	return slices.Insert(out, 0, overlay.Derived{
		Kind: filemap.Kind, Name: name, Index: m.IndexID, Key: last, Off: root.Off, Len: root.Len, CRC: root.CRC, Meta: meta, Build: declared,
	}), nil
}

func readAt(path string, at lineage.Place) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, path, err)
	}
	defer f.Close()
	out := make([]byte, at.Len)
	_, err = f.ReadAt(out, at.Off)
	return out, err
}

// MapFiles is the phase that keeps file maps: files that artifacts cover and no run does are read for it, runs no longer speak for files
// that were overwritten, and runs are merged so that few are left.
func MapFiles(runs *wave.Runs) Phase {
	return Phase{Name: "file maps", Run: func(ctx context.Context, s *State) error {
		for _, d := range Mapped(s.Version.Indexes()) {
			x, ok := mappable(s.Snapshot, d)
			if !ok {
				continue
			}
			k := &keeping{State: s, runs: runs, index: x}
			keep := k.keep
			if s.short != nil {
				keep = k.keepNew
			}
			if err := keep(ctx); err != nil {
				return err
			}
		}
		return nil
	}}
}

// keeping is the care of one file map.
type keeping struct {
	*State
	runs   *wave.Runs
	index  build.Index
	listed []*wave.ListedRun // of the column; of a sync that takes a shortcut those that are merged
	files  map[[16]byte]int  // of the snapshot that can be indexed, by the key of their paths
}

func (k *keeping) keep(ctx context.Context) error {
	f := &k.Snapshot.Files
	k.files = make(map[[16]byte]int, f.Len())
	for i, p := range f.Stated {
		if f.Format[i] == facts.Parquet && !f.Encrypted[i] {
			k.files[filemap.PathKey(p)] = i
		}
	}
	if err := k.load(ctx); err != nil {
		return err
	}
	if err := k.invalidate(ctx); err != nil {
		return err
	}
	for range mends {
		if err := k.fill(ctx); err != nil {
			return err
		}
		var bad *filemap.SourceError
		switch err := k.level(ctx); {
		case err == nil:
			k.note()
			return nil
		case !errors.As(err, &bad) || !lost(err):
			return err
		}
	}
	return nil
}

// mends is how often runs that turn out to be damaged while they are merged are made anew in one sync.
const mends = 3

// lost tells that reading a run again cannot help.
func lost(err error) bool { return fault.Is(err, fault.Corrupt) || fault.Is(err, fault.NotFound) }

// load opens the runs of the column.
func (k *keeping) load(ctx context.Context) (err error) {
	field := k.index.Definition.FieldIDs[0]
	k.listed, err = k.runs.LoadStored(ctx, k.Store, k.Overlay.Prefix(), k.Version, func(index string) bool { return scan.OnField(k.Version, index, field) })
	return err
}

func (k *keeping) commit(ctx context.Context, changes ...overlay.Change) error {
	receipt, err := k.Overlay.Commit(ctx, k.Version, changes...)
	if err != nil {
		return err
	}
	k.Version = receipt.Version
	if k.short != nil {
		return nil
	}
	return k.load(ctx)
}

// invalidate marks the slots of files whose artifacts saw another tag than the run did, and takes out runs that cannot speak again.
func (k *keeping) invalidate(ctx context.Context) error {
	var changes []overlay.Change
	for _, r := range k.listed {
		switch {
		case r.Err != nil && lost(r.Err), r.Run != nil && k.outdated(r):
			changes = append(changes, overlay.ReplaceDerived(nil, k.listOf([]*wave.ListedRun{r})))
			continue
		case r.Run == nil:
			continue
		}
		change, err := unmap(r, k.overwritten)
		if err != nil {
			return err
		}
		if change != nil {
			changes = append(changes, change)
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return k.commit(ctx, changes...)
}

// unmap is the change that marks the slots of overwritten files in a run as not speaking; nil where there is none to mark.
func unmap(r *wave.ListedRun, overwritten func(*filemap.File) bool) (overlay.Change, error) {
	gone := slices.Clone(r.Meta.Invalid)
	for slot := range r.Run.Files {
		if _, known := slices.BinarySearch(r.Meta.Invalid, uint32(slot)); !known && overwritten(&r.Run.Files[slot]) {
			gone = append(gone, uint32(slot))
		}
	}
	if len(gone) == len(r.Meta.Invalid) {
		return nil, nil
	}
	slices.Sort(gone)
	meta := *r.Meta
	meta.Invalid = gone
	raw, err := json.Marshal(meta)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, r.Key, err)
	}
	e := r.Derived
	e.Meta = raw
	return overlay.ReplaceDerived([]overlay.Derived{e}, []overlay.Derived{r.Derived}), nil
}

// outdated tells that a build would find the column of a run elsewhere now, or put other values for absent ones.
func (k *keeping) outdated(r *wave.ListedRun) bool {
	return !scan.Outdated(&overlay.ArtifactInfo{Columns: r.Meta.Columns}, k.Snapshot).OK()
}

// overwritten tells that the artifacts of a file that is in the snapshot as the run saw it were built from another incarnation, or that rows of
// it were erased.
func (k *keeping) overwritten(f *filemap.File) bool {
	i, ok := k.files[f.Path]
	if !ok || k.Snapshot.Files.Size[i] != f.Size || k.Snapshot.Files.Records[i] != f.Records {
		return false
	}
	if k.Version.Erased(k.identity(i, f.Tag)) {
		return true
	}
	other := false
	for _, p := range k.Version.Find(k.Snapshot.Files.Stated[i]) {
		if p.Identity == k.identity(i, f.Tag) {
			return false
		}
		other = other || p.Identity.Size == f.Size && p.Identity.Records == f.Records
	}
	return other
}

func (k *keeping) identity(i int, tag string) overlay.Identity {
	f := &k.Snapshot.Files
	return overlay.Identity{Path: f.Stated[i], Size: f.Size[i], Records: f.Records[i], Tag: store.Tag(tag)}
}

// fill reads the files that an artifact of the index covers and no run does.
func (k *keeping) fill(ctx context.Context) error {
	files := k.uncovered()
	for len(files) > 0 {
		n, rows := 0, int64(0)
		for n < len(files) && n < unitFiles && (n == 0 || rows+files[n].Records <= unitRows) {
			rows += files[n].Records
			n++
		}
		later, err := k.read(ctx, files[:n])
		if err != nil {
			return err
		}
		files = append(files[n:], later...)
	}
	return nil
}

// uncovered is the files that an artifact of the index covers and no run does.
func (k *keeping) uncovered() (files []build.File) {
	c := scan.Cover(k.Snapshot, k.listed, k.lineage())
	f := &k.Snapshot.Files
	for _, i := range k.files {
		id := k.identity(i, "")
		indexed := slices.ContainsFunc(k.Version.Find(f.Stated[i]), func(p overlay.Placement) bool {
			return p.IndexID == k.index.Definition.ID && p.Identity.Size == id.Size && p.Identity.Records == id.Records
		})
		if indexed && !c.Covers(i) && !k.Version.Erased(id) {
			files = append(files, build.File{Ordinal: i, Path: f.Path[i], Stated: f.Stated[i], Size: f.Size[i], Records: f.Records[i]})
		}
	}
	slices.SortFunc(files, func(a, b build.File) int { return a.Ordinal - b.Ordinal })
	return files
}

func (k *keeping) lineage() lineage.Options {
	return lineage.Options{
		TableUUID: k.Snapshot.TableUUID, TableLastSequence: k.Snapshot.LastSequence, ActiveSnapshotID: k.Snapshot.ID,
	}
}

// read makes and publishes a run over files. It returns those whose column is found in another way than in the first of them.
func (k *keeping) read(ctx context.Context, files []build.File) (later []build.File, err error) {
	id := uuid.NewString()
	c, err := announce(ctx, k.Overlay, k.Version, id)
	if c == nil {
		return nil, err // or the next sync reads them
	}
	defer func() { err = errors.Join(err, c.end(ctx)) }()
	res, err := k.Build.Build(ctx, build.Unit{ID: id, Snapshot: k.Snapshot, Files: files, Maps: []build.Index{k.index}})
	if err != nil {
		return nil, err
	}
	if res.Path != "" {
		defer os.Remove(res.Path)
	}
	k.Report.BytesRead += res.BytesRead
	put, bytes, err := putMaps(ctx, k.State, res)
	if err != nil || len(put) == 0 {
		return res.Later, err
	}
	k.Report.BytesWritten += bytes
	return res.Later, k.commit(ctx, overlay.Derive(put, nil))
}
