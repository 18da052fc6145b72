package predicate

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/skomerdb/skomer/internal/analysis"
	"github.com/skomerdb/skomer/internal/column"
)

// kernel is the plain test of a leaf over up to 64 values.
type kernel interface {
	// word tests the values base to base+n of v, which has no dictionary, and returns bit i for value base+i. Only
	// the bits in lanes count.
	word(v *column.Vector, base, n int, lanes uint64) uint64
}

// few is the longest In list that is compared value by value; longer ones are looked up in a hash set.
const few = 6

// newKernel makes the kernel of a leaf other than IsNull and Contains.
func newKernel(l *Leaf) kernel {
	t := l.Column.Type()
	switch l.Op {
	case StartsWith:
		return prefix(l.Values[0].S)
	case Like, ILike:
		return like{l.Pattern}
	case Match:
		return match{l.Regex}
	case In:
		if len(l.Values) == 0 {
			return never{}
		}
	}
	switch t.Kind {
	case column.Bool:
		return truth{l.holds(column.BoolValue(false)), l.holds(column.BoolValue(true))}
	case column.Int, column.Date:
		return numbers(l, (*column.Vector).Int32s, func(v column.Value) int32 { return int32(v.Lo) })
	case column.Float:
		return numbers(l, (*column.Vector).Float32s, func(v column.Value) float32 { return float32(v.Float64()) })
	case column.Double:
		return numbers(l, (*column.Vector).Float64s, column.Value.Float64)
	case column.Decimal:
		return newDecimals(l)
	case column.Unknown:
		return never{}
	case column.Long, column.Time, column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ:
		return numbers(l, (*column.Vector).Int64s, column.Value.Int64)
	default:
		return newRaws(l)
	}
}

type never struct{}

func (never) word(*column.Vector, int, int, uint64) uint64 { return 0 }

// truth tests packed booleans.
type truth struct{ no, yes bool }

func (k truth) word(v *column.Vector, base, n int, _ uint64) uint64 {
	var buf [8]byte
	copy(buf[:], v.Fixed[base>>3:min(len(v.Fixed), base>>3+(n+7)>>3)])
	x := binary.LittleEndian.Uint64(buf[:])
	var out uint64
	if k.yes {
		out |= x
	}
	if k.no {
		out |= ^x
	}
	return out
}

type number interface {
	int32 | int64 | float32 | float64
}

// compare tests fixed-size numbers against one.
type compare[T number] struct {
	op   Op
	with T
	view func(*column.Vector) []T
}

// among tests fixed-size numbers against many, which lie between lo and hi.
type among[T number] struct {
	few    []T
	many   map[T]struct{}
	lo, hi T
	view   func(*column.Vector) []T
}

func numbers[T number](l *Leaf, view func(*column.Vector) []T, of func(column.Value) T) kernel {
	if l.Op == IsNaN {
		return nans[T]{view}
	}
	if l.Op != In {
		return compare[T]{l.Op, of(l.Values[0]), view}
	}
	k := among[T]{view: view, lo: of(l.Values[0]), hi: of(l.Values[len(l.Values)-1])}
	if len(l.Values) > few {
		k.many = make(map[T]struct{}, len(l.Values))
	}
	for _, v := range l.Values {
		if k.many == nil {
			k.few = append(k.few, of(v))
		} else {
			k.many[of(v)] = struct{}{}
		}
	}
	return k
}

func bit(b bool, i int) uint64 {
	var x uint64
	if b {
		x = 1
	}
	return x << (uint(i) & 63)
}

func (k compare[T]) word(v *column.Vector, base, n int, _ uint64) (out uint64) {
	values, with := k.view(v)[base:base+n], k.with
	switch k.op {
	case Equal:
		for i, x := range values {
			out |= bit(x == with, i)
		}
	case Less:
		for i, x := range values {
			out |= bit(x < with, i)
		}
	case LessEqual:
		for i, x := range values {
			out |= bit(x <= with, i)
		}
	case Greater:
		for i, x := range values {
			out |= bit(x > with, i)
		}
	case GreaterEqual:
		for i, x := range values {
			out |= bit(x >= with, i)
		}
	}
	return out
}

