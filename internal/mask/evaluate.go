package mask

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/rowset"
)

// keyed is the pairs of one data file that share their key columns, and therefore one reading of them.
type keyed struct {
	pairs []*pair
	sets  []*keySet
	file  *parquetio.File
	may   *rowset.Set // where evidence allows a key; nil: anywhere
	*reading
	parts []*part
}

// part is some row groups of a keyed reading, with what was found in them for each pair.
type part struct {
	*keyed
	hits [][]uint32
	*reading
}

// partRows is the candidate rows of a part, rounded to row groups.
const partRows = 1 << 19

func (p *part) take(b *column.Batch) error {
	for i, set := range p.sets {
		p.hits[i] = set.rowsIn(b, p.hits[i])
	}
	return nil
}

// split cuts the candidate rows into parts.
func (k *keyed) split(rows *rowset.Set) {
	groups := k.file.RowGroups()
	for i := 0; i < len(groups); {
		first, n := i, int64(0)
		for ; i < len(groups) && (i == first || n+int64(groups[i].Len()) <= partRows); i++ {
			if rows.Intersects(groups[i]) {
				n += int64(groups[i].Len())
			}
		}
		if n == 0 {
			continue
		}
		span := rowset.FromRanges(rows.Size(), []rowset.Range{{Start: groups[first].Start, End: groups[i-1].End}})
		p := &part{keyed: k, hits: make([][]uint32, len(k.pairs))}
		p.reading = &reading{
			path: k.path, tag: k.tag, binding: k.binding, held: k.held.Clone(), rows: rowset.And(rows, span),
			visit: p.take, again: func() { clear(p.hits) },
		}
		k.parts = append(k.parts, p)
	}
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
	if err := w.narrow(ctx, groups); err != nil {
		return err
	}
	var readings []*reading
	for _, k := range groups {
		k.split(w.candidates(k))
		for _, p := range k.parts {
			readings = append(readings, p.reading)
		}
	}
	if w.report.Changed, err = w.read(ctx, readings); err != nil {
		return err
	}
	for _, k := range groups {
		for i, p := range k.pairs {
			if err := w.settle(ctx, p, k.found(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// found is the rows that pair i deletes.
func (k *keyed) found(i int) *roaring.Bitmap {
	out := roaring.New()
	for _, p := range k.parts {
		out.AddMany(p.hits[i])
	}
	return out
}

// settle adds what was found on the rows that a pair wanted.
func (w *work) settle(ctx context.Context, p *pair, found *roaring.Bitmap) error {
	p.deleted = roaring.Or(p.deleted, found)
	if p.known == nil {
		p.known = p.want
	} else {
		p.known = rowset.Or(p.known, p.want)
	}
	w.keep(p)
	if !w.options.Save || !p.known.Full() {
		return nil
	}
	return w.save(ctx, &archived{key: p.key.text(), rows: p.known.Size(), bitmap: p.deleted}, &w.report)
}

// setBytes is about the memory of a row set.
func setBytes(s *rowset.Set) int64 { return 8 * min(int64(len(s.Ranges())), int64(s.Size()/64)+1) }

func (k pairKey) bytes() int64 {
	return int64(len(k.Data.Path) + len(k.Delete.Path) + len(k.Columns) + len(k.Tag))
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
			b, err := o.File.Bind(w.scope.snapshot.In(p.of.Ordinal, p.cols), w.scope.snapshot.NameMapping)
			if err != nil {
				return nil, err
			}
			k = &keyed{file: o.File, reading: &reading{
				path: w.scope.snapshot.Files.Path[p.of.Ordinal], tag: o.Tag, binding: b, held: o.Tail.Clone(),
			}}
			known[here] = k
			out = append(out, k)
		}
		k.pairs, k.sets = append(k.pairs, p), append(k.sets, need[p.delete])
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
	if k.may != nil {
		out = rowset.And(out, k.may)
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
