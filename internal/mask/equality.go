package mask

import (
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
)

// pair is one equality delete file over one data file.
type pair struct {
	of      *target
	delete  int32
	key     pairKey
	cols    []column.Path
	known   *rowset.Set     // rows on which the pair was evaluated before; nil: none
	deleted *roaring.Bitmap // of them
	want    *rowset.Set     // rows still to evaluate
}

// evaluated is what the cache keeps of a pair.
type evaluated struct {
	known   *rowset.Set
	deleted *roaring.Bitmap
}

// equality evaluates the equality deletes of the targets: the footers of data and delete files in one wave, then the keys of
// all delete files, then the key columns of the data files where keys may occur.
func (w *work) equality(ctx context.Context) error {
	var targets []*target
	for _, t := range w.targets {
		if len(t.equality) > 0 {
			targets = append(targets, t)
		}
	}
	if len(targets) == 0 {
		return nil
	}
	opened, err := w.openData(ctx, targets)
	if err != nil {
		return err
	}
	var pairs []*pair
	need := map[int32]*keySet{}
	for k, t := range targets {
		mine, err := w.pairs(t, opened[k])
		if err != nil {
			return err
		}
		for _, p := range mine {
			if !p.want.Empty() {
				need[p.delete] = nil
			}
		}
		pairs = append(pairs, mine...)
	}
	if err := w.keys(ctx, need); err != nil {
		return err
	}
	if err := w.evaluate(ctx, targets, opened, pairs, need); err != nil {
		return err
	}
	for _, p := range pairs {
		p.of.mask.add(p.deleted)
	}
	return nil
}

// openData reads the footers of the data files.
func (w *work) openData(ctx context.Context, targets []*target) ([]*parquetio.Opened, error) {
	f := &w.scope.snapshot.Files
	names, tags := make([]string, len(targets)), make([]store.Tag, len(targets))
	for k, t := range targets {
		names[k], tags[k] = f.Path[t.Ordinal], t.Tag
		switch {
		case f.Format[t.Ordinal] != facts.Parquet:
			return nil, fault.New(fault.Unsupported, names[k], "is not a Parquet file").WithFix("Skomer reads Parquet data files; rewrite the file as Parquet")
		case f.Encrypted[t.Ordinal]:
			return nil, encrypted(names[k])
		}
	}
	opened, errs := parquetio.Open(ctx, w.Store, w.Footers, names, tags)
	for k, err := range errs {
		if err == nil {
			targets[k].mask.Rows = opened[k].File.Rows()
			continue
		}
		if fault.Is(err, fault.Stale) {
			w.report.Changed = names[k]
		}
		return nil, fault.About(names[k], err)
	}
	return opened, ctx.Err()
}

// pairs finds what is known of the pairs of a data file and what must be evaluated.
func (w *work) pairs(t *target, o *parquetio.Opened) ([]*pair, error) {
	f, d := &w.scope.snapshot.Files, &w.scope.snapshot.Deletes
	size := uint32(o.File.Rows())
	interest := t.Interest
	if interest == nil || interest.Size() != size {
		interest = rowset.All(size)
	}
	interest = rowset.AndNot(interest, t.mask.Set(size))
	var out []*pair
	for _, i := range t.equality {
		cols, text, err := w.scope.keyColumns(i)
		if err != nil {
			return nil, err
		}
		p := &pair{of: t, delete: i, cols: cols, deleted: roaring.New(), want: interest, key: pairKey{
			Data: identity{f.Path[t.Ordinal], f.Size[t.Ordinal]}, Tag: string(o.Tag), Delete: identity{d.Path[i], d.Size[i]}, Columns: text,
		}}
		if e, ok := get[evaluated](w.Cache, p.key); ok && !w.options.KeepAll && e.known.Size() == size {
			p.known, p.deleted, p.want = e.known, e.deleted, rowset.AndNot(interest, e.known)
		}
		out = append(out, p)
	}
	return out, nil
}

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
	if err := w.readKeys(ctx, parquet, need); err != nil {
		return err
	}
	err := w.readAvro(ctx, avro, func(i int32) avroRows { return avroRows{need[i].cols, need[i].add} })
	if err != nil {
		return err
	}
	for _, i := range slices.Concat(parquet, avro) {
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
		readings = append(readings, &reading{
			path: names[k], tag: opened[k].Tag, binding: b, held: opened[k].Tail,
			visit: func(b *column.Batch) error { return fault.About(names[k], keys.add(b)) },
			again: func() { *keys = *newKeySet(keys.cols, keys.limit) },
		})
	}
	_, err := w.read(ctx, readings)
	return err
}

