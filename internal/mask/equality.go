package mask

import (
	"context"

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
	var targets, avro []*target
	for _, t := range w.targets {
		switch {
		case len(t.equality) == 0:
		case w.scope.snapshot.Files.Format[t.Ordinal] == facts.Avro && !w.scope.snapshot.Files.Encrypted[t.Ordinal]:
			avro = append(avro, t)
		default:
			targets = append(targets, t)
		}
	}
	if err := w.avroData(ctx, avro); err != nil || len(targets) == 0 {
		return err
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
		pairs = append(pairs, mine...)
	}
	w.pairsFromArchive(ctx, pairs)
	for _, p := range pairs {
		if !p.want.Empty() {
			need[p.delete] = nil
		}
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
			return nil, fault.New(fault.Unsupported, names[k], "is neither a Parquet nor an Avro file").WithFix("rewrite the file as Parquet")
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
	if interest == nil || interest.Size() != size || w.options.Save {
		interest = rowset.All(size)
	}
	if !w.options.Save {
		interest = rowset.AndNot(interest, t.mask.Set(size))
	}
	var out []*pair
	for _, i := range t.equality {
		cols, text, err := w.scope.keyColumns(i)
		if err != nil {
			return nil, err
		}
		p := &pair{of: t, delete: i, cols: cols, deleted: roaring.New(), want: interest, key: pairKey{
			Data: identity{f.Path[t.Ordinal], f.Size[t.Ordinal]}, Tag: string(o.Tag), Delete: identity{d.Path[i], d.Size[i]}, Columns: text,
		}}
		if e, ok := get[evaluated](w.Cache, p.key); ok && w.options.remembers() && e.known.Size() == size {
			p.known, p.deleted, p.want = e.known, e.deleted, rowset.AndNot(interest, e.known)
		}
		out = append(out, p)
	}
	return out, nil
}

// pairsFromArchive takes what the archive holds of pairs that are to be evaluated.
func (w *work) pairsFromArchive(ctx context.Context, pairs []*pair) {
	if w.Archive == nil || w.options.KeepAll {
		return
	}
	var open []*pair
	var texts []string
	for _, p := range pairs {
		if !p.want.Empty() {
			open, texts = append(open, p), append(texts, p.key.text())
		}
	}
	var have []*pair
	var keys []string
	for i, present := range w.Archive.present(ctx, texts) {
		switch {
		case present && w.options.Save:
			open[i].want = rowset.None(open[i].want.Size())
		case present:
			have, keys = append(have, open[i]), append(keys, texts[i])
		}
	}
	for i, m := range w.Archive.load(ctx, keys) {
		p := have[i]
		if m == nil || m.rows != p.want.Size() {
			continue
		}
		p.deleted, p.known, p.want = m.bitmap, rowset.All(m.rows), rowset.None(m.rows)
		w.keep(p)
	}
}

// keep caches what is known of a pair.
func (w *work) keep(p *pair) {
	if !w.options.KeepAll {
		w.Cache.put(p.key, evaluated{p.known, p.deleted}, p.key.bytes()+int64(p.deleted.GetSizeInBytes())+setBytes(p.known))
	}
}
