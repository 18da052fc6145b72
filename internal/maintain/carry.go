package maintain

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/skomerdb/skomer/internal/build"
	"github.com/skomerdb/skomer/internal/bundle"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/scan"
	"github.com/skomerdb/skomer/internal/store"
)

// maxCarried bounds the artifacts of one index that files may be made of: each is compared with their rows.
const maxCarried = 4096

// rewrite is what the table did since the overlay was brought to it: files that left and files that came. Artifacts of the former may be
// carried to the latter.
type rewrite struct {
	came    map[string]bool // stated paths
	carried map[string][]*build.Carried
	left    []build.Left
	same    map[string]bool // files that came and, by what their snapshot says of itself, hold rows that were there before
	failed  map[target]bool // that have to be built after all
}

// rewritten finds out whether files were rewritten since the last sync. A snapshot that has expired, or cannot be read, tells nothing:
// everything is built.
func (r *run) rewritten(ctx context.Context) error {
	r.rewrite = nil
	v := r.report.Version
	id := v.Upstream().SnapshotID
	if r.Past == nil || id <= 0 || id == r.snapshot.ID || len(v.Indexes()) == 0 {
		return nil
	}
	past, left, came := r.changed(ctx, id)
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(left) == 0 || len(came) == 0 {
		return nil
	}
	infos := r.leaving(left)
	records, errs := r.records(ctx, infos)
	if err := ctx.Err(); err != nil {
		return err
	}
	out := &rewrite{came: came, carried: map[string][]*build.Carried{}, failed: map[target]bool{}, same: r.onlyRewrote(came)}
	if len(out.same) > 0 {
		out.left = lefts(past, left)
	}
	for i := range infos {
		a := &infos[i]
		whole := errs[i] == nil && len(records[i].Files) == a.Files
		for k := 0; whole && k < len(records[i].Files); k++ {
			whole = left[records[i].Files[k].Path]
		}
		if errs[i] != nil || !whole && len(out.left) == 0 || len(out.carried[a.IndexID]) == maxCarried {
			continue
		}
		out.carried[a.IndexID] = append(out.carried[a.IndexID], &build.Carried{
			Record: records[i], Rows: a.Rows, Partial: !whole,
			Open: func(ctx context.Context) (index.Source, io.Closer, error) { return r.source(ctx, v, a) },
		})
	}
	if len(out.carried) > 0 {
		r.rewrite = out
	}
	return nil
}

// onlyRewrote is the files among those that came which snapshots added that replace files and change no row.
func (r *run) onlyRewrote(came map[string]bool) map[string]bool {
	out, known := map[string]bool{}, map[int64]bool{}
	f := &r.snapshot.Files
	for i, path := range f.Stated {
		if r.Replaces == nil || !came[path] || f.FirstRowID[i] == facts.Unknown {
			continue
		}
		replaces, ok := known[f.Snapshot[i]]
		if !ok {
			replaces = r.Replaces(f.Snapshot[i])
			known[f.Snapshot[i]] = replaces
		}
		if replaces {
			out[path] = true
		}
	}
	return out
}

// lefts is the files that left a snapshot and had row ids.
func lefts(past *facts.Snapshot, left map[string]bool) (out []build.Left) {
	f := &past.Files
	for i, path := range f.Stated {
		if left[path] && f.FirstRowID[i] != facts.Unknown {
			out = append(out, build.Left{
				File:       build.File{Ordinal: i, Path: f.Path[i], Stated: path, Size: f.Size[i], Records: f.Records[i]},
				FirstRowID: f.FirstRowID[i], Sequence: f.Sequence[i],
			})
		}
	}
	return out
}

// changed is an older snapshot, the files that left the table since and those that came.
func (r *run) changed(ctx context.Context, id int64) (past *facts.Snapshot, left, came map[string]bool) {
	past, err := r.Past(ctx, id)
	if err != nil {
		return nil, nil, nil
	}
	left, came = map[string]bool{}, map[string]bool{}
	for i, path := range past.Files.Stated {
		if past.Files.Format[i] == facts.Parquet {
			left[path] = true
		}
	}
	for _, path := range r.snapshot.Files.Stated {
		if left[path] {
			left[path] = false
		} else if _, there := left[path]; !there {
			came[path] = true
		}
	}
	for path, gone := range left {
		if !gone {
			delete(left, path)
		}
	}
	return past, left, came
}

// leaving is the artifacts of files that left, each once.
func (r *run) leaving(left map[string]bool) (out []overlay.ArtifactInfo) {
	v := r.report.Version
	seen := map[overlay.Place]bool{}
	var found []overlay.Placement
	for path := range left {
		found = v.AppendFind(found[:0], path)
		for _, p := range found {
			info, ok := v.Artifact(p.At)
			if ok && !seen[p.At] && info.Rows > 0 && scan.Outdated(&info, r.snapshot).OK() {
				seen[p.At] = true
				out = append(out, info)
			}
		}
	}
	slices.SortFunc(out, func(a, b overlay.ArtifactInfo) int { return compareKeys(a.Key(), b.Key()) })
	return out
}

// source brings an artifact to a temporary file, verified.
func (r *run) source(ctx context.Context, v *overlay.Version, a *overlay.ArtifactInfo) (src index.Source, _ io.Closer, err error) {
	_, sum, err := v.Paths(ctx, a.At)
	if err != nil {
		return src, nil, err
	}
	root := a.RootInline
	if root == nil {
		res := r.Store.Fetch(ctx, []store.Read{{Key: a.Bundle, Spans: []store.Span{{Off: a.Root.Off, Len: a.Root.Len}}}})[0]
		if res.Err != nil {
			return src, nil, res.Err
		}
		root = res.Data[0]
	}
	if err := bundle.VerifyRoot(a.Bundle, a.Root, root); err != nil {
		return src, nil, err
	}
	file, err := os.CreateTemp(r.Build.TempDir, "carried-*.body")
	if err != nil {
		return src, nil, fault.Wrap(fault.Exhausted, "temporary folder", err)
	}
	spool := &spooled{file}
	read, err := streamBody(ctx, r.Store, a, sum, file)
	r.mu.Lock()
	r.report.BytesRead += read
	r.mu.Unlock()
	if err != nil {
		return src, nil, errors.Join(err, spool.Close())
	}
	return index.Source{Root: root, Rows: a.Rows, Body: file, Size: a.Body.Len}, spool, nil
}

// spooled is a temporary file that goes when it is closed.
type spooled struct{ *os.File }

// Close closes and removes the file.
func (s *spooled) Close() error { return errors.Join(s.File.Close(), os.Remove(s.Name())) }

// carry tells a build what its artifacts may be made of, where all of its files came since the last sync.
func (r *run) carry(in *build.Unit) {
	if r.rewrite == nil || r.replaces != nil {
		return
	}
	for _, f := range in.Files {
		if !r.rewrite.came[f.Stated] {
			return
		}
	}
	for _, x := range in.Indexes {
		carried := r.rewrite.carried[x.Definition.ID]
		r.mu.Lock()
		for _, f := range in.Files {
			if r.rewrite.failed[target{f.Stated, x.Definition.ID}] {
				carried = nil
			}
		}
		r.mu.Unlock()
		if len(carried) == 0 {
			in.Carry = nil // the columns are read for the others anyway
			return
		}
		if in.Carry == nil {
			in.Carry = map[string][]*build.Carried{}
		}
		in.Carry[x.Definition.ID] = carried
	}
	for _, f := range in.Files {
		if !r.rewrite.same[f.Stated] {
			return
		}
	}
	in.Left = r.rewrite.left
}