// keyed is the pairs of one data file that share their key columns, and therefore one reading of them.
type keyed struct {
	pairs []*pair
	sets  []*keySet
	hits  [][]uint32
	*reading
}

func (k *keyed) take(b *column.Batch) error {
	for i, set := range k.sets {
		k.hits[i] = set.rowsIn(b, k.hits[i])
	}
	return nil
}

// evaluate reads the key columns of the data files and settles every pair.
func (w *work) evaluate(ctx context.Context, targets []*target, opened []*parquetio.Opened, pairs []*pair, need map[int32]*keySet) error {
	at := map[*target]*parquetio.Opened{}
	for k, t := range targets {
		at[t] = opened[k]
	}
	groups, err := w.group(pairs, at, need)
	if err != nil {
		return err
	}
	if err := w.pageIndexes(ctx, groups); err != nil {
		return err
	}
	readings := make([]*reading, 0, len(groups))
	for _, k := range groups {
		if k.rows = w.candidates(k); !k.rows.Empty() {
			readings = append(readings, k.reading)
		}
	}
	if w.report.Changed, err = w.read(ctx, readings); err != nil {
		return err
	}
	for _, k := range groups {
		for i, p := range k.pairs {
			w.settle(p, k.hits[i])
		}
	}
	return nil
}

// settle adds what was found on the rows that a pair wanted.
func (w *work) settle(p *pair, hits []uint32) {
	found := roaring.BitmapOf(hits...)
	p.deleted = roaring.Or(p.deleted, found)
	known := p.want
	if p.known != nil {
		known = rowset.Or(known, p.known)
	}
	if !w.options.KeepAll {
		bytes := int64(p.deleted.GetSizeInBytes()) + int64(8*min(len(known.Ranges()), int(known.Size()/64)+1)) + int64(len(p.key.Data.Path)+len(p.key.Delete.Path)+len(p.key.Columns))
		w.Cache.put(p.key, evaluated{known, p.deleted}, bytes)
	}
}

// group binds the key columns of each data file, once for all its pairs of the same columns.
func (w *work) group(pairs []*pair, at map[*target]*parquetio.Opened, need map[int32]*keySet) ([]*keyed, error) {
	type place struct {
		t    *target
		text string
	}
	known := map[place]*keyed{}
	var out []*keyed
	for _, p := range pairs {
		if p.want.Empty() {
			continue
		}
		here := place{p.of, p.key.Columns}
		k := known[here]
		if k == nil {
			o := at[p.of]
			b, err := o.File.Bind(p.cols, w.scope.snapshot.NameMapping)
			if err != nil {
				return nil, err
			}
			k = &keyed{reading: &reading{path: w.scope.snapshot.Files.Path[p.of.Ordinal], tag: o.Tag, binding: b, held: o.Tail.Clone()}}
			k.visit = k.take
			k.again = func() { clear(k.hits) }
			known[here] = k
			out = append(out, k)
		}
		k.pairs, k.sets, k.hits = append(k.pairs, p), append(k.sets, need[p.delete]), append(k.hits, nil)
	}
	return out, nil
}

// candidates is the rows on which some pair has to be evaluated because its keys may occur there.
func (w *work) candidates(k *keyed) *rowset.Set {
	out := rowset.None(k.pairs[0].want.Size())
	for i, p := range k.pairs {
		rows := p.want
		if !w.options.KeepAll {
			rows = k.sets[i].mayHold(k.binding, rows)
		}
		out = rowset.Or(out, rows)
	}
	return out
}

// pageIndexes loads, in one wave, the page indexes of the row groups in which keys may occur.
func (w *work) pageIndexes(ctx context.Context, groups []*keyed) error {
	if w.options.KeepAll {
		return nil
	}
	all := make([]*reading, len(groups))
	rows := make([]*rowset.Set, len(groups))
	for i, k := range groups {
		rows[i] = w.candidates(k)
		k.spans = k.binding.PageIndexSpans(rows[i])
		all[i] = k.reading
	}
	changed, err := w.fetch(ctx, all)
	if err != nil {
		w.report.Changed = changed
		return err
	}
	for i, k := range groups {
		data, ok := k.held.All(k.spans)
		if !ok {
			return fault.New(fault.Corrupt, k.path, "bytes of its page index were not fetched")
		}
		if err := k.binding.LoadPageIndex(rows[i], data); err != nil {
			return err
		}
	}
	return nil
}
