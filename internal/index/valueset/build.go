package valueset

import (
	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
)

// NewBuilder starts value sets for every row group. It holds the distinct values of one row group up to the cap (1 MiB of them at
// most, some 100 bytes beside each) and a quarter of the budget of finished sets; the rest of them is spilled.
func (k Kind) NewBuilder(spec index.Spec, budget index.Budget) (index.Builder, error) {
	e, err := index.OneColumnOrElement(name, spec.Columns)
	if err != nil {
		return nil, err
	}
	values, err := valueCap(spec.Params)
	if err != nil {
		return nil, err
	}
	starts, err := spec.GroupStarts(name)
	if err != nil {
		return nil, err
	}
	return &builder{
		writer: k.newWriter(e, index.OfList(spec.Columns[0]), values, budget), elements: index.NewElements(e, spec.Columns[0]), count: index.RowCount{Want: spec.Rows},
		starts: starts, distinct: index.NewDistinct(e, values, byteCap(values)),
	}, nil
}

type builder struct {
	writer
	elements *index.Elements // of lists; else only its keys are used
	count    index.RowCount
	starts   []uint32

	distinct *index.Distinct // of the row group being filled
	open     group
	full     bool // it has more values than the cap
}

func (b *builder) Add(cols []*column.Vector) error {
	v := cols[0]
	at := b.count.Got
	if err := b.count.Add(v.Len); err != nil {
		return err
	}
	if err := b.load(v); err != nil {
		return err
	}
	for i := 0; i < v.Len; {
		end := b.starts[len(b.groups)+1]
		n := int(min(uint32(v.Len-i), end-at))
		if b.ofList {
			b.takeLists(i, i+n)
		} else {
			b.take(i, i+n)
		}
		i, at = i+n, at+uint32(n)
		if at < end {
			continue
		}
		if err := b.closeGroup(); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) load(v *column.Vector) error {
	if b.ofList {
		return b.elements.Load(v)
	}
	return b.elements.Keys.Load(v)
}

// takeLists adds the lists of rows i to j.
func (b *builder) takeLists(i, j int) {
	k := b.elements.Keys
	for ; i < j; i++ {
		from, to, unknown := b.elements.Row(i)
		for ; from < to; from++ {
			switch {
			case k.Null(from):
				unknown = true
			case !k.NaN(from) && !b.full:
				_, ok := b.distinct.Number(k, from)
				b.full = !ok
			}
		}
		if unknown {
			b.open.Nulls++
		}
	}
}

// take adds the values of rows i to j.
func (b *builder) take(i, j int) {
	k := b.elements.Keys
	for ; i < j; i++ {
		switch {
		case k.Null(i):
			b.open.Nulls++
		case k.NaN(i):
			b.open.NaNs++
		case !b.full:
			_, ok := b.distinct.Number(k, i)
			b.full = !ok
		}
	}
}

func (b *builder) closeGroup() error {
	g := b.open
	g.Start = b.starts[len(b.groups)]
	g.Rows = b.starts[len(b.groups)+1] - g.Start
	var set bytescan.Writer
	if g.tooMany = b.full; !b.full {
		g.values = b.distinct.Len()
		keys := index.NewKeyWriter(b.enc)
		for _, n := range b.distinct.Ascending() {
			keys.Append(&set, b.distinct.Key(n))
		}
	}
	b.distinct.Reset()
	b.open, b.full = group{}, false
	return b.add(g, set.Buf)
}

func (b *builder) Finish(body index.Sink) ([]byte, string, error) {
	if err := b.count.Done(); err != nil {
		return nil, "", err
	}
	return b.seal(body)
}

func (b *builder) Close() error {
	b.groups, b.elements, b.distinct = nil, nil, nil
	return b.sets.Close()
}