func (k among[T]) word(v *column.Vector, base, n int, lanes uint64) (out uint64) {
	values := k.view(v)[base : base+n]
	if k.many == nil {
		for _, with := range k.few {
			for i, x := range values {
				out |= bit(x == with, i)
			}
		}
		return out
	}
	for rest := lanes; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		x := values[i]
		if x < k.lo || x > k.hi {
			continue
		}
		if _, ok := k.many[x]; ok {
			out |= 1 << i
		}
	}
	return out
}

type nans[T number] struct{ view func(*column.Vector) []T }

func (k nans[T]) word(v *column.Vector, base, n int, _ uint64) (out uint64) {
	for i, x := range k.view(v)[base : base+n] {
		out |= bit(x != x, i)
	}
	return out
}

type int128 struct {
	hi int64
	lo uint64
}

func (a int128) less(b int128) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

// decimals tests 128-bit integers.
type decimals struct {
	op   Op
	with int128
	many map[int128]struct{} // In
}

func newDecimals(l *Leaf) kernel {
	k := decimals{op: l.Op, with: int128{l.Values[0].Hi, l.Values[0].Lo}}
	if l.Op == In {
		k.many = make(map[int128]struct{}, len(l.Values))
		for _, v := range l.Values {
			k.many[int128{v.Hi, v.Lo}] = struct{}{}
		}
	}
	return k
}

func (k decimals) word(v *column.Vector, base, n int, lanes uint64) (out uint64) {
	raw := v.Fixed[base*16 : (base+n)*16]
	for rest := lanes; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		x := int128{int64(binary.LittleEndian.Uint64(raw[i*16+8:])), binary.LittleEndian.Uint64(raw[i*16:])}
		if k.holds(x) {
			out |= 1 << i
		}
	}
	return out
}

func (k decimals) holds(x int128) bool {
	switch k.op {
	case Less:
		return x.less(k.with)
	case LessEqual:
		return !k.with.less(x)
	case Greater:
		return k.with.less(x)
	case GreaterEqual:
		return !x.less(k.with)
	case In:
		_, ok := k.many[x]
		return ok
	default:
		return x == k.with
	}
}

// raws tests strings and bytes in unsigned byte order.
type raws struct {
	op   Op
	with []byte
	few  [][]byte            // In
	many map[string]struct{} // In
}

func newRaws(l *Leaf) kernel {
	k := raws{op: l.Op, with: []byte(l.Values[0].S)}
	if l.Op != In {
		return k
	}
	if len(l.Values) > few {
		k.many = make(map[string]struct{}, len(l.Values))
	}
	for _, v := range l.Values {
		if k.many == nil {
			k.few = append(k.few, []byte(v.S))
		} else {
			k.many[v.S] = struct{}{}
		}
	}
	return k
}

func (k raws) word(v *column.Vector, base, _ int, lanes uint64) (out uint64) {
	for rest := lanes; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		if k.holds(v.Raw(base + i)) {
			out |= 1 << i
		}
	}
	return out
}

func (k raws) holds(x []byte) bool {
	switch k.op {
	case Less:
		return bytes.Compare(x, k.with) < 0
	case LessEqual:
		return bytes.Compare(x, k.with) <= 0
	case Greater:
		return bytes.Compare(x, k.with) > 0
	case GreaterEqual:
		return bytes.Compare(x, k.with) >= 0
	case In:
		for _, with := range k.few {
			if bytes.Equal(x, with) {
				return true
			}
		}
		_, ok := k.many[string(x)]
		return ok
	default:
		return bytes.Equal(x, k.with)
	}
}

type prefix []byte

func (k prefix) word(v *column.Vector, base, _ int, lanes uint64) (out uint64) {
	for rest := lanes; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		if bytes.HasPrefix(v.Raw(base+i), k) {
			out |= 1 << i
		}
	}
	return out
}

type like struct{ pattern *Pattern }

func (k like) word(v *column.Vector, base, _ int, lanes uint64) (out uint64) {
	var folded []byte
	for rest := lanes; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		text := v.Raw(base + i)
		if k.pattern.AnyCase {
			folded = analysis.AppendFold(folded[:0], text)
			text = folded
		}
		if k.pattern.matchFolded(text) {
			out |= 1 << i
		}
	}
	return out
}

type match struct{ regex *Regex }

func (k match) word(v *column.Vector, base, _ int, lanes uint64) (out uint64) {
	for rest := lanes; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		if k.regex.Match(v.Raw(base + i)) {
			out |= 1 << i
		}
	}
	return out
}
