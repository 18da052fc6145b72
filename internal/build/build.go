// Package build answers: what are the artifacts of these data files?
//
// A unit, some data files and the indexes that none of them has yet, becomes one bundle or nothing. Every file is read once,
// its indexed columns only, under the entity tag of its footer; what was read is hashed into the lineage of each artifact.
// The package knows no overlay versions and publishes nothing.
package build

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/skomerdb/skomer/internal/bundle"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/store"
)

// File is a data file to index, as the snapshot's manifest states it.
type File struct {
	Ordinal       int // in the unit's snapshot
	Path, Stated  string
	Size, Records int64
}

// Index is an index to build.
type Index struct {
	Definition overlay.Definition
	Kind       kinds.Entry
	Columns    []column.Path
}

// Unit is the work of one build.
type Unit struct {
	ID       string // build id, never used before
	Bundle   string // object key that the bundle will have
	Snapshot *facts.Snapshot
	Files    []File
	Indexes  []Index
	// Maps is the indexes of one column whose values go into a run of a file map, whether or not they are built too.
	Maps []Index
	// Carry is, by index id, artifacts of files that left the table, which the unit's may be made of.
	Carry map[string][]*Carried
	// Left is the files that left the table, where the unit's files only rewrote rows of some: then row ids tell which.
	Left []Left
	// Enough, asked after each finished file, ends the unit there: the rest of the files is for Later. nil: it ends with its last file.
	Enough func() bool
}

// Result is a finished bundle in a local file, not yet uploaded.
type Result struct {
	Path  string // the bundle; the caller removes it
	Size  int64
	Build overlay.Build
	// Files is how many of the unit's files the artifacts cover.
	Files int
	Rows  int64
	// Skipped is the files that cannot be indexed, with the reason; Later those whose columns are found in another way than in
	// the rest of the unit, and those behind the end of a unit that had enough: they need another unit.
	Skipped  map[string]string
	Later    []File
	Declined map[string]string // index id → why an artifact was not worth keeping
	Refusals []Refusal
	// Carried is how many artifacts were taken over; NotCarried those that were to be and still have to be built, with their files.
	Carried    int
	NotCarried []Refusal
	Maps       []Map
	BytesRead  int64
}

// Refusal is an artifact that was not worth keeping, and the files that it would have covered.
type Refusal struct {
	IndexID, Algorithm string
	Files              []overlay.Identity
	Reason             string
}

// Builder builds units. Its fields are set once; it is safe for concurrent use.
type Builder struct {
	Store   store.Store
	Footers *parquetio.Footers
	TempDir string
	Memory  int64 // for one unit
}

// Build reads the unit's files and writes the bundle. A file that turns out to be unreadable is left out and the unit built
// again without it; one that changed since its footer was kept is read anew once. No file left: a Result without a Path.
func (b *Builder) Build(ctx context.Context, u Unit) (*Result, error) {
	r := &Result{Skipped: map[string]string{}, Declined: map[string]string{}}
	renewed := map[string]bool{}
	for {
		r.Later, r.Refusals, r.Maps, r.NotCarried, r.Carried = nil, nil, nil, nil, 0
		files, err := b.open(ctx, u, r)
		if err != nil || len(files) == 0 {
			return r, err
		}
		from, err := b.origins(ctx, u, files, r)
		if err != nil {
			return nil, err
		}
		u.Left = nil // one attempt
		bad, err := b.try(ctx, u, files, from, r)
		if err == nil {
			return r, nil
		}
		if errors.Is(err, errNotCarried) {
			if from == nil {
				u.Carry = nil
			}
			continue
		}
		if bad == nil || ctx.Err() != nil || !permanent(err) {
			return nil, err
		}
		b.Footers.Forget(bad.Path)
		if fault.Is(err, fault.Stale) && !renewed[bad.Path] {
			renewed[bad.Path] = true
			continue
		}
		r.Skipped[bad.Path] = err.Error()
		u.Files = slices.DeleteFunc(slices.Clone(u.Files), func(f File) bool { return f.Path == bad.Path })
	}
}

// permanent tells errors of a data file itself from those of the store.
func permanent(err error) bool {
	switch fault.ClassOf(err) {
	case fault.Corrupt, fault.Unsupported, fault.NotFound, fault.Stale, fault.Denied:
		return true
	default:
		return false
	}
}

// try builds the bundle of files; on failure bad is the file at fault, if it is one.
func (b *Builder) try(ctx context.Context, u Unit, files []*source, from *origins, r *Result) (bad *source, err error) {
	dir, err := os.MkdirTemp(b.TempDir, "build-")
	if err != nil {
		return nil, fault.Wrap(fault.Exhausted, b.TempDir, err)
	}
	defer os.RemoveAll(dir)
	out, err := os.CreateTemp(b.TempDir, "bundle-*.puffin")
	if err != nil {
		return nil, fault.Wrap(fault.Exhausted, b.TempDir, err)
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			_ = os.Remove(out.Name())
		}
	}()
	w := &writing{
		derived: map[int]*column.Vector{}, left: map[string]lineage.File{}, Builder: b, unit: u, files: files, origins: from, result: r, temp: dir,
		out: bundle.NewWriter(out, bundle.BuildInfo{
			BuildID: u.ID, TableUUID: u.Snapshot.TableUUID, SnapshotID: u.Snapshot.ID, Sequence: u.Snapshot.Sequence,
		}),
	}
	defer w.close()
	if bad, err = w.all(ctx); err != nil {
		return bad, err
	}
	info, err := out.Stat()
	if err != nil {
		return nil, fault.Wrap(fault.Unclassified, filepath.Base(out.Name()), err)
	}
	r.Path, r.Size, r.Files = out.Name(), info.Size(), len(w.files)
	for _, f := range w.files {
		r.Rows += int64(f.rows)
	}
	return nil, nil
}

// budget is what one of n builders at work may hold.
func (b *Builder) budget(n int, temp string) index.Budget {
	return index.Budget{Memory: b.memory() / int64(max(n, 1)) / 2, TempDir: temp}
}

func (b *Builder) memory() int64 {
	if b.Memory <= 0 {
		return 512 << 20
	}
	return b.Memory
}
