package mask

import (
	"context"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/avrorows"
	"github.com/skomerdb/skomer/internal/store"
)

// avroRows is what to read of an Avro delete file, and who takes it.
type avroRows struct {
	cols  []column.Path
	visit func(*column.Batch) error
}

// readAvro reads whole Avro delete files, in one wave for as many as memory holds.
func (w *work) readAvro(ctx context.Context, files []int32, want func(i int32) avroRows) error {
	d := &w.scope.snapshot.Deletes
	for len(files) > 0 {
		n, bytes := 0, int64(0)
		var reads []store.Read
		for n < len(files) && (n == 0 || bytes+d.Size[files[n]] <= w.memory()) {
			bytes += max(d.Size[files[n]], 0)
			reads = append(reads, store.Read{Key: d.Path[files[n]], Max: w.memory()})
			n++
		}
		for k, res := range w.Store.Fetch(ctx, reads) {
			if res.Err != nil {
				return fault.About(reads[k].Key, res.Err)
			}
			rows := want(files[k])
			if err := readAvroFile(reads[k].Key, res.Data[0], rows.cols, rows.visit); err != nil {
				return err
			}
		}
		files = files[n:]
	}
	return ctx.Err()
}

func readAvroFile(name string, b []byte, cols []column.Path, visit func(*column.Batch) error) error {
	f, err := avrorows.Open(name, b, nil)
	if err != nil {
		return err
	}
	for _, c := range cols {
		if !f.Holds(c) && c.Leaf().Type.Kind != column.Unknown {
			return fault.New(fault.Corrupt, name, "is a delete file without the column %s (field id %d)", c.Name(), c.Leaf().ID)
		}
	}
	return f.Each(cols, batchRows, visit)
}
