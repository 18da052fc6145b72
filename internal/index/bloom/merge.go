package bloom

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	sbbf "github.com/parquet-go/parquet-go/bloom"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
)

// maxParts is the most filters that a merged artifact keeps apart in one row group of its segment: each costs a probe a read.
const maxParts = 16

// Merge keeps the filters of the sources where the rows of their row groups went. Neighbours that came into one row group of the new
// segment are united where both have the same size and the union keeps the false-positive rate of the declaration; saturated stays
// saturated. It holds two filters.
func (k Kind) Merge(spec index.Spec, sources []index.Source, m *index.OrdinalMap, _ index.Budget, body index.Sink) ([]byte, string, error) {
	enc, err := index.Mergeable(name, &spec, sources, m, index.OneColumnOrElement)
	if err != nil {
		return nil, "", err
	}
	fpp, err := rate(spec.Params)
	if err != nil {
		return nil, "", err
	}
	starts, err := spec.GroupStarts(name)
	if err != nil {
		return nil, "", err
	}
	readers, enc, reason, err := index.OpenSources(name, sources, enc, open, func(x *reader) (index.Encoding, int64) { return x.enc, x.bodySize })
	if reason != "" || err != nil {
		return nil, reason, err
	}
	granules := make([][]index.Granule, len(sources))
	for i, x := range readers {
		for _, g := range x.groups {
			granules[i] = append(granules[i], index.Granule{Start: g.at.Start, Rows: g.at.Len()})
		}
	}
	moved, reason := index.Moves(m, granules, len(starts)-1)
	if reason != "" {
		return nil, reason, nil
	}
	x := &merger{starts: starts, fullest: packFill(1 - math.Exp(-keysPerBlock(fpp)/32) + fillSlack), body: body}
	for _, at := range moved {
		if reason, err := x.take(at, readers[at.Source], &sources[at.Source]); reason != "" || err != nil {
			return nil, reason, err
		}
	}
	if err := x.flush(); err != nil {
		return nil, "", err
	}
	switch {
	case useless(x.groups):
		return nil, uselessReason, nil
	case len(x.groups) > index.MaxRowGroups:
		return nil, fmt.Sprintf("%d row groups, above the limit of %d", len(x.groups), index.MaxRowGroups), nil
	}
	return rootOf(enc, body.Offset(), x.groups), "", nil
}

// fillSlack is by how much the fill of a filter at its load varies.
const fillSlack = 0.02

type merger struct {
	starts  []uint32 // of the new row groups, closed
	fullest uint16   // the fill of a filter at the declared rate
	body    index.Sink
	groups  []built
	open    *pending
	parts   int // granules in the row group of open
}

// pending is a granule that may still be joined with the next one.
type pending struct {
	built
	in     int // the new row group it lies in, -1: in several
	filter sbbf.SplitBlockFilter
}

func (x *merger) take(at index.Moved, from *reader, body *index.Source) (reason string, err error) {
	next, err := from.pending(&from.groups[at.Granule], body)
	if err != nil {
		return "", err
	}
	next.rows, next.in = at.At.Len(), index.GroupOf(x.starts, at.At.Start, at.At.End)
	apart := x.open == nil || x.open.in < 0 || x.open.in != next.in
	if !apart && x.unite(next) {
		return "", nil
	}
	if x.parts++; apart {
		x.parts = 1
	}
	if x.parts > maxParts {
		return fmt.Sprintf("a row group would have more than %d filters of different sizes", maxParts), nil
	}
	err = x.flush()
	x.open = next
	return "", err
}

// unite takes next into the granule at hand, where that makes it no worse.
func (x *merger) unite(next *pending) bool {
	a, b := x.open, next
	if a.state&^hasNaN != b.state&^hasNaN || len(a.filter) != len(b.filter) {
		return false
	}
	if len(a.filter) > 0 {
		both := slices.Clone(a.filter)
		for i := range both {
			for j := range both[i] {
				both[i][j] |= b.filter[i][j]
			}
		}
		fill := packFill(share(both))
		if tooFull(fill) || fill > max(x.fullest, a.fill, b.fill) {
			return false
		}
		if fill != a.fill || fill != b.fill {
			a.distinct = 0
		}
		a.filter, a.fill, a.crcs = both, fill, nil
	}
	a.state, a.rows = a.state|b.state, a.rows+b.rows
	return true
}

// pending reads a row group's filter.
func (x *reader) pending(g *group, body *index.Source) (*pending, error) {
	p := &pending{built: built{state: g.state, distinct: int(g.distinct), fill: g.fill, blocks: int(g.blocks)}}
	if g.state&^hasNaN != stateFilter {
		p.blocks = 0
		return p, nil
	}
	p.filter = make(sbbf.SplitBlockFilter, g.blocks)
	b := p.filter.Bytes()
	if _, err := body.Bytes(name+" filter", index.Span{Off: g.off, Len: int64(len(b))}, b); err != nil {
		return nil, err
	}
	for i := 0; len(b) > 0; i++ {
		n, crc := min(len(b), unitSize), binary.LittleEndian.Uint32(g.crcs[4*i:])
		if err := bytescan.CheckCRC(name+" filter", b[:n], crc); err != nil {
			return nil, err
		}
		p.crcs, b = append(p.crcs, crc), b[n:]
	}
	return p, nil
}

// flush writes the granule at hand.
func (x *merger) flush() error {
	if x.open == nil {
		return nil
	}
	g, b := x.open.built, x.open.filter.Bytes()
	if len(b) > 0 && g.crcs == nil {
		for u := range slices.Chunk(b, unitSize) {
			g.crcs = append(g.crcs, bytescan.CRC32C(u))
		}
	}
	x.groups, x.open = append(x.groups, g), nil
	_, err := x.body.Write(b)
	return err
}
