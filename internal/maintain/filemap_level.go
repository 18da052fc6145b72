package maintain

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/google/uuid"

	"github.com/skomerdb/skomer/internal/build"
	"github.com/skomerdb/skomer/internal/bundle"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/wave"
)

const (
	// levelRatio is how much larger the runs of one level are than those of the level below, levels how many there are, one run in each.
	levelRatio = 16
	levels     = 4
)

// levelOf is the level of a run among runs of which the largest has most keys.
func levelOf(keys, most uint64) int {
	level := levels - 1
	for ; level > 0 && keys < most/levelRatio; level-- {
		keys *= levelRatio
	}
	return level
}

// merges is which runs, by number, become one: two runs of one level do, and the result falls into the level of its size.
func merges(keys []uint64) [][]int {
	sets := make([][]int, len(keys))
	for i := range keys {
		sets[i] = []int{i}
	}
	keys = slices.Clone(keys)
	for {
		at := [levels]int{-1, -1, -1, -1}
		merged := false
		for i, n := range keys {
			level := levelOf(max(n, 1), max(slices.Max(keys), 1))
			if first := at[level]; first >= 0 {
				sets[first] = append(sets[first], sets[i]...)
				keys[first] += n
				sets, keys = slices.Delete(sets, i, i+1), slices.Delete(keys, i, i+1)
				merged = true
				break
			}
			at[level] = i
		}
		if !merged {
			return slices.DeleteFunc(sets, func(s []int) bool { return len(s) < 2 })
		}
	}
}

