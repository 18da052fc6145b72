package sketch

import (
	"cmp"
	"encoding/binary"

	"github.com/apache/datasketches-go/common"
	"github.com/apache/datasketches-go/kll"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
)

// quantiles is a KLL sketch of keys, whichever way they are held.
type quantiles interface {
	add(k *index.Keys, i int)
	merge(o quantiles)
	clone() quantiles
	len() uint64
	// at is the keys at ascending ranks from 0 to 1; none where no value was added.
	at(ranks []float64) ([][]byte, error)
	// below is the share of values under a key, or under and at it.
	below(key []byte, inclusive bool) float64
	bytes() ([]byte, error)
}

func newQuantiles(e index.Encoding) quantiles {
	if e.Narrow() {
		return &keys[uint64]{kll: newKLL(lessNarrow, narrowSerde{}), enc: e, fromKey: narrowKey, toKey: e.AppendNarrow, load: loadNarrow}
	}
	return &keys[string]{kll: newKLL(lessWide, wideSerde{}), enc: e, fromKey: wideKey, toKey: appendWide, load: loadWide}
}

func newKLL[C comparable](less common.CompareFn[C], serde common.ItemSketchSerde[C]) *kll.ItemsSketch[C] {
	s, _ := kll.NewKllItemsSketch(kllK, kllM, less, serde) // fails for other constants alone
	return s
}

func lessNarrow(a, b uint64) bool { return a < b }
func lessWide(a, b string) bool   { return a < b }

func loadNarrow(k *index.Keys, i int) uint64 { return k.Narrow[i] }
func loadWide(k *index.Keys, i int) string   { return wideKey(k.Wide(i)) }

func narrowKey(b []byte) uint64 {
	if len(b) == 1 {
		return uint64(b[0])
	}
	return binary.BigEndian.Uint64(b)
}

func wideKey(b []byte) string                { return string(b[:min(len(b), keyBytes)]) }
func appendWide(dst []byte, s string) []byte { return append(dst, s...) }

// keys is a KLL sketch of keys held as C.
type keys[C comparable] struct {
	kll     *kll.ItemsSketch[C]
	enc     index.Encoding
	fromKey func([]byte) C
	toKey   func([]byte, C) []byte
	load    func(*index.Keys, int) C
}

func (q *keys[C]) add(k *index.Keys, i int) { q.kll.Update(q.load(k, i)) }

func (q *keys[C]) merge(o quantiles) {
	if other, ok := o.(*keys[C]); ok {
		q.kll.Merge(other.kll)
	}
}

// clone is an empty sketch that o was merged into: merging changes the target alone.
func (q *keys[C]) clone() quantiles {
	out := newQuantiles(q.enc)
	out.merge(q)
	return out
}

func (q *keys[C]) len() uint64 { return q.kll.GetN() }

func (q *keys[C]) at(ranks []float64) ([][]byte, error) {
	if q.kll.IsEmpty() {
		return nil, nil
	}
	values, err := q.kll.GetQuantiles(ranks, true)
	if err != nil {
		return nil, fault.Wrap(fault.Corrupt, "KLL sketch", err)
	}
	least, err1 := q.kll.GetMinItem()
	greatest, err2 := q.kll.GetMaxItem()
	if err := cmp.Or(err1, err2); err != nil {
		return nil, fault.Wrap(fault.Corrupt, "KLL sketch", err)
	}
	out := make([][]byte, len(values))
	for i, v := range values {
		switch ranks[i] { // the library's own ends are among the values that it kept
		case 0:
			v = least
		case 1:
			v = greatest
		}
		out[i] = q.toKey(nil, v)
	}
	return out, nil
}

func (q *keys[C]) below(key []byte, inclusive bool) float64 {
	if q.kll.IsEmpty() {
		return 0
	}
	r, err := q.kll.GetRank(q.fromKey(key), inclusive)
	if err != nil {
		return 0
	}
	return r
}

func (q *keys[C]) bytes() ([]byte, error) { return q.kll.ToSlice() }

