package index

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Gone is where an OrdinalMap sends a row that it drops. It is no ordinal: an artifact has at most 2³² - 1 rows.
const Gone = math.MaxUint32

// OrdinalMap tells where the rows of merged artifacts go: per source, an old ordinal becomes a new one or is gone. Old ordinals are
// cut into pieces. A piece that keeps its order is a base and, where rows are dropped, the rank among the kept ones in a bit set: an
// eighth of a byte a row and a sixteenth for the ranks. Any other piece is a list of new ordinals, four bytes a row. Rows in no
// piece are gone. Make one, add pieces, then Seal it; from then on it is immutable and safe for concurrent use.
type OrdinalMap struct {
	rows    uint32
	sealed  bool
	sources []sourceMap
}

type sourceMap struct {
	rows      uint32
	pieces    []piece // ascending, disjoint
	ascending bool
}

// piece maps the old ordinals of at.
type piece struct {
	at        rowset.Range
	base      uint32   // new ordinal of the first row kept
	kept      *ranks   // which rows stay, numbered from at.Start; nil: all
	scattered []uint32 // new ordinals; base and kept are unused
}

// NewOrdinalMap starts a map of sources with as many rows each. All rows are gone at first.
func NewOrdinalMap(sourceRows []uint32) *OrdinalMap {
	m := &OrdinalMap{sources: make([]sourceMap, len(sourceRows))}
	for i, n := range sourceRows {
		m.sources[i].rows = n
	}
	return m
}

// Move sends the rows of old, all of them, to base, base + 1, …
func (m *OrdinalMap) Move(source int, old rowset.Range, base uint32) {
	m.add(source, piece{at: old, base: base})
}

// Keep sends the rows first + r, for every r of kept in order, to base, base + 1, … and drops the others below first + kept.Size().
func (m *OrdinalMap) Keep(source int, first uint32, kept *rowset.Set, base uint32) {
	p := piece{at: rowset.Range{Start: first, End: first + kept.Size()}, base: base}
	if !kept.Full() {
		p.kept = newRanks(kept)
	}
	m.add(source, p)
}

// Scatter sends row first + i to to[i], in any order; Gone drops it. It keeps the slice.
func (m *OrdinalMap) Scatter(source int, first uint32, to []uint32) {
	m.add(source, piece{at: rowset.Range{Start: first, End: first + uint32(len(to))}, scattered: to})
}

func (m *OrdinalMap) add(source int, p piece) {
	if p.at.Start < p.at.End {
		s := &m.sources[source]
		s.pieces = append(s.pieces, p)
	}
}

// Seal ends the making of a map onto rows new rows. It fails unless pieces lie apart within their sources and every new row comes
// from exactly one old row. It takes a bit a row while it checks.
func (m *OrdinalMap) Seal(rows uint32) error {
	taken := make([]uint64, (uint64(rows)+63)/64)
	total := uint64(0)
	for i := range m.sources {
		n, err := m.sources[i].seal(i, rows, taken)
		if err != nil {
			return err
		}
		total += n
	}
	if total != uint64(rows) {
		return fault.New(fault.Invalid, "ordinal map", "fills %d of %d rows", total, rows)
	}
	m.rows, m.sealed = rows, true
	return nil
}

func (s *sourceMap) seal(source int, rows uint32, taken []uint64) (total uint64, err error) {
	slices.SortFunc(s.pieces, func(a, b piece) int { return int(int64(a.at.Start) - int64(b.at.Start)) })
	s.join()
	end, next := uint32(0), uint64(0)
	s.ascending = true
	for i := range s.pieces {
		p := &s.pieces[i]
		if p.at.Start < end || p.at.End > s.rows || p.at.End < p.at.Start {
			return 0, fault.New(fault.Invalid, "ordinal map", "rows [%d, %d) of source %d overlap others or its end at %d", p.at.Start, p.at.End, source, s.rows)
		}
		end = p.at.End
		p.each(p.at, func(_, to rowset.Range) {
			if to.End > rows || to.End < to.Start || !take(taken, to) {
				err = fault.New(fault.Invalid, "ordinal map", "source %d sends two rows to one of [%d, %d), or past the %d rows", source, to.Start, to.End, rows)
				return
			}
			total += uint64(to.Len())
			s.ascending = s.ascending && uint64(to.Start) >= next
			next = uint64(to.End)
		})
		if err != nil {
			return 0, err
		}
	}
	return total, nil
}

