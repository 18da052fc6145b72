package mask

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/store"
)

// The reserved columns of position delete files (specification, "Reserved Field IDs").
const (
	filePathID = 2147483546
	posID      = 2147483545
)

var (
	positionColumns = []column.Path{
		{{ID: filePathID, Name: "file_path", Type: column.Of(column.String)}},
		{{ID: posID, Name: "pos", Type: column.Of(column.Long)}},
	}
	positionNames = []facts.MappedField{{ID: filePathID, Names: []string{"file_path"}}, {ID: posID, Names: []string{"pos"}}}
)

// positions merges the position deletes of the targets. A delete file is read once for all of them.
func (w *work) positions(ctx context.Context) (Report, error) {
	var report Report
	var open []*target
	need := map[int32]*content{}
	for _, t := range w.targets {
		if len(t.positions) == 0 {
			continue
		}
		if known, ok := get[merged](w.Cache, w.positionKey(t)); ok && w.options.remembers() {
			t.mask.add(known.rows)
			report.Warnings = append(report.Warnings, known.warnings...)
			continue
		}
		open = append(open, t)
	}
	open = w.fromArchive(ctx, open, &report)
	for _, t := range open {
		for _, i := range t.positions {
			need[i] = nil
		}
	}
	if err := w.contents(ctx, need, &report); err != nil {
		return report, err
	}
	err := w.merge(ctx, open, need, &report)
	slices.Sort(report.Warnings)
	report.Warnings = slices.Compact(report.Warnings)
	return report, err
}

// merged is the position deletes of a data file and what was ignored to make them.
type merged struct {
	rows     *roaring.Bitmap
	warnings []string
}

func (w *work) positionKey(t *target) positionKey {
	f, d := &w.scope.snapshot.Files, &w.scope.snapshot.Deletes
	ids := make([]string, len(t.positions))
	for k, i := range t.positions {
		ids[k] = fmt.Sprintf("%s\x00%d\x00", d.Path[i], d.Size[i])
	}
	slices.Sort(ids)
	return positionKey{f.Stated[t.Ordinal], identity{f.Path[t.Ordinal], f.Size[t.Ordinal]}, strings.Join(ids, "")}
}

// took hides the merged positions of a target and keeps them.
func (w *work) took(t *target, m merged, report *Report) {
	t.mask.add(m.rows)
	report.Warnings = append(report.Warnings, m.warnings...)
	if key := w.positionKey(t); !w.options.KeepAll {
		w.Cache.put(key, m, int64(m.rows.GetSizeInBytes())+int64(len(key.Deletes)+len(key.Stated)))
	}
}

// fromArchive takes the merged positions of targets from the archive where that costs no more requests than their delete files,
// and returns the others.
func (w *work) fromArchive(ctx context.Context, targets []*target, report *Report) []*target {
	if w.Archive == nil || w.options.KeepAll {
		return targets
	}
	texts := make([]string, len(targets))
	for i, t := range targets {
		texts[i] = w.positionKey(t).text()
	}
	var rest, have []*target
	var keys []string
	files := map[int32]bool{}
	for i, present := range w.Archive.present(ctx, texts) {
		if !present {
			rest = append(rest, targets[i])
			continue
		}
		have, keys = append(have, targets[i]), append(keys, texts[i])
		for _, d := range targets[i].positions {
			files[d] = true
		}
	}
	switch {
	case w.options.Save:
		return rest
	case len(files) < len(have):
		return targets
	}
	for i, m := range w.Archive.load(ctx, keys) {
		if m == nil {
			rest = append(rest, have[i])
			continue
		}
		w.took(have[i], merged{m.bitmap, m.warnings}, report)
	}
	return rest
}

// save puts a mask into the archive.
func (w *work) save(ctx context.Context, m *archived, report *Report) error {
	if w.Archive == nil {
		return nil
	}
	report.Saved++
	return w.Archive.save(ctx, m)
}

