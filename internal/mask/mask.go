package mask

import (
	"context"
	"runtime"

	"github.com/RoaringBitmap/roaring/v2"
	"golang.org/x/sync/errgroup"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
)

// Masker finds deleted rows. Its fields are set once; it is safe for concurrent use.
type Masker struct {
	Store   store.Store
	Footers *parquetio.Footers
	Cache   *Cache
	// Map is the table's location mapping: paths in delete files go through it as those in manifests do. Nil: none.
	Map func(string) string
	// Memory bounds the bytes of equality keys that one call holds, and of pages that are read together. 0: DefaultMemory.
	Memory  int64
	Workers int // goroutines that decode; 0: one a core
	// Archive holds masks that an earlier process saved; nil: none.
	Archive *Archive
	// Evidence rules out rows that equality deletes cannot hide, asked where reading the key columns takes EvidenceFrom bytes or more.
	// Nil: none.
	Evidence     Evidence
	EvidenceFrom int64
}

// DefaultMemory is the bound of a Masker without one.
const DefaultMemory = 256 << 20

// File is a data file whose deleted rows are asked for.
type File struct {
	Ordinal int       // in the snapshot's files
	Tag     store.Tag // that reads of the file must match, if not empty
	// Interest is the rows that matter; nil: all. Equality deletes are evaluated on these rows only.
	Interest *rowset.Set
}

// Options change how a call works, never what it answers.
type Options struct {
	// KeepAll reads every key of every row: no statistics, nothing from the cache.
	KeepAll bool
	// Save puts into the archive what is not in it, for whole files whatever the interest. The masks that come back are incomplete.
	Save bool
}

// Report is what a call cost and found strange.
type Report struct {
	DeleteFiles int      // read from the store; a vector counts as one
	Warnings    []string // what was ignored as the specification or its engines allow
	Saved       int      // masks put into the archive
	// Changed is the data file whose tag did not match, when the error is Stale because of it.
	Changed string
}

// Mask is the deleted rows of a data file, among the rows of interest. A nil Mask deletes nothing.
type Mask struct {
	positions *roaring.Bitmap
	// Rows is the data file's own row count where its footer was read, else -1.
	Rows int64
}

// Set is the deleted rows of a file of size rows. Positions behind its end are dangling and left out.
func (m *Mask) Set(size uint32) *rowset.Set {
	if m == nil || m.positions == nil {
		return rowset.None(size)
	}
	if m.positions.GetCardinality() > uint64(size)/64 {
		words := make([]uint64, (uint64(size)+63)/64)
		kept := m.positions
		if !kept.IsEmpty() && kept.Maximum() >= size {
			kept = kept.Clone()
			kept.RemoveRange(uint64(size), 1<<32)
		}
		kept.WriteDenseTo(words)
		return rowset.FromBits(size, words)
	}
	var out []rowset.Range
	for start, end := range m.positions.Ranges() {
		if start >= size {
			break
		}
		out = append(out, rowset.Range{Start: start, End: uint32(min(end, uint64(size)))})
	}
	return rowset.FromRanges(size, out)
}

// Fits reports whether nothing speaks against a file having rows rows.
func (m *Mask) Fits(rows uint32) bool { return m == nil || m.Rows < 0 || m.Rows == int64(rows) }

func (m *Mask) add(b *roaring.Bitmap) {
	switch {
	case b.IsEmpty():
	case m.positions == nil:
		m.positions = b
	default:
		m.positions = roaring.Or(m.positions, b)
	}
}

// Masks finds the deleted rows of files of s; a nil element means that none is. The result runs parallel to files.
func (m *Masker) Masks(ctx context.Context, s *facts.Snapshot, files []File, o Options) ([]*Mask, Report, error) {
	out := make([]*Mask, len(files))
	if s.Deletes.Len() == 0 || len(files) == 0 {
		return out, Report{}, nil
	}
	sc, err := m.scope(s)
	if err != nil {
		return nil, Report{}, err
	}
	w := &work{Masker: m, scope: sc, options: o, out: out}
	for i, f := range files {
		a, err := sc.of(f.Ordinal)
		if err != nil {
			return nil, w.report, err
		}
		if o.Save {
			a = a.worthSaving()
		}
		if a.none() {
			continue
		}
		w.out[i] = &Mask{Rows: -1}
		w.targets = append(w.targets, &target{File: f, applied: a, mask: w.out[i]})
	}
	err = w.run(ctx)
	return out, w.report, err
}

// worthSaving leaves out what the archive would not make cheaper: one vector, or the positions of one delete file.
func (a applied) worthSaving() applied {
	a.vector = -1
	if len(a.positions) < 2 {
		a.positions = nil
	}
	return a
}

// remembers reports whether the cache may answer.
func (o Options) remembers() bool { return !o.KeepAll && !o.Save }

// work is one call of Masks.
type work struct {
	*Masker
	scope   *scope
	options Options
	targets []*target
	out     []*Mask
	report  Report
}

// target is a data file with the deletes that apply to it.
type target struct {
	File
	applied
	mask *Mask
}

// run reads vectors and position files side by side, then evaluates equality deletes on what is left.
func (w *work) run(ctx context.Context) error {
	var v, p Report
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { v, err = w.vectors(gctx); return err })
	g.Go(func() (err error) { p, err = w.positions(gctx); return err })
	err := g.Wait()
	w.report.DeleteFiles = v.DeleteFiles + p.DeleteFiles
	w.report.Warnings, w.report.Saved = append(v.Warnings, p.Warnings...), p.Saved
	if err != nil {
		return err
	}
	return w.equality(ctx)
}

func (m *Masker) memory() int64 {
	if m.Memory > 0 {
		return m.Memory
	}
	return DefaultMemory
}

func (m *Masker) workers() int {
	if m.Workers > 0 {
		return m.Workers
	}
	return runtime.GOMAXPROCS(0)
}
