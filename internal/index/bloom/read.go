package bloom

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
	sbbf "github.com/parquet-go/parquet-go/bloom"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Open parses a root of at most 16 MiB, which it keeps, into at most 4 MiB beside it.
func (Kind) Open(root []byte, rows uint32) (index.Reader, error) {
	x, err := open(root, rows)
	if err != nil {
		return nil, err
	}
	return x, nil
}

func open(root []byte, rows uint32) (*reader, error) {
	r, enc, err := index.OpenRoot(name, root, version, maxRoot)
	if err != nil {
		return nil, err
	}
	x := &reader{rows: rows, enc: enc, bodySize: index.ReadSize(r)}
	x.readGroups(r)
	if err := r.Done(); err != nil {
		return nil, err
	}
	return x, nil
}

type reader struct {
	rows     uint32
	enc      index.Encoding
	bodySize int64
	groups   []group
}

type group struct {
	at       rowset.Range
	off      int64
	blocks   uint32
	distinct uint32 // 0: not counted
	fill     uint16
	state    uint8
	crcs     []byte // 4 bytes a unit, a view of the root
}

// Silent is the row groups whose filter would have had too many bits set.
func (x *reader) Silent() (silent, parts int) {
	for i := range x.groups {
		if x.groups[i].state&^hasNaN == stateSaturated {
			silent++
		}
	}
	return silent, len(x.groups)
}

func (x *reader) readGroups(r *bytescan.Reader) {
	at, off := uint32(0), int64(0)
	n := r.Count(index.MaxRowGroups, 2)
	x.groups = make([]group, 0, n)
	for range n {
		rows := r.Uvarint()
		g := group{state: r.U8(), off: off}
		if r.Err() == nil && (rows == 0 || rows > uint64(x.rows-at) || g.state&^hasNaN > stateSaturated || g.state > hasNaN|stateSaturated) {
			r.Fail("row group of %d rows in state %d at row %d of %d", rows, g.state, at, x.rows)
		}
		g.readFilter(r)
		if r.Err() != nil {
			return
		}
		g.at = rowset.Range{Start: at, End: at + uint32(rows)}
		at, off = g.at.End, off+int64(g.blocks)*blockSize
		x.groups = append(x.groups, g)
	}
	if at != x.rows || off != x.bodySize {
		r.Fail("row groups hold %d rows and %d filter bytes, the artifact %d and %d", at, off, x.rows, x.bodySize)
	}
}

func (g *group) readFilter(r *bytescan.Reader) {
	if g.state&^hasNaN == stateEmpty {
		return
	}
	g.distinct = uint32(min(r.Uvarint(), math.MaxUint32)) // for people
	g.fill = r.U16()
	if g.state&^hasNaN == stateSaturated {
		return
	}
	g.blocks = uint32(r.Count(maxBlocks, 0))
	if g.blocks == 0 {
		r.Fail("filter without blocks")
	}
	g.crcs = r.Bytes(4 * int((g.blocks*blockSize+unitSize-1)/unitSize))
	if tooFull(g.fill) {
		g.state = stateSaturated | g.state&hasNaN
	}
}

// unit is the unit with the block of hash, and the block's offset in it.
func (g *group) unit(hash uint64) (u index.Unit, at int) {
	off := int64(blockOf(hash, g.blocks)) * blockSize
	i := off / unitSize
	end := min((i+1)*unitSize, int64(g.blocks)*blockSize)
	return index.Unit{
		Span: index.Span{Off: g.off + i*unitSize, Len: end - i*unitSize},
		CRC:  binary.LittleEndian.Uint32(g.crcs[4*i:]),
	}, int(off - i*unitSize)
}

// Probe answers =, IN and Contains; anything else is "maybe". It reads the units of its keys in one wave.
func (x *reader) Probe(leaf *predicate.Leaf) index.Probe {
	if leaf.Op == predicate.Contains && !leaf.Negated {
		leaf = index.EqualElement(leaf)
	}
	ask, ok := index.Asked(leaf, x.enc)
	if !ok || !answers(leaf) || len(ask.In) > maxTests {
		return index.Settled(rowset.Maybe(x.rows))
	}
	p := &probe{reader: x, leaf: leaf, hashes: hashesOf(ask), may: make([]bool, len(x.groups))}
	for i := range x.groups {
		g := &x.groups[i]
		p.may[i] = len(p.hashes) > 0 && g.state&^hasNaN != stateEmpty
		if p.may[i] && g.state&^hasNaN == stateFilter {
			p.want(i)
		}
	}
	p.verdict = p.judge()
	return p
}

func hashesOf(ask index.Ask) []uint64 {
	hashes := make([]uint64, len(ask.In))
	for i, iv := range ask.In {
		hashes[i] = xxhash.Sum64(iv.Lo)
	}
	slices.Sort(hashes)
	return hashes
}

type probe struct {
	*reader
	leaf    *predicate.Leaf
	hashes  []uint64 // ascending, and with them the blocks of any filter
	may     []bool   // per row group
	tests   []test
	wave    index.Wave
	verdict rowset.Verdict
}

// test is a key to look up in a unit of the wave.
type test struct {
	group, unit, at int32
	bits            uint32 // low half of its hash
}

// want adds the units of a row group, or none when they are too many: the row group then stays in doubt.
func (p *probe) want(i int) {
	tests, wave := len(p.tests), len(p.wave)
	if tests+len(p.hashes) > maxTests {
		return
	}
	for _, h := range p.hashes {
		u, at := p.groups[i].unit(h)
		if len(p.wave) == wave || p.wave[len(p.wave)-1].Off != u.Off {
			p.wave = append(p.wave, u)
		}
		if len(p.wave) > maxProbe {
			p.tests, p.wave = p.tests[:tests], p.wave[:wave]
			return
		}
		p.tests = append(p.tests, test{group: int32(i), unit: int32(len(p.wave) - 1), at: int32(at), bits: uint32(h)})
	}
}

func (p *probe) Need() []index.Span { return p.wave.Spans() }

func (p *probe) Verdict() rowset.Verdict { return p.verdict }

func (p *probe) Feed(data [][]byte) error {
	wave := p.wave
	p.verdict, p.wave = rowset.Maybe(p.rows), nil
	if err := wave.Check(name+" filter", data); err != nil {
		return err
	}
	for _, t := range p.tests {
		p.may[t.group] = false
	}
	for _, t := range p.tests {
		var b sbbf.Block
		copy(b.Bytes(), data[t.unit][t.at:])
		if b.Check(t.bits) {
			p.may[t.group] = true
		}
	}
	p.verdict = p.judge()
	return nil
}

func (p *probe) judge() rowset.Verdict {
	var may, nan []rowset.Range
	for i, g := range p.groups {
		if p.may[i] {
			may = append(may, g.at)
		}
		if g.state&hasNaN != 0 {
			nan = append(nan, g.at)
		}
	}
	unknown := rowset.Maybe(p.rows)
	return index.Sign(p.leaf, index.Known{
		True: rowset.AtMost(rowset.FromRanges(p.rows, may)), False: unknown, Null: unknown,
		NaN: rowset.AtMost(rowset.FromRanges(p.rows, nan)),
	})
}
