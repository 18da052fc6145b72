package plan

import (
	"encoding/binary"
	"math"
	"slices"
	"sort"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/predicate"
)

// strainer is a leaf as a question of integers: rows that pass have a key in one of ranges. The keys of a kind keep its order;
// those of text are its first 8 bytes, so that texts of one key may differ.
//
// It rules a file out by bounds where no range meets them, and by the partition tuple where that proves that no row passes. The
// two may contradict each other, and Prune then believes neither: a file whose bounds may lie inside a range is not ruled out
// by its tuple, nor one by its bounds whose tuple proves that rows pass or is null.
type strainer struct {
	leaf    *predicate.Leaf
	shell   *facts.Snapshot
	id      int
	kind    column.Kind
	ranges  []keyRange // ascending, apart; nil: keys cannot tell
	counted bool       // the column's metrics may be believed
}

type keyRange struct{ from, to int64 } // inclusive

// newStrainer compiles a leaf; nil where neither keys nor tuples can rule a file out, or where null rows pass.
func newStrainer(shell *facts.Snapshot, l *predicate.Leaf) *strainer {
	kind := l.Column.Type().Kind
	if l.Negated || !judgeable(l) || l.Op <= predicate.IsNaN || kind.Floating() && l.Dialect == predicate.Iceberg {
		return nil
	}
	st := &strainer{leaf: l, shell: shell, id: l.Column.ID(), kind: kind}
	st.counted = shell.NameMapping == nil || facts.Maps(shell.NameMapping, st.id)
	q := questionOf(l)
	st.ranges = keyRanges(kind, &q)
	if st.ranges == nil && !st.partitions() {
		return nil
	}
	return st
}

// joined is the strainer of two leaves of one conjunction over the same column, where one range says what both ask; nil if none
// does. Partition fields look at leaves one by one.
func (st *strainer) joined(o *strainer) *strainer {
	if st.id != o.id || len(st.ranges) != 1 || len(o.ranges) != 1 || st.repeated() || o.repeated() || st.partitions() {
		return nil
	}
	r := keyRange{max(st.ranges[0].from, o.ranges[0].from), min(st.ranges[0].to, o.ranges[0].to)}
	if r.from > r.to {
		return nil
	}
	out := *st
	out.ranges = []keyRange{r}
	return &out
}

// partitions reports whether some spec has a field made from the leaf's column.
func (st *strainer) partitions() bool {
	for _, spec := range st.shell.Specs {
		if slices.ContainsFunc(spec.Fields, func(f facts.PartitionField) bool { return f.SourceID == st.id }) {
			return true
		}
	}
	return false
}

// keyRanges is where the keys of values that pass can lie; nil: anywhere.
func keyRanges(kind column.Kind, q *question) (out []keyRange) {
	text := kind == column.String || kind == column.Binary
	if !text && !integerLike(kind) && !kind.Floating() {
		return nil
	}
	if q.op == predicate.StartsWith || q.op == predicate.Like {
		if q.prefix == "" {
			return nil
		}
		return []keyRange{{textKey(q.prefix, 0), textKey(q.prefix, 0xFF)}}
	}
	step := int64(1) // from a key to its neighbour; texts of one key may differ
	if text {
		step = 0
	}
	for i := range q.values {
		k := valueKey(&q.values[i])
		switch q.op {
		case predicate.Equal, predicate.In, predicate.Contains:
			if n := len(out); n == 0 || out[n-1].to < k {
				out = append(out, keyRange{k, k})
			}
		case predicate.Less:
			if k == math.MinInt64 {
				return nil
			}
			return []keyRange{{math.MinInt64, k - step}}
		case predicate.LessEqual:
			return []keyRange{{math.MinInt64, k}}
		case predicate.Greater:
			if k == math.MaxInt64 {
				return nil
			}
			return []keyRange{{k + step, math.MaxInt64}}
		case predicate.GreaterEqual:
			return []keyRange{{k, math.MaxInt64}}
		default:
			return nil
		}
	}
	return out
}

// valueKey is the key of a literal.
func valueKey(v *column.Value) int64 {
	switch {
	case v.Kind.Floating():
		return floatKey(v.Float64())
	case integerLike(v.Kind):
		return v.Int64()
	default:
		return textKey(v.S, 0)
	}
}

// floatKey orders floats but NaN; zeros are equal.
func floatKey(f float64) int64 {
	b := int64(math.Float64bits(f))
	if f == 0 {
		return 0
	}
	return b ^ b>>63&math.MaxInt64
}

// textKey is the first 8 bytes of s, filled up, as an integer in the order of unsigned bytes.
func textKey(s string, fill byte) int64 {
	b := [8]byte{fill, fill, fill, fill, fill, fill, fill, fill}
	copy(b[:], s)
	return flipped(binary.BigEndian.Uint64(b[:]))
}

func flipped(u uint64) int64 { return int64(u ^ 1<<63) }

// strained is a strainer over one group.
type strained struct {
	*strainer
	keys   *facts.Keys // nil: bounds say nothing
	decode func(lo, hi *[64]int64, k *facts.Keys, at, n int)
	doubt  bool // bounds may say what keys do not show
	tuple  facts.Ints
	states []state // by tuple; nil: tuples say nothing
	lo, hi [64]int64
}

// state is what a partition tuple proves of the rows of a file.
type state uint8