// take marks rows and reports whether none of them was marked.
func take(words []uint64, r rowset.Range) bool {
	free := true
	for at := r.Start; at < r.End; {
		n := min(64-at&63, r.End-at)
		mask := ^uint64(0) >> (64 - n) << (at & 63)
		free = free && words[at>>6]&mask == 0
		words[at>>6] |= mask
		at += n
	}
	return free
}

// Concatenated is the map of whole sources one after the other, of which only the kept rows stay; a nil set keeps all.
func Concatenated(sourceRows []uint32, kept []*rowset.Set) (*OrdinalMap, error) {
	m, at := NewOrdinalMap(sourceRows), uint64(0)
	for i, n := range sourceRows {
		count := uint64(n)
		switch {
		case kept == nil || kept[i] == nil:
			m.Move(i, rowset.Range{End: n}, uint32(at))
		case kept[i].Size() != n:
			return nil, fault.New(fault.Invalid, "ordinal map", "source %d has %d rows, its set is about %d", i, n, kept[i].Size())
		default:
			count = uint64(kept[i].Count())
			m.Keep(i, 0, kept[i], uint32(at))
		}
		if at += count; at > math.MaxUint32 {
			return nil, fault.New(fault.Exhausted, "ordinal map", "more than %d rows in one segment", uint32(math.MaxUint32))
		}
	}
	return m, m.Seal(uint32(at))
}

// Originating is the map that sends row old[i] of source[i] to row i: what a rewritten file knows of its rows. Stretches that kept their
// order become ranks; where there are many of them the source is scattered.
func Originating(sourceRows, source, old []uint32) (*OrdinalMap, error) {
	if len(source) != len(old) || len(old) >= Gone {
		return nil, fault.New(fault.Invalid, "ordinal map", "%d sources of %d rows", len(source), len(old))
	}
	to := make([][]uint32, len(sourceRows))
	for i, s := range source {
		if int(s) >= len(sourceRows) || old[i] >= sourceRows[s] {
			return nil, fault.New(fault.Invalid, "ordinal map", "row %d comes from row %d of source %d, which does not exist", i, old[i], s)
		}
		if to[s] == nil {
			to[s] = slices.Repeat([]uint32{Gone}, int(sourceRows[s]))
		}
		if to[s][old[i]] != Gone {
			return nil, fault.New(fault.Invalid, "ordinal map", "row %d of source %d went to two rows", old[i], s)
		}
		to[s][old[i]] = uint32(i)
	}
	m := NewOrdinalMap(sourceRows)
	for s := range to {
		m.addStretches(s, to[s])
	}
	return m, m.Seal(uint32(len(old)))
}

// maxStretches is the pieces of one source above which it is scattered instead: then they are short.
const maxStretches = 1024

// addStretches adds pieces that keep their order where the new ordinals of the kept rows ascend one by one.
func (m *OrdinalMap) addStretches(source int, to []uint32) {
	var cuts []int
	last := uint32(Gone)
	for i, n := range to {
		if n == Gone {
			continue
		}
		if last == Gone || n != last+1 {
			cuts = append(cuts, i)
		}
		last = n
	}
	if len(cuts) > maxStretches {
		m.Scatter(source, 0, to)
		return
	}
	for k, from := range cuts {
		end := len(to)
		if k+1 < len(cuts) {
			end = cuts[k+1]
		}
		rows := NewRows(uint32(end - from))
		for i := from; i < end; i++ {
			if to[i] != Gone {
				rows.Add(rowset.Range{Start: uint32(i - from), End: uint32(i-from) + 1})
			}
		}
		m.Keep(source, uint32(from), rows.Set(), to[from])
	}
}

// Rows is the number of new rows.
func (m *OrdinalMap) Rows() uint32 { return m.rows }

