package valueset

import (
	"fmt"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
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
	groups, _, err := spec.Granules()
	if err != nil {
		return nil, err
	}
	if len(groups) > maxRowGroups {
		return nil, fault.New(fault.Unsupported, name, "%d row groups, above the limit of %d", len(groups), maxRowGroups)
	}
	inline := k.inline
	if inline == 0 {
		inline = inlineRoot
	}
	return &builder{
		enc: e, ofList: index.OfList(spec.Columns[0]), elements: index.NewElements(e), count: index.RowCount{Want: spec.Rows}, starts: append(groups, spec.Rows), inline: inline,
		cap: values, distinct: index.NewDistinct(e, values, byteCap(values)), sets: index.NewOverflow(budget.TempDir, budget.Bytes()/4),
	}, nil
}

type builder struct {
	enc      index.Encoding
	ofList   bool
	elements *index.Elements // of lists; else only its keys are used
	count    index.RowCount
	starts   []uint32
	inline   int
	cap      int
	groups   []group
	small    int             // bytes of the sets of finished row groups that a root may still hold, -1: they are too many
	sets     *index.Overflow // of the finished row groups: only Finish may write a body
	kept     int64           // bytes in it

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
	g.unit = index.Unit{Span: index.Span{Off: b.kept, Len: int64(len(set.Buf))}, CRC: bytescan.CRC32C(set.Buf)}
	if b.small >= 0 {
		g.set = set.Buf
		if b.small += len(set.Buf); b.small > b.inline {
			b.dropSmall()
		}
	}
	b.groups = append(b.groups, g)
	b.distinct.Reset()
	b.open, b.full, b.kept = group{}, false, b.kept+g.unit.Len
	return b.sets.Keep(set.Buf)
}

// dropSmall gives up on a root with every set in it.
func (b *builder) dropSmall() {
	for i := range b.groups {
		b.groups[i].set = nil
	}
	b.small = -1
}

func (b *builder) Finish(body index.Sink) ([]byte, string, error) {
	if err := b.count.Done(); err != nil {
		return nil, "", err
	}
	if b.useless() {
		return nil, fmt.Sprintf("every row group has more than %d distinct values or %d bytes of them", b.cap, byteCap(b.cap)), nil
	}
	if b.small >= 0 {
		if root := b.root(0, formInline); len(root) <= b.inline {
			return root, "", nil
		}
	}
	root := b.root(b.kept, formUnits)
	if len(root) > maxRoot {
		return nil, fmt.Sprintf("the root takes %d bytes, above the limit of %d: too many row groups", len(root), maxRoot), nil
	}
	return root, "", b.sets.CopyTo(body)
}

// useless reports whether no row group lists its values.
func (b *builder) useless() bool {
	for i := range b.groups {
		if !b.groups[i].tooMany {
			return false
		}
	}
	return len(b.groups) > 0
}

func (b *builder) root(bodySize int64, form uint8) []byte {
	w := &bytescan.Writer{}
	w.U8(version)
	b.enc.Append(w)
	if b.ofList {
		w.U8(shapeLists)
	} else {
		w.U8(shapeValues)
	}
	w.Uvarint(uint64(bodySize))
	w.Uvarint(uint64(len(b.groups)))
	w.U8(form)
	for i := range b.groups {
		b.groups[i].append(w, b.enc, b.ofList, form)
	}
	return w.Buf
}

func (b *builder) Close() error {
	b.groups, b.elements, b.distinct = nil, nil, nil
	return b.sets.Close()
}