// level merges runs, and writes anew those that mostly speak of files that are gone. Runs whose files were read in different ways stay apart.
func (k *keeping) level(ctx context.Context) error {
	alike, err := k.alike(func(r *wave.ListedRun) bool { return r.Run != nil })
	if err != nil {
		return err
	}
	for _, runs := range alike {
		keys := make([]uint64, len(runs))
		for i, r := range runs {
			keys[i] = r.Meta.Keys
		}
		var done []*wave.ListedRun
		for _, set := range merges(keys) {
			var sources []*wave.ListedRun
			for _, i := range set {
				sources = append(sources, runs[i])
			}
			done = append(done, sources...)
			if err := k.merge(ctx, sources); err != nil {
				return err
			}
		}
		for _, r := range runs {
			if !slices.Contains(done, r) && 2*k.alive(r) < len(r.Run.Files) {
				if err := k.merge(ctx, []*wave.ListedRun{r}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// alike is the runs of the index that may speak and that accept, by how their files were read.
func (k *keeping) alike(accept func(*wave.ListedRun) bool) (map[string][]*wave.ListedRun, error) {
	out := map[string][]*wave.ListedRun{}
	for _, r := range k.listed {
		if accept(r) && r.Index == k.index.Definition.ID && lineage.CheckClaim(r.Meta.Claim(r.Key), k.lineage()).OK() {
			how, err := json.Marshal(r.Meta.Columns)
			if err != nil {
				return nil, err
			}
			out[string(how)] = append(out[string(how)], r)
		}
	}
	for _, runs := range out { // which runs are merged does not depend on their names
		slices.SortStableFunc(runs, func(a, b *wave.ListedRun) int {
			return cmp.Or(cmp.Compare(a.Meta.Sequence, b.Meta.Sequence), cmp.Compare(a.Meta.Keys, b.Meta.Keys))
		})
	}
	return out, nil
}

// keeps tells whether a run still speaks for the file in a slot.
func (k *keeping) keeps(r *wave.ListedRun, slot int) bool {
	f := &r.Run.Files[slot]
	_, gone := slices.BinarySearch(r.Meta.Invalid, uint32(slot))
	if k.short != nil {
		return !gone // files of runs that have others are not merged then
	}
	i, ok := k.files[f.Path]
	return ok && !gone && k.Snapshot.Files.Size[i] == f.Size && k.Snapshot.Files.Records[i] == f.Records
}

func (k *keeping) alive(r *wave.ListedRun) (n int) {
	for slot := range r.Run.Files {
		if k.keeps(r, slot) {
			n++
		}
	}
	return n
}

// merge puts one run in the place of several, or none where none of their files is left. Where somebody else merged one of them first,
// theirs counts.
func (k *keeping) merge(ctx context.Context, sources []*wave.ListedRun) (err error) {
	made := k.listOf(sources)
	left := 0
	for _, r := range sources {
		left += k.alive(r)
	}
	if left == 0 {
		return k.commit(ctx, overlay.ReplaceDerived(nil, made))
	}
	id := uuid.NewString()
	c, err := announce(ctx, k.Overlay, k.Version, id)
	if c == nil {
		return err // or the next sync merges them
	}
	defer func() { err = errors.Join(err, c.end(ctx)) }()
	m, err := k.write(ctx, id, sources)
	var bad *filemap.SourceError
	if errors.As(err, &bad) && lost(err) {
		return errors.Join(err, k.commit(ctx, overlay.ReplaceDerived(nil, k.listOf(sources[bad.Source:bad.Source+1]))))
	}
	if err != nil {
		return err
	}
	defer func() {
		for _, p := range m.Files.Paths {
			err = errors.Join(err, os.Remove(p))
		}
	}()
	put, err := putRun(ctx, k.State, id, 0, *m)
	if err != nil {
		return err
	}
	for _, n := range m.Files.Sizes {
		k.Report.BytesWritten += n
	}
	return k.commit(ctx, overlay.ReplaceDerived(put, made))
}

// listOf is all that the overlay lists of runs.
func (k *keeping) listOf(runs []*wave.ListedRun) []overlay.Derived {
	var out []overlay.Derived
	parts := k.Version.Derived(filemap.PartKind)
	for _, r := range runs {
		out = append(out, r.Derived)
		for n := range len(r.Meta.Objects) - 1 {
			name := fmt.Sprintf("%s/%d", r.Name, n)
			if i := slices.IndexFunc(parts, func(e overlay.Derived) bool { return e.Name == name }); i >= 0 {
				out = append(out, parts[i])
			}
		}
	}
	return out
}

// write merges runs into local files.
func (k *keeping) write(ctx context.Context, id string, runs []*wave.ListedRun) (*build.Map, error) {
	meta := filemap.Meta{FormatVersion: lineage.FormatVersion, TableUUID: k.Snapshot.TableUUID, Columns: runs[0].Meta.Columns}
	var sources []filemap.Source
	for _, r := range runs {
		sources = append(sources, filemap.Source{
			Run: r.Run, Keep: func(slot int) bool { return k.keeps(r, slot) },
			Fetch: func(from, to int) ([][]byte, error) {
				return fetchLeaves(ctx, k.Store, k.Overlay.Prefix(), r, from, to)
			},
		})
		if r.Meta.Sequence >= meta.Sequence {
			meta.Sequence, meta.SnapshotID = r.Meta.Sequence, r.Meta.SnapshotID
		}
	}
	info := bundle.BuildInfo{BuildID: id, TableUUID: meta.TableUUID, SnapshotID: meta.SnapshotID, Sequence: meta.Sequence}
	out := bundle.NewRunWriter(k.Build.TempDir, info, k.index.Definition.ID, k.index.Definition.FieldIDs[0])
	root, _, err := filemap.Merge(sources, out)
	if err != nil {
		out.Abandon()
		return nil, err
	}
	merged, err := filemap.Open(root)
	if err != nil {
		out.Abandon()
		return nil, err
	}
	files, err := out.Close(root, merged.Layouts(k.layouts(ctx, runs)))
	if err != nil {
		out.Abandon()
		return nil, err
	}
	meta.Describe(merged)
	return &build.Map{IndexID: k.index.Definition.ID, Files: files, Meta: meta}, nil
}

// layouts finds those of the files of runs. What cannot be read is left out: the footers of such files are read.
func (k *keeping) layouts(ctx context.Context, runs []*wave.ListedRun) func(*filemap.File) (filemap.Layout, bool) {
	all := make([]*wave.Layouts, len(runs))
	var tasks []*wave.Task
	for i, r := range runs {
		all[i] = k.runs.Layouts(k.Overlay.Prefix(), r)
		tasks = all[i].AppendTask(tasks)
	}
	known := map[filemap.File]filemap.Layout{}
	if err := wave.Run(ctx, k.Store, tasks); err == nil {
		for i, r := range runs {
			for slot, f := range r.Run.Files {
				if l, ok := all[i].Of(slot); ok {
					f.Stride = 0
					known[f] = l
				}
			}
		}
	}
	return func(f *filemap.File) (filemap.Layout, bool) {
		incarnation := *f
		incarnation.Stride = 0
		l, ok := known[incarnation]
		return l, ok
	}
}

// fetchLeaves reads the leaves of a run from one to another, without the empty ones; the value map counts as the one behind the last.
func fetchLeaves(ctx context.Context, st store.Store, prefix string, r *wave.ListedRun, from, to int) ([][]byte, error) {
	var reads []store.Read
	last := -1
	for i := from; i < to; i++ {
		p := r.Run.PlaceOf(i)
		if p.Len == 0 {
			continue
		}
		o := r.Meta.Objects[p.Object]
		if p.Object != last {
			reads = append(reads, store.Read{Key: prefix + "/" + o.Key})
			last = p.Object
		}
		read := &reads[len(reads)-1]
		read.Spans = append(read.Spans, store.Span{Off: o.Off + p.Off, Len: p.Len})
	}
	if len(reads) == 0 {
		return nil, nil
	}
	var out [][]byte
	for i, res := range st.Fetch(ctx, reads) {
		if res.Err != nil {
			return nil, fault.About(reads[i].Key, res.Err)
		}
		out = append(out, res.Data...)
	}
	return out, nil
}