// Sources is the number of sources.
func (m *OrdinalMap) Sources() int { return len(m.sources) }

// SourceRows is the number of old rows of a source.
func (m *OrdinalMap) SourceRows(source int) uint32 { return m.sources[source].rows }

// Ascending reports whether the new ordinals of a source's kept rows ascend with the old ones.
func (m *OrdinalMap) Ascending(source int) bool { return m.sources[source].ascending }

// Identity reports whether the map keeps every row of its only source where it is: what is known of the rows stays as it is.
func (m *OrdinalMap) Identity() bool {
	if len(m.sources) != 1 || m.sources[0].rows != m.rows {
		return false
	}
	at := uint32(0)
	for i := range m.sources[0].pieces {
		p := &m.sources[0].pieces[i]
		if p.scattered != nil || p.kept != nil || p.at.Start != at || p.base != at {
			return false
		}
		at = p.at.End
	}
	return at == m.rows
}

// Stretch is rows of a source that stay together, from row To on.
type Stretch struct {
	Source int
	Old    rowset.Range
	To     uint32
}

// maxMapped is the stretches of a source, on average, above which rows are mapped one by one: then few of them are long.
const maxMapped = 256

// maxPasses is the groups of stretches of a source, on average, above which rows are mapped one by one: who goes along the groups reads a
// source once for each.
const maxPasses = 8

// Stretches is the map as stretches in the order of the new rows; those that follow each other in one source's group ascend in the old rows
// too. nil: there are too many of them, or of groups.
func (m *OrdinalMap) Stretches() [][]Stretch {
	var all []Stretch
	for i := range m.sources {
		for k := range m.sources[i].pieces {
			p := &m.sources[i].pieces[k]
			if p.scattered != nil {
				return nil
			}
			p.each(p.at, func(old, to rowset.Range) {
				if len(all) <= maxMapped*len(m.sources) {
					all = append(all, Stretch{i, old, to.Start})
				}
			})
		}
		if len(all) > maxMapped*len(m.sources) {
			return nil
		}
	}
	slices.SortFunc(all, func(a, b Stretch) int { return cmp.Compare(a.To, b.To) })
	all = joined(all)
	out := [][]Stretch{}
	for i, from := 1, 0; i <= len(all); i++ {
		if i == len(all) || all[i].Source != all[from].Source || all[i].Old.Start < all[i-1].Old.Start {
			out = append(out, all[from:i])
			from = i
		}
	}
	if len(out) > maxPasses*len(m.sources) {
		return nil
	}
	return out
}

// joined makes one of stretches that follow each other on both sides.
func joined(all []Stretch) []Stretch {
	out := all[:0]
	for _, x := range all {
		if n := len(out); n > 0 && out[n-1].Source == x.Source && out[n-1].Old.End == x.Old.Start && out[n-1].To+out[n-1].Old.Len() == x.To {
			out[n-1].Old.End = x.Old.End
		} else {
			out = append(out, x)
		}
	}
	return out
}

// Alone is, by source, the stretch of all its rows that stay; nil: they do not stay together.
func (m *OrdinalMap) Alone() []*Stretch {
	out, seen := make([]*Stretch, m.Sources()), make([]int, m.Sources())
	for _, along := range m.Stretches() {
		for i := range along {
			seen[along[i].Source]++
			out[along[i].Source] = &along[i]
		}
	}
	for i, n := range seen {
		if n != 1 {
			out[i] = nil
		}
	}
	return out
}

// Row is the new ordinal of a row of the source, or Gone.
func (x *Stretch) Row(old uint32) uint32 {
	if at := old - x.Old.Start; at < x.Old.Len() {
		return x.To + at
	}
	return Gone
}

// To is the new ordinal of a row, or Gone.
func (m *OrdinalMap) To(source int, old uint32) uint32 {
	pieces := m.sources[source].pieces
	i := 0
	if len(pieces) > 1 {
		i = sort.Search(len(pieces), func(i int) bool { return pieces[i].at.End > old })
	}
	if i == len(pieces) || old < pieces[i].at.Start || old >= pieces[i].at.End {
		return Gone
	}
	p := &pieces[i]
	switch {
	case p.scattered != nil:
		return p.scattered[old-p.at.Start]
	case p.kept == nil:
		return p.base + old - p.at.Start
	case !p.kept.has(old - p.at.Start):
		return Gone
	default:
		return p.base + p.kept.rank(old-p.at.Start)
	}
}

