package bloom

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"
	sbbf "github.com/parquet-go/parquet-go/bloom"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
)

// NewBuilder starts filters for every row group. It holds the distinct hashes of one row group, or its filter once the hashes
// outgrow half the budget or the largest filter, and a quarter of the budget of finished filters; the rest of them is spilled.
func (k Kind) NewBuilder(spec index.Spec, budget index.Budget) (index.Builder, error) {
	e, err := index.OneColumnOrElement(name, spec.Columns)
	if err != nil {
		return nil, err
	}
	fpp, err := rate(spec.Params)
	if err != nil {
		return nil, err
	}
	starts, err := spec.GroupStarts(name)
	if err != nil {
		return nil, err
	}
	load, largest := keysPerBlock(fpp), k.maxBlocks
	if largest == 0 {
		largest = maxBlocks
	}
	return &builder{
		largest: largest,
		filters: index.NewOverflow(budget.TempDir, budget.Bytes()/4),
		enc:     e, ofList: index.OfList(spec.Columns[0]), elements: index.NewElements(e, spec.Columns[0]), count: index.RowCount{Want: spec.Rows}, load: load, starts: starts,
		maxHashes: int(min(float64(budget.Bytes()/32), load*float64(largest))),
	}, nil
}

type builder struct {
	enc       index.Encoding
	ofList    bool
	elements  *index.Elements // of lists; else only its keys are used
	count     index.RowCount
	load      float64 // keys a block at the wanted rate
	largest   int     // blocks
	maxHashes int     // distinct hashes to hold before the filter is sized by rows instead
	starts    []uint32
	groups    []built
	filters   *index.Overflow // of the finished row groups: only Finish may write a body

	seen   hashSet
	filter sbbf.SplitBlockFilter // set once seen outgrew maxHashes
	nan    bool
	key    []byte
}

// built is a finished row group.
type built struct {
	rows     uint32
	state    uint8
	distinct int
	fill     uint16
	blocks   int
	crcs     []uint32 // one per unit
}

func (b *builder) Add(cols []*column.Vector) error {
	v := cols[0]
	at := b.count.Got
	if err := b.count.Add(v.Len); err != nil {
		return err
	}
	if err := b.read(v); err != nil {
		return err
	}
	for i := 0; i < v.Len; {
		end := b.starts[len(b.groups)+1]
		n := int(min(uint32(v.Len-i), end-at))
		b.take(i, i+n)
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

func (b *builder) read(v *column.Vector) error {
	if b.ofList {
		return b.elements.Load(v)
	}
	return b.elements.Keys.Load(v)
}

// take adds the values of rows i to j.
func (b *builder) take(i, j int) {
	if !b.ofList {
		b.takeKeys(i, j)
		return
	}
	for ; i < j; i++ {
		from, to, _ := b.elements.Row(i)
		b.takeKeys(from, to)
	}
}

func (b *builder) takeKeys(i, j int) {
	k := b.elements.Keys
	for ; i < j; i++ {
		switch {
		case k.Null(i):
			continue
		case !b.enc.Narrow():
			b.insert(xxhash.Sum64(k.Wide(i)))
		case k.NaN(i):
			b.nan = true
		default:
			b.key = b.enc.AppendNarrow(b.key[:0], k.Narrow[i])
			b.insert(xxhash.Sum64(b.key))
		}
	}
}

func (b *builder) insert(hash uint64) {
	if b.filter != nil {
		b.filter.Insert(hash)
		return
	}
	if b.seen.add(hash); b.seen.len() > b.maxHashes {
		b.filter = b.filterFor(b.starts[len(b.groups)+1] - b.starts[len(b.groups)])
	}
}

// filterFor makes a filter for n distinct values and moves the hashes into it.
func (b *builder) filterFor(n uint32) sbbf.SplitBlockFilter {
	blocks := min(math.Ceil(float64(n)/b.load), float64(b.largest))
	f := make(sbbf.SplitBlockFilter, int(max(blocks, 1)))
	b.seen.each(f.Insert)
	b.seen.clear()
	return f
}

func (b *builder) closeGroup() error {
	g := built{rows: b.starts[len(b.groups)+1] - b.starts[len(b.groups)], state: stateFilter, distinct: b.seen.len()}
	f := b.filter
	switch {
	case f != nil:
	case g.distinct > 0:
		f = b.filterFor(uint32(g.distinct))
	default:
		g.state = stateEmpty
	}
	if f != nil {
		if g.fill = packFill(share(f)); tooFull(g.fill) {
			g.state, f = stateSaturated, nil
		}
	}
	if b.nan {
		g.state |= hasNaN
	}
	b.filter, b.nan = nil, false
	g.blocks = len(f)
	for u := range slices.Chunk(f.Bytes(), unitSize) {
		g.crcs = append(g.crcs, bytescan.CRC32C(u))
	}
	b.groups = append(b.groups, g)
	return b.filters.Keep(f.Bytes())
}

func share(f sbbf.SplitBlockFilter) float64 {
	n := 0
	for i := range f {
		for _, w := range f[i] {
			n += bits.OnesCount32(uint32(w))
		}
	}
	return float64(n) / float64(len(f)*blockSize*8)
}

func (b *builder) Finish(body index.Sink) ([]byte, string, error) {
	if err := b.count.Done(); err != nil {
		return nil, "", err
	}
	if useless(b.groups) {
		return nil, uselessReason, nil
	}
	if err := b.filters.CopyTo(body); err != nil {
		return nil, "", err
	}
	return rootOf(b.enc, body.Offset(), b.groups), "", nil
}

var uselessReason = fmt.Sprintf("every filter would have more than %.0f %% of its bits set: too many distinct values in a row group", maxFill*100)

func rootOf(e index.Encoding, bodySize int64, groups []built) []byte {
	w := index.StartRoot(version, e)
	w.Uvarint(uint64(bodySize))
	w.Uvarint(uint64(len(groups)))
	for i := range groups {
		groups[i].append(w)
	}
	return w.Buf
}

// useless reports whether no row group has anything to say.
func useless(groups []built) bool {
	for i := range groups {
		if groups[i].state&^hasNaN != stateSaturated {
			return false
		}
	}
	return len(groups) > 0
}

func (g *built) append(w *bytescan.Writer) {
	w.Uvarint(uint64(g.rows))
	w.U8(g.state)
	if g.state&^hasNaN == stateEmpty {
		return
	}
	w.Uvarint(uint64(g.distinct))
	w.U16(g.fill)
	if g.blocks == 0 {
		return
	}
	w.Uvarint(uint64(g.blocks))
	for _, crc := range g.crcs {
		w.U32(crc)
	}
}

func (b *builder) Close() error {
	b.groups, b.filter, b.seen, b.elements = nil, nil, hashSet{}, nil
	return b.filters.Close()
}