// parseQuantiles reads a KLL sketch of n values. The library trusts its input, so that everything it would index or allocate by is checked
// before.
func parseQuantiles(e index.Encoding, b []byte, n int64) (q quantiles, err error) {
	if err := checkKLL(b, n); err != nil {
		return nil, err
	}
	q = newQuantiles(e)
	err = guarded("KLL sketch", func() (err error) {
		switch q := q.(type) {
		case *keys[uint64]:
			q.kll, err = kll.NewKllItemsSketchFromSlice(b, lessNarrow, narrowSerde{})
		case *keys[string]:
			q.kll, err = kll.NewKllItemsSketchFromSlice(b, lessWide, wideSerde{})
		}
		return err
	})
	if err == nil && q.len() != uint64(n) {
		err = index.Broken("KLL sketch", "holds %d values, the root says %d", q.len(), n)
	}
	return q, err
}

// checkKLL checks the preamble and the levels: u8 preamble ints, u8 serial version, u8 family, u8 flags, u16 k, u8 m, u8 unused, then, of
// more than one value, u64 n, u16 least k, u8 levels, u8 unused, u32 start per level.
func checkKLL(b []byte, n int64) error {
	r := bytescan.NewReader("KLL sketch", b)
	pre, ver, family := r.U8(), r.U8(), r.U8()
	r.U8()
	k, m := r.U16(), r.U8()
	r.U8()
	form := [2]uint8{2, 1}
	switch {
	case n == 1:
		form = [2]uint8{2, 2}
	case n > 1:
		form = [2]uint8{5, 1}
	}
	if r.Err() == nil && ([2]uint8{pre, ver} != form || family != 15 || k != kllK || m != kllM) {
		r.Fail("preamble %d, %d, %d, %d, %d is not that of %d values", pre, ver, family, k, m, n)
	}
	if n < 2 || r.Err() != nil {
		return r.Err()
	}
	count, least := r.U64(), r.U16()
	levels := int(r.U8())
	r.U8()
	if r.Err() == nil && (count != uint64(n) || least != kllK || levels < 1 || levels > maxLevels) {
		r.Fail("%d values in %d levels, the root says %d values", count, levels, n)
	}
	if r.Err() != nil {
		return r.Err()
	}
	starts := make([]uint32, 0, levels+1)
	for range levels {
		starts = append(starts, r.U32())
	}
	return checkLevels(r, append(starts, capacity(levels)), n)
}

// checkLevels checks that the levels ascend and weigh n: a value of level i stands for 2^i values.
func checkLevels(r *bytescan.Reader, starts []uint32, n int64) error {
	weight := uint64(0)
	for i := range len(starts) - 1 {
		if starts[i] > starts[i+1] {
			r.Fail("level %d starts at %d, the next at %d", i, starts[i], starts[i+1])
			return r.Err()
		}
		weight += uint64(starts[i+1]-starts[i]) << i
	}
	if r.Err() == nil && weight != uint64(n) {
		r.Fail("its levels weigh %d, not %d", weight, n)
	}
	return r.Err()
}

// capacity is the items of a sketch of so many levels (KLL's k·(2/3)^depth, at least m, in the rounding of the DataSketches library).
func capacity(levels int) uint32 {
	total := uint32(0)
	for i := range levels {
		total += levelCapacity(levels - i - 1)
	}
	return total
}

func levelCapacity(depth int) uint32 {
	if depth <= 30 {
		return max(kllM, roundThirds(kllK, depth))
	}
	half := depth / 2
	return max(kllM, roundThirds(uint64(roundThirds(kllK, half)), depth-half))
}

func roundThirds(k uint64, depth int) uint32 {
	three := uint64(1)
	for range depth {
		three *= 3
	}
	return uint32((k<<(depth+1)/three + 1) >> 1)
}

// guarded turns what the library panics of into a fault: it parses bytes that somebody else may have written.
func guarded(what string, work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = index.Broken(what, "cannot be parsed: %v", p)
		}
	}()
	if err := work(); err != nil {
		return fault.Wrap(fault.Corrupt, what, err)
	}
	return nil
}