// Each visits the kept rows of old as runs that stay together, ascending in old.
func (m *OrdinalMap) Each(source int, old rowset.Range, visit func(old, to rowset.Range)) {
	pieces := m.sources[source].pieces
	i := 0
	if len(pieces) > 1 {
		i = sort.Search(len(pieces), func(i int) bool { return pieces[i].at.End > old.Start })
	}
	for ; i < len(pieces) && pieces[i].at.Start < old.End; i++ {
		p := &pieces[i]
		if r := (rowset.Range{Start: max(old.Start, p.at.Start), End: min(old.End, p.at.End)}); r.Start < r.End {
			p.each(r, visit)
		}
	}
}

// Kept is the number of rows of old that stay.
func (m *OrdinalMap) Kept(source int, old rowset.Range) (n uint32) {
	m.Each(source, old, func(_, to rowset.Range) { n += to.Len() })
	return n
}

// each visits the kept rows of r, which lies in the piece.
func (p *piece) each(r rowset.Range, visit func(old, to rowset.Range)) {
	switch {
	case p.scattered != nil:
		p.eachScattered(r, visit)
	case p.kept == nil:
		base := p.base + r.Start - p.at.Start
		visit(r, rowset.Range{Start: base, End: base + r.Len()})
	default:
		p.kept.each(r.Start-p.at.Start, r.End-p.at.Start, func(start, end, rank uint32) {
			visit(rowset.Range{Start: p.at.Start + start, End: p.at.Start + end}, rowset.Range{Start: p.base + rank, End: p.base + rank + end - start})
		})
	}
}

func (p *piece) eachScattered(r rowset.Range, visit func(old, to rowset.Range)) {
	for at := r.Start; at < r.End; {
		to := p.scattered[at-p.at.Start]
		if to == Gone {
			at++
			continue
		}
		end := at + 1
		for end < r.End && p.scattered[end-p.at.Start] == to+end-at && to+end-at != Gone {
			end++
		}
		visit(rowset.Range{Start: at, End: end}, rowset.Range{Start: to, End: to + end - at})
		at = end
	}
}

// ranks is a bit set that counts the bits before any of its bits in constant time: a running count stands before every eight words.
type ranks struct {
	words  []uint64
	before []uint32
}

func newRanks(s *rowset.Set) *ranks {
	k := &ranks{words: s.Words()}
	n := uint32(0)
	for i, w := range k.words {
		if i&7 == 0 {
			k.before = append(k.before, n)
		}
		n += uint32(bits.OnesCount64(w))
	}
	return k
}

func (k *ranks) has(i uint32) bool { return k.words[i>>6]>>(i&63)&1 == 1 }

// rank is the number of bits below i.
func (k *ranks) rank(i uint32) uint32 {
	n := k.before[i>>9]
	for _, w := range k.words[i>>9<<3 : i>>6] {
		n += uint32(bits.OnesCount64(w))
	}
	return n + uint32(bits.OnesCount64(k.words[i>>6]&(1<<(i&63)-1)))
}

// each visits the runs of bits of [from, to), with the rank of their first.
func (k *ranks) each(from, to uint32, visit func(start, end, rank uint32)) {
	if from >= to {
		return
	}
	rank := k.rank(from)
	for at := from; at < to; {
		w := k.words[at>>6] >> (at & 63)
		if w == 0 {
			at = at&^63 + 64
			if at == 0 {
				return // past the last ordinal
			}
			continue
		}
		at += uint32(bits.TrailingZeros64(w))
		start := at
		for at < to {
			n := uint32(bits.TrailingZeros64(^(k.words[at>>6] >> (at & 63))))
			n = min(n, 64-at&63)
			at += n
			if at&63 != 0 || n == 0 {
				break
			}
		}
		if end := min(at, to); start < end {
			visit(start, end, rank)
			rank += end - start
		}
	}
}
