package index

import (
	"bytes"
	"slices"
	"sort"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/predicate"
)

// Interval is the keys from Lo to Hi, both included unless open. A nil Lo with LoOpen false starts at the first key.
type Interval struct {
	Lo, Hi         []byte
	LoOpen, HiOpen bool
	NoHi           bool // there is no upper end
}

// Point reports whether the interval is one key.
func (iv Interval) Point() bool {
	return !iv.NoHi && !iv.LoOpen && !iv.HiOpen && bytes.Equal(iv.Lo, iv.Hi)
}

// Below reports whether key lies before the interval.
func (iv Interval) Below(key []byte) bool {
	c := bytes.Compare(key, iv.Lo)
	return c < 0 || c == 0 && iv.LoOpen
}

// Above reports whether key lies after the interval.
func (iv Interval) Above(key []byte) bool {
	if iv.NoHi {
		return false
	}
	c := bytes.Compare(key, iv.Hi)
	return c > 0 || c == 0 && iv.HiOpen
}

// Common is the keys in an interval of both lists, which ascend and are disjoint, as the result is.
func Common(a, b []Interval) []Interval {
	var out []Interval
	for i, j := 0, 0; i < len(a) && j < len(b); {
		x := a[i]
		if c := bytes.Compare(b[j].Lo, x.Lo); c > 0 || c == 0 && b[j].LoOpen {
			x.Lo, x.LoOpen = b[j].Lo, b[j].LoOpen
		}
		bEndsFirst := !b[j].NoHi && (x.NoHi || bytes.Compare(b[j].Hi, x.Hi) < 0 || bytes.Equal(b[j].Hi, x.Hi) && b[j].HiOpen)
		if bEndsFirst {
			x.Hi, x.HiOpen, x.NoHi = b[j].Hi, b[j].HiOpen, false
		}
		if c := bytes.Compare(x.Lo, x.Hi); x.NoHi || c < 0 || c == 0 && !x.LoOpen && !x.HiOpen {
			out = append(out, x)
		}
		if bEndsFirst {
			j++
		} else {
			i++
		}
	}
	return out
}

// Ask is what a leaf without its sign asks of keys: it is true of a value whose key lies in one of the intervals.
type Ask struct {
	In    []Interval // ascending, disjoint; none for null and NaN tests. Others may hold it too: do not write to it
	Exact bool       // false: values in the intervals may still fail (LIKE behind its prefix)
}

// Asked translates a leaf, without its sign, for keys of encoding e. ok is false where the values cannot be converted exactly or
// the operator is not about keys: then nothing is known.
func Asked(leaf *predicate.Leaf, e Encoding) (ask Ask, ok bool) {
	if !e.Widens(leaf.Column.Type()) || leaf.Column.Path.Repeated() || !valuesFit(leaf) {
		return Ask{}, false
	}
	text := e.Kind == column.String || e.Kind == column.Binary
	switch leaf.Op {
	case predicate.IsNull, predicate.IsNaN:
		return Ask{Exact: true}, true
	case predicate.Equal, predicate.Less, predicate.LessEqual, predicate.Greater, predicate.GreaterEqual:
		return Ask{In: compared(leaf), Exact: true}, len(leaf.Values) == 1
	case predicate.In:
		return Ask{In: leaf.Once(points).([]Interval), Exact: true}, true
	case predicate.StartsWith:
		if !text || len(leaf.Values) != 1 {
			return Ask{}, false
		}
		return Ask{In: []Interval{PrefixInterval([]byte(leaf.Values[0].S))}, Exact: true}, true
	case predicate.Like:
		if !text || leaf.Pattern == nil {
			return Ask{}, false
		}
		prefix, _ := leaf.Pattern.Prefix()
		return Ask{In: []Interval{PrefixInterval([]byte(prefix))}}, true
	case predicate.ILike, predicate.Match:
		if !text || leaf.Pattern == nil && leaf.Regex == nil {
			return Ask{}, false
		}
		return Ask{In: []Interval{{NoHi: true}}}, true // every value is tried
	default:
		return Ask{}, false
	}
}

func valuesFit(leaf *predicate.Leaf) bool {
	t := leaf.Column.Type()
	for _, v := range leaf.Values {
		if v.Kind != t.Kind || t.Kind == column.Decimal && int(v.Scale) != t.Scale {
			return false
		}
	}
	return true
}

func compared(leaf *predicate.Leaf) []Interval {
	if len(leaf.Values) != 1 || leaf.Values[0].IsNaN() {
		return nil
	}
	key := column.AppendKey(nil, leaf.Values[0])
	switch leaf.Op {
	case predicate.Less:
		return []Interval{{Hi: key, HiOpen: true}}
	case predicate.LessEqual:
		return []Interval{{Hi: key}}
	case predicate.Greater:
		return []Interval{{Lo: key, LoOpen: true, NoHi: true}}
	case predicate.GreaterEqual:
		return []Interval{{Lo: key, NoHi: true}}
	default:
		return []Interval{{Lo: key, Hi: key}}
	}
}

func points(values []column.Value) any {
	keys := make([][]byte, 0, len(values))
	for _, v := range values {
		if !v.IsNaN() {
			keys = append(keys, column.AppendKey(nil, v))
		}
	}
	slices.SortFunc(keys, bytes.Compare)
	keys = slices.CompactFunc(keys, bytes.Equal)
	out := make([]Interval, len(keys))
	for i, k := range keys {
		out[i] = Interval{Lo: k, Hi: k}
	}
	return out
}

// PrefixInterval is the keys that start with prefix.
func PrefixInterval(prefix []byte) Interval {
	hi, ok := Successor(prefix)
	return Interval{Lo: prefix, Hi: hi, HiOpen: true, NoHi: !ok}
}

// Successor is the least key above every key that starts with prefix; ok is false when there is none. The result is a byte
// string, not UTF-8: it is only ever compared.
func Successor(prefix []byte) (next []byte, ok bool) {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			next = slices.Clone(prefix[:i+1])
			next[i]++
			return next, true
		}
	}
	return nil, false
}

// Holds reports whether the leaf, without its sign, is true of the value with this key. Unlike the intervals alone it is exact
// for patterns and regular expressions too.
func (a *Ask) Holds(leaf *predicate.Leaf, key []byte) bool {
	i := sort.Search(len(a.In), func(i int) bool { return !a.In[i].Above(key) })
	return i < len(a.In) && !a.In[i].Below(key) && (leaf.Pattern == nil && leaf.Regex == nil || leaf.MatchText(key))
}

// HoldsInOrder is Holds for keys that are asked about in ascending order.
func (a *Ask) HoldsInOrder(leaf *predicate.Leaf) func(key []byte) bool {
	at, started := 0, false
	return func(key []byte) bool {
		if !started {
			at, started = sort.Search(len(a.In), func(i int) bool { return !a.In[i].Above(key) }), true
		}
		for at < len(a.In) && a.In[at].Above(key) {
			at++
		}
		return at < len(a.In) && !a.In[at].Below(key) && (leaf.Pattern == nil && leaf.Regex == nil || leaf.MatchText(key))
	}
}
