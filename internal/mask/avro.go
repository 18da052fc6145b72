package mask

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/avrorows"
	"github.com/skomerdb/skomer/internal/store"
)

// avroRows is what to read of an Avro delete file, and who takes it.
type avroRows struct {
	cols  []column.Path
	names []facts.MappedField
	visit func(*column.Batch) error
}

// readAvro reads Avro delete files.
func (w *work) readAvro(ctx context.Context, files []int32, want func(i int32) avroRows) error {
	d := &w.scope.snapshot.Deletes
	paths, sizes := make([]string, len(files)), make([]int64, len(files))
	for k, i := range files {
		paths[k], sizes[k] = d.Path[i], d.Size[i]
	}
	return w.fetchWhole(ctx, paths, make([]store.Tag, len(files)), sizes, func(k int, b []byte) error {
		return readAvroFile(paths[k], b, want(files[k]))
	})
}

// fetchWhole reads whole files, in one wave for as many as memory holds.
func (w *work) fetchWhole(ctx context.Context, paths []string, tags []store.Tag, sizes []int64, take func(k int, b []byte) error) error {
	for at := 0; at < len(paths); {
		n, bytes := 0, int64(0)
		var reads []store.Read
		for at+n < len(paths) && (n == 0 || bytes+sizes[at+n] <= w.memory()) {
			bytes += max(sizes[at+n], 0)
			reads = append(reads, store.Read{Key: paths[at+n], Tag: tags[at+n]})
			n++
		}
		for k, res := range w.Store.Fetch(ctx, reads) {
			if res.Err != nil {
				if fault.Is(res.Err, fault.Stale) {
					w.report.Changed = reads[k].Key
				}
				return fault.About(reads[k].Key, res.Err)
			}
			if err := take(at+k, res.Data[0]); err != nil {
				return err
			}
		}
		at += n
	}
	return ctx.Err()
}

func readAvroFile(name string, b []byte, want avroRows) error {
	f, err := avrorows.Open(name, b, want.names)
	if err != nil {
		return err
	}
	for _, c := range want.cols {
		if !f.Holds(c) && c.Leaf().Type.Kind != column.Unknown {
			return lacks(name, c)
		}
	}
	return fault.About(name, f.Each(want.cols, batchRows, want.visit))
}

// lacks is the fault of a delete file without one of the columns that it must have.
func lacks(name string, c column.Path) error {
	return fault.New(fault.Corrupt, name, "is a delete file without the column %s (field id %d)", c.Name(), c.Leaf().ID)
}

// avroData evaluates equality deletes on Avro data files, which are read whole each time.
func (w *work) avroData(ctx context.Context, targets []*target) error {
	if len(targets) == 0 || w.options.Save {
		return nil
	}
	f := &w.scope.snapshot.Files
	need := map[int32]*keySet{}
	paths, tags, sizes := make([]string, len(targets)), make([]store.Tag, len(targets)), make([]int64, len(targets))
	for k, t := range targets {
		paths[k], tags[k], sizes[k] = f.Path[t.Ordinal], t.Tag, f.Size[t.Ordinal]
		for _, i := range t.equality {
			need[i] = nil
		}
	}
	if err := w.keys(ctx, need); err != nil {
		return err
	}
	return w.fetchWhole(ctx, paths, tags, sizes, func(k int, b []byte) error {
		return fault.About(paths[k], w.avroFile(targets[k], b, need))
	})
}

// avroFile evaluates the equality deletes of one Avro data file.
func (w *work) avroFile(t *target, b []byte, need map[int32]*keySet) error {
	s := w.scope.snapshot
	f, err := avrorows.Open(s.Files.Path[t.Ordinal], b, s.NameMapping)
	if err != nil {
		return err
	}
	if t.mask.Rows, err = f.Rows(); err != nil {
		return err
	}
	for _, i := range t.equality {
		var hits []uint32
		err := f.Each(s.In(t.Ordinal, need[i].cols), batchRows, func(b *column.Batch) error {
			hits = need[i].rowsIn(b, hits)
			return nil
		})
		if err != nil {
			return err
		}
		t.mask.add(roaring.BitmapOf(hits...))
	}
	return nil
}
