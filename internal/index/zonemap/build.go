package zonemap

import (
	"bytes"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
)

// NewBuilder starts a zone map. It holds one zone a page, at most about 250 bytes each.
func (k Kind) NewBuilder(spec index.Spec, _ index.Budget) (index.Builder, error) {
	e, err := index.OneColumn(name, spec.Columns)
	if err != nil {
		return nil, err
	}
	groups, pages, err := spec.Granules()
	if err != nil {
		return nil, err
	}
	if _, err := spec.GroupStarts(name); err != nil {
		return nil, err
	}
	return &builder{writer: writer{sizes: k.orDefault(), enc: e}, keys: index.NewKeys(e), count: index.RowCount{Want: spec.Rows}, groupStarts: groups, pageStarts: append(pages, spec.Rows)}, nil
}

type builder struct {
	writer
	keys        *index.Keys
	count       index.RowCount
	groupStarts []uint32
	pageStarts  []uint32 // closed by the number of rows
	page, whole extent   // of the page and of the row group being filled
	pagesDone   int
	scratch     []byte
}

func (b *builder) Add(cols []*column.Vector) error {
	v := cols[0]
	at := b.count.Got
	if err := b.count.Add(v.Len); err != nil {
		return err
	}
	if err := b.keys.Load(v); err != nil {
		return err
	}
	for i := 0; i < v.Len; {
		end := b.pageStarts[b.pagesDone+1]
		n := int(min(uint32(v.Len-i), end-at))
		b.take(i, i+n)
		i, at = i+n, at+uint32(n)
		if at == end {
			b.closePage()
		}
	}
	return nil
}

// take widens the page's extent by values i to j of the loaded keys.
func (b *builder) take(i, j int) {
	p, k := &b.page, b.keys
	p.rows += uint32(j - i)
	if !b.enc.Narrow() {
		for ; i < j; i++ {
			if k.Null(i) {
				p.nulls++
			} else {
				p.see(k.Wide(i))
			}
		}
		return
	}
	lo, hi, some := ^uint64(0), uint64(0), false
	for ; i < j; i++ {
		switch {
		case k.Null(i):
			p.nulls++
		case k.NaN(i):
			p.nans++
		default:
			lo, hi, some = min(lo, k.Narrow[i]), max(hi, k.Narrow[i]), true
		}
	}
	if some {
		b.scratch = b.enc.AppendNarrow(b.scratch[:0], lo)
		p.see(b.scratch)
		b.scratch = b.enc.AppendNarrow(b.scratch[:0], hi)
		p.see(b.scratch)
	}
}

func (b *builder) closePage() {
	start := b.pageStarts[b.pagesDone]
	if len(b.groups) < len(b.groupStarts) && b.groupStarts[len(b.groups)] == start {
		b.closeGroup()
		b.groups = append(b.groups, group{zone: zone{start: start}})
	}
	g := &b.groups[len(b.groups)-1]
	g.pages = append(g.pages, b.page.zone(start))
	b.whole.merge(&b.page)
	b.page.reset()
	b.pagesDone++
}

func (b *builder) closeGroup() {
	if n := len(b.groups); n > 0 {
		b.groups[n-1].zone = b.whole.zone(b.groups[n-1].start)
		b.whole.reset()
	}
}

func (b *builder) Finish(body index.Sink) ([]byte, string, error) {
	if err := b.count.Done(); err != nil {
		return nil, "", err
	}
	b.closeGroup()
	return b.seal(body)
}

func (b *builder) Close() error {
	b.groups, b.keys = nil, nil
	return nil
}

// extent is the counts and untruncated bounds of the rows seen so far.
type extent struct {
	rows, nulls, nans uint32
	any               bool
	min, max          []byte
}

func (x *extent) see(key []byte) {
	if !x.any || bytes.Compare(key, x.min) < 0 {
		x.min = append(x.min[:0], key...)
	}
	if !x.any || bytes.Compare(key, x.max) > 0 {
		x.max = append(x.max[:0], key...)
	}
	x.any = true
}

func (x *extent) merge(y *extent) {
	x.rows, x.nulls, x.nans = x.rows+y.rows, x.nulls+y.nulls, x.nans+y.nans
	if y.any {
		x.see(y.min)
		x.see(y.max)
	}
}

func (x *extent) reset() { *x = extent{min: x.min[:0], max: x.max[:0]} }

// zone cuts the bounds: a prefix is a lower bound, and a prefix's successor is above everything that starts with it.
func (x *extent) zone(start uint32) zone {
	z := zone{start: start, rows: x.rows, nulls: x.nulls, nans: x.nans}
	if !x.any {
		return z
	}
	z.min, z.max = x.min, x.max
	if len(z.min) > maxBound {
		z.min, z.flags = z.min[:maxBound], z.flags|flagMinCut
	}
	if len(z.max) > maxBound {
		next, ok := index.Successor(z.max[:maxBound])
		if z.max = next; ok {
			z.flags |= flagMaxCut
		} else {
			z.flags |= flagMaxNone
		}
	}
	z.min, z.max = bytes.Clone(z.min), bytes.Clone(z.max)
	return z
}
