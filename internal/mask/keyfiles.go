package mask

import (
	"context"
	"slices"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/store"
)

// keys fills need with the key rows of delete files.
func (w *work) keys(ctx context.Context, need map[int32]*keySet) error {
	d := &w.scope.snapshot.Deletes
	var parquet, avro []int32
	texts := map[int32]string{}
	for i := range need {
		cols, text, err := w.scope.keyColumns(i)
		if err != nil {
			return err
		}
		if k, ok := get[*keySet](w.Cache, keysKey{identity{d.Path[i], d.Size[i]}, text}); ok && !w.options.KeepAll {
			need[i] = k
			continue
		}
		if err := readableDeletes(d, i); err != nil {
			return err
		}
		need[i], texts[i] = newKeySet(cols, w.memory()), text
		if d.Format[i] == facts.Avro {
			avro = append(avro, i)
		} else {
			parquet = append(parquet, i)
		}
	}
	slices.Sort(parquet)
	slices.Sort(avro)
	w.report.DeleteFiles += len(parquet) + len(avro)
	if err := settled(func() error { return w.readKeys(ctx, parquet, need) }); err != nil {
		return err
	}
	err := w.readAvro(ctx, avro, func(i int32) avroRows { return avroRows{need[i].cols, w.scope.snapshot.NameMapping, need[i].add} })
	if err != nil {
		return err
	}
	for _, i := range slices.Concat(parquet, avro) {
		need[i].sift()
		if !w.options.KeepAll {
			w.Cache.put(keysKey{identity{d.Path[i], d.Size[i]}, texts[i]}, need[i], need[i].bytes)
		}
	}
	return w.within(need)
}

// within bounds the keys that one call holds.
func (w *work) within(need map[int32]*keySet) error {
	var sum int64
	for i, k := range need {
		if sum += k.bytes; sum > w.memory() {
			return fault.New(fault.Exhausted, w.scope.snapshot.Deletes.Path[i],
				"the keys of %d equality delete files take more than %d bytes of memory", len(need), w.memory()).
				WithFix("allow queries more memory, or compact the table so that its deletes are applied")
		}
	}
	return nil
}

// readKeys takes the keys of delete files into need, which forgets what it had of them.
func (w *work) readKeys(ctx context.Context, files []int32, need map[int32]*keySet) error {
	d := &w.scope.snapshot.Deletes
	names := make([]string, len(files))
	for k, i := range files {
		names[k] = d.Path[i]
	}
	opened, errs := parquetio.Open(ctx, w.Store, w.Footers, names, make([]store.Tag, len(files)))
	var readings []*reading
	for k, i := range files {
		if errs[k] != nil {
			return fault.About(names[k], errs[k])
		}
		keys := need[i]
		b, err := opened[k].File.Bind(keys.cols, w.scope.snapshot.NameMapping)
		if err != nil {
			return err
		}
		if err := hasColumns(names[k], b, keys.cols); err != nil {
			return err
		}
		again := func() { *keys = *newKeySet(keys.cols, keys.limit) }
		again()
		readings = append(readings, &reading{
			path: names[k], tag: opened[k].Tag, binding: b, held: opened[k].Tail, again: again,
			visit: func(b *column.Batch) error { return fault.About(names[k], keys.add(b)) },
		})
	}
	_, err := w.read(ctx, readings)
	return err
}
