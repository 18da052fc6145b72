package valueset

import (
	"fmt"
	"strings"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
)

// maxParts is the most granules that a merged artifact keeps apart in one row group of its segment: each costs a probe a read.
const maxParts = 16

// Merge keeps the row groups of the sources where their rows went. Those that came into one row group of the new segment are united while
// the union stays within the cap; too many stays too many. Counts are exact where no row is gone; else they are right in being none,
// some or all. It holds two sets, and a quarter of the budget of finished ones.
func (k Kind) Merge(spec index.Spec, sources []index.Source, m *index.OrdinalMap, budget index.Budget, body index.Sink) (root []byte, reason string, err error) {
	enc, err := index.Mergeable(name, &spec, sources, m, index.OneColumnOrElement)
	if err != nil {
		return nil, "", err
	}
	values, err := valueCap(spec.Params)
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
		if x.ofList != index.OfList(spec.Columns[0]) {
			return nil, "an artifact is of lists and another of values", nil
		}
		for j := range x.groups {
			granules[i] = append(granules[i], x.groups[j].Granule)
		}
	}
	moved, reason := index.Moves(m, granules, len(starts)-1)
	if reason != "" {
		return nil, reason, nil
	}
	x := &merger{writer: k.newWriter(enc, index.OfList(spec.Columns[0]), values, budget), starts: starts, inGroup: map[int]int{}}
	defer func() { err = closing(err, x.sets) }()
	for _, at := range moved {
		if err := x.take(at, readers[at.Source], &sources[at.Source]); err != nil {
			return nil, "", err
		}
	}
	if ok, err := x.flush(); err != nil || !ok {
		return nil, "too few rows are left to tell nulls from values", err
	}
	if len(x.groups) > index.MaxRowGroups {
		return nil, fmt.Sprintf("%d row groups, above the limit of %d", len(x.groups), index.MaxRowGroups), nil
	}
	return x.seal(body)
}

func closing(err error, o *index.Overflow) error {
	if e := o.Close(); err == nil {
		return e
	}
	return err
}

type merger struct {
	writer
	starts  []uint32    // of the new row groups, closed
	inGroup map[int]int // granules written, by the new row group they lie in
	open    *pending
	at      uint32
}

// pending is a granule that may still be joined with the next one.
type pending struct {
	counts  index.Counts
	in      int // the new row group it lies in, -1: in several
	tooMany bool
	keys    []string
}

// states reports whether the granule has rows enough to state what is known of them.
func (p *pending) states() bool {
	_, ok := p.counts.Granule(0)
	return ok
}

func (x *merger) take(at index.Moved, from *reader, body *index.Source) error {
	g := &from.groups[at.Granule]
	next := &pending{counts: g.Part(at.At.Len()), in: index.GroupOf(x.starts, at.At.Start, at.At.End), tooMany: g.tooMany}
	if g.values > 0 {
		var err error
		if next.keys, err = from.keys(g, body); err != nil {
			return err
		}
	}
	if x.open == nil {
		x.open = next
		return nil
	}
	states := x.open.states() && next.states()
	joined, apart := x.union(x.open, next), x.open.in < 0 || x.open.in != next.in
	crowded := !apart && x.inGroup[x.open.in]+1 >= maxParts
	if !states || !apart && (joined.tooMany == (x.open.tooMany && next.tooMany) || crowded) {
		x.open = joined
		return nil
	}
	if _, err := x.flush(); err != nil {
		return err
	}
	x.open = next
	return nil
}

// keys reads the set of a row group.
func (x *reader) keys(g *group, body *index.Source) ([]string, error) {
	set := g.set
	if set == nil {
		var err error
		if set, err = body.Unit(name+" set", g.unit, nil); err != nil {
			return nil, err
		}
	}
	keys, ends := make([]byte, 0, 2*len(set)), make([]int, 0, g.values)
	r := bytescan.NewReader(name+" set", set)
	index.ReadKeys(r, x.enc, g.values, maxKeys, func(_ int, key []byte) {
		keys = append(keys, key...)
		ends = append(ends, len(keys))
	})
	all, from, out := string(keys), 0, make([]string, len(ends))
	for i, end := range ends {
		out[i], from = all[from:end], end
	}
	return out, r.Done()
}

// union is two granules as one.
func (x *merger) union(a, b *pending) *pending {
	out := &pending{counts: a.counts, in: a.in, tooMany: a.tooMany || b.tooMany}
	out.counts.Add(b.counts)
	if b.in != a.in {
		out.in = -1
	}
	if out.tooMany {
		return out
	}
	out.keys = unite(a.keys, b.keys)
	size := 0
	for _, k := range out.keys {
		size += len(k)
	}
	if len(out.keys) > x.cap || size > byteCap(x.cap) {
		out.keys, out.tooMany = nil, true
	}
	return out
}

// unite merges ascending keys.
func unite(a, b []string) []string {
	out := make([]string, 0, max(len(a), len(b)))
	for len(a) > 0 && len(b) > 0 {
		c := strings.Compare(a[0], b[0])
		if c <= 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out = append(out, b[0])
		}
		if c >= 0 {
			b = b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// flush writes the granule at hand; ok is false where it has too few rows to state what is known of them, and none is before it.
func (x *merger) flush() (ok bool, err error) {
	if x.open == nil {
		return true, nil
	}
	counts, ok := x.open.counts.Granule(x.at)
	if !ok {
		return false, nil
	}
	g := group{Granule: counts, tooMany: x.open.tooMany, values: len(x.open.keys)}
	var set bytescan.Writer
	keys := index.NewKeyWriter(x.enc)
	for _, k := range x.open.keys {
		keys.Append(&set, k)
	}
	x.at += g.Rows
	x.inGroup[x.open.in]++
	x.open = nil
	return true, x.add(g, set.Buf)
}