const (
	neutral state = iota
	fails
	odd // proves that rows pass, or holds a null: only Prune can weigh it
)

// over looks at what a group states; nil keeps all its files.
func (st *strainer) over(g *facts.Group) *strained {
	x, allNull := &strained{strainer: st}, false
	if m := g.Columns[st.id]; m != nil && st.counted && m.Keys.Form != facts.NoKeys {
		x.decode = decoderOf(st.kind, &m.Keys)
		x.doubt = x.decode == nil || st.ranges == nil || m.Keys.NaNs && !st.kind.Floating()
		if !x.doubt {
			x.keys = &m.Keys
		}
		allNull = m.Keys.AllNull
	}
	if !x.repeated() {
		x.tuple, x.states = g.Tuple, st.judge(g)
	}
	if x.states != nil && allNull {
		return nil // a tuple that is not null and counts of nothing but nulls leave no row: Prune believes neither
	}
	if x.keys == nil && (x.states == nil || x.doubt) {
		return nil
	}
	return x
}

func (st *strainer) repeated() bool { return st.leaf.Op == predicate.Contains }

// judge is what each partition tuple of a group proves; nil if none proves anything.
func (st *strainer) judge(g *facts.Group) []state {
	n := 0
	for _, c := range g.Tuples {
		n = len(c.Known)
	}
	if n == 0 || !st.partitions() {
		return nil
	}
	s := *st.shell
	s.Files = facts.Files{Path: make([]string, n), SpecID: make([]int32, n), Partition: g.Tuples}
	for i := range s.Files.SpecID {
		s.Files.SpecID[i] = g.Spec
	}
	lt := newLeafTest(&s, st.leaf)
	if lt == nil || len(lt.parts) == 0 {
		return nil
	}
	out := make([]state, n)
	for i := range out {
		r := lt.start
		for k := range lt.parts {
			if p := &lt.parts[k]; p.spec == g.Spec {
				p.look(i, lt, &r)
			}
		}
		switch {
		case r.passes || !r.rest:
			out[i] = odd
		case r.fails:
			out[i] = fails
		}
	}
	return out
}

// out is which of the n files from at on are ruled out, as bits.
func (x *strained) out(at, n int) uint64 {
	apart, inside := uint64(0), uint64(0)
	if x.states == nil && x.keys.Form == facts.Raw8 && integerLike(x.kind) && len(x.ranges) == 1 {
		apart = apart8(x.keys.Lower[8*at:], x.keys.Upper[8*at:], n, x.ranges[0])
		if x.keys.Sure != nil {
			apart &= x.keys.Sure[at/64]
		}
		return apart
	}
	if x.keys != nil {
		x.decode(&x.lo, &x.hi, x.keys, at, n)
		apart, inside = x.compare(&x.lo, &x.hi, n)
		if x.keys.Sure != nil {
			sure := x.keys.Sure[at/64]
			apart, inside = apart&sure, inside|^sure
		}
	}
	if x.doubt {
		inside = ^uint64(0)
	}
	if x.states == nil {
		return apart
	}
	failing, oddly := x.tupleBits(at, n)
	return (apart | failing&^inside) &^ oddly
}

func (x *strained) tupleBits(at, n int) (failing, oddly uint64) {
	if x.tuple.Width == 0 {
		switch x.states[x.tuple.Base] {
		case fails:
			return ^uint64(0), 0
		case odd:
			return 0, ^uint64(0)
		}
		return 0, 0
	}
	for i := range n {
		switch x.states[x.tuple.At(at+i)] {
		case fails:
			failing |= 1 << i
		case odd:
			oddly |= 1 << i
		}
	}
	return failing, oddly
}

// compare is which of n intervals meet no range, and which lie in one. Crossed ones do neither.
func (st *strainer) compare(lo, hi *[64]int64, n int) (apart, inside uint64) {
	if len(st.ranges) > 1 {
		return st.search(lo, hi, n)
	}
	from, to := st.ranges[0].from, st.ranges[0].to
	for i := range min(n, 64) {
		l, h := lo[i], hi[i]
		whole := bit(l <= h)
		apart |= (bit(h < from) | bit(l > to)) & whole << i
		inside |= bit(l >= from) & bit(h <= to) & whole << i
	}
	return apart, inside
}

// apart8 is the way of the most common question, in one pass: which of n intervals of 8-byte integers do not meet r.
func apart8(lower, upper []byte, n int, r keyRange) (apart uint64) {
	lower, upper = lower[:8*n], upper[:8*n]
	for i := range n {
		l, h := int64(binary.LittleEndian.Uint64(lower[8*i:])), int64(binary.LittleEndian.Uint64(upper[8*i:]))
		apart |= (bit(h < r.from) | bit(l > r.to)) & bit(l <= h) << i
	}
	return apart
}

func (st *strainer) search(lo, hi *[64]int64, n int) (apart, inside uint64) {
	for i := range n {
		l, h := lo[i], hi[i]
		k := sort.Search(len(st.ranges), func(k int) bool { return st.ranges[k].to >= l })
		switch {
		case l > h:
		case k == len(st.ranges) || st.ranges[k].from > h:
			apart |= 1 << i
		case l >= st.ranges[k].from && h <= st.ranges[k].to:
			inside |= 1 << i
		}
	}
	return apart, inside
}

// bit compiles to a flag without a jump.
func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