// contents fills need from the cache and the store.
func (w *work) contents(ctx context.Context, need map[int32]*content, report *Report) error {
	d := &w.scope.snapshot.Deletes
	var parquet, avro []int32
	for i := range need {
		if c, ok := get[*content](w.Cache, contentKey{identity{d.Path[i], d.Size[i]}}); ok && !w.options.KeepAll {
			need[i] = c
			continue
		}
		if err := readableDeletes(d, i); err != nil {
			return err
		}
		need[i] = newContent()
		if d.Format[i] == facts.Avro {
			avro = append(avro, i)
		} else {
			parquet = append(parquet, i)
		}
	}
	slices.Sort(parquet)
	slices.Sort(avro)
	report.DeleteFiles += len(parquet) + len(avro)
	if err := settled(func() error { return w.readPositions(ctx, parquet, need) }); err != nil {
		return err
	}
	if err := w.readAvro(ctx, avro, func(i int32) avroRows { return avroRows{positionColumns, nil, need[i].add} }); err != nil {
		return err
	}
	for _, i := range slices.Concat(parquet, avro) {
		c := need[i]
		c.words = nil
		if !w.options.KeepAll {
			w.Cache.put(contentKey{identity{d.Path[i], d.Size[i]}}, c, c.bytes())
		}
	}
	return nil
}

// readableDeletes refuses the forms of delete files that no build reads.
func readableDeletes(d *facts.Deletes, i int32) error {
	switch {
	case d.Encrypted[i]:
		return encrypted(d.Path[i])
	case d.Format[i] == facts.ORC:
		return fault.New(fault.Unsupported, d.Path[i], "is an ORC file").WithFix("rewrite the table's deletes as Parquet")
	case d.Format[i] != facts.Parquet && d.Format[i] != facts.Avro:
		return fault.New(fault.Corrupt, d.Path[i], "is a delete file in the format of deletion vectors")
	}
	return nil
}

// readPositions takes the rows of delete files into need, which forgets what it had of them.
func (w *work) readPositions(ctx context.Context, files []int32, need map[int32]*content) error {
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
		b, err := opened[k].File.Bind(positionColumns, positionNames)
		if err != nil {
			return err
		}
		if err := hasColumns(names[k], b, positionColumns); err != nil {
			return err
		}
		rows := need[i]
		rows.reset()
		readings = append(readings, &reading{
			path: names[k], tag: opened[k].Tag, binding: b, held: opened[k].Tail, again: rows.reset,
			visit: func(b *column.Batch) error { return fault.About(names[k], rows.add(b)) },
		})
	}
	_, err := w.read(ctx, readings)
	return err
}

// hasColumns refuses a delete file without one of the columns that it must have.
func hasColumns(name string, b *parquetio.Binding, cols []column.Path) error {
	for i, c := range cols {
		if b.Resolution(i).How == parquetio.Absent && c.Leaf().Type.Kind != column.Unknown {
			return lacks(name, c)
		}
	}
	return nil
}

// merge unites, for every target, the rows that its delete files hold for it.
func (w *work) merge(ctx context.Context, targets []*target, need map[int32]*content, report *Report) error {
	found := map[int32]map[int32][]*roaring.Bitmap{} // delete file → data file → rows
	for i, c := range need {
		of := map[int32][]*roaring.Bitmap{}
		for k, path := range c.paths {
			file, ok, err := w.scope.paths.find(path)
			if err != nil {
				return fault.About(w.scope.snapshot.Deletes.Path[i], err)
			}
			if ok {
				of[file] = append(of[file], c.rows[k])
			}
		}
		found[i] = of
	}
	for _, t := range targets {
		file, _, err := w.scope.paths.find(w.scope.snapshot.Files.Stated[t.Ordinal])
		if err != nil {
			return err
		}
		var all []*roaring.Bitmap
		var out merged
		for _, i := range t.positions {
			all = append(all, found[i][file]...)
			if text := need[i].warning(w.scope.snapshot.Deletes.Path[i]); text != "" {
				out.warnings = append(out.warnings, text)
			}
		}
		out.rows = roaring.FastOr(all...)
		w.took(t, out, report)
		if w.options.Save {
			if err := w.save(ctx, &archived{key: w.positionKey(t).text(), warnings: out.warnings, bitmap: out.rows}, report); err != nil {
				return err
			}
		}
	}
	return nil
}
