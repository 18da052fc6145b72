package sketch

import (
	"errors"
	"math"

	"github.com/apache/datasketches-go/hll"
	"github.com/apache/datasketches-go/theta"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
)

// NewBuilder starts the three sketches. It holds them alone: some 16 bytes × k, and 100 KiB.
func (Kind) NewBuilder(spec index.Spec, _ index.Budget) (index.Builder, error) {
	e, err := index.OneColumnOrElement(name, spec.Columns)
	if err != nil {
		return nil, err
	}
	lgK, err := lgKOf(spec.Params)
	if err != nil {
		return nil, err
	}
	b := &builder{
		header: header{enc: e, ofList: index.OfList(spec.Columns[0]), lgK: lgK}, count: index.RowCount{Want: spec.Rows},
		elements: index.NewElements(e, spec.Columns[0]), order: newQuantiles(e),
	}
	if b.theta, err = theta.NewQuickSelectUpdateSketch(theta.WithUpdateSketchLgK(lgK), theta.WithUpdateSketchSeed(seed)); err != nil {
		return nil, err
	}
	b.hll, err = hll.NewHllSketch(hllLgK, hll.TgtHllTypeHll8)
	return b, err
}

type builder struct {
	header
	count    index.RowCount
	elements *index.Elements // of lists; else only its keys are used
	theta    *theta.QuickSelectUpdateSketch
	hll      hll.HllSketch
	order    quantiles
	seen     []uint64 // per entry of the vector's dictionary: it was hashed
	buf      []byte   // the serialised value at hand
}

func (b *builder) Add(cols []*column.Vector) error {
	v := cols[0]
	if err := b.count.Add(v.Len); err != nil {
		return err
	}
	k := b.elements.Keys
	if !b.ofList {
		if err := k.Load(v); err != nil {
			return err
		}
		b.seen = unseen(b.seen, v)
		return b.take(k, v, 0, v.Len)
	}
	if err := b.elements.Load(v); err != nil {
		return err
	}
	for i := range v.Len {
		from, to, _ := b.elements.Row(i)
		if err := b.take(k, nil, from, to); err != nil {
			return err
		}
	}
	return nil
}

// unseen is a cleared bit for each entry of the vector's dictionary.
func unseen(bits []uint64, v *column.Vector) []uint64 {
	if v.Dict == nil {
		return bits
	}
	n := (v.Dict.Len + 63) / 64
	if cap(bits) < n {
		bits = make([]uint64, n)
	}
	bits = bits[:n]
	clear(bits)
	return bits
}

// take adds the loaded values from to to; v, if not nil, is the vector that they were loaded from.
func (b *builder) take(k *index.Keys, v *column.Vector, from, to int) error {
	for i := from; i < to; i++ {
		switch {
		case k.Null(i):
			b.Nulls++
			continue
		case k.NaN(i):
			b.NaNs++
			continue
		}
		b.Values++
		b.order.add(k, i)
		if v != nil && v.Dict != nil {
			at := v.Idx[i]
			again := b.seen[at>>6]>>(at&63)&1 == 1
			b.seen[at>>6] |= 1 << (at & 63)
			if again && k.Encoding.Size() > 0 {
				continue
			}
		}
		if err := b.hash(k, i); err != nil {
			return err
		}
	}
	return nil
}

// hash feeds one value to theta and HLL.
func (b *builder) hash(k *index.Keys, i int) error {
	b.buf = appendSingle(b.buf[:0], k, i)
	if len(b.buf) == 0 {
		b.Empty++
		return nil
	}
	switch err := b.theta.UpdateBytes(b.buf); {
	case err == nil, errors.Is(err, theta.ErrDuplicateKey), errors.Is(err, theta.ErrHashExceedsTheta), errors.Is(err, theta.ErrZeroHashValue):
	default:
		return err
	}
	return b.hll.UpdateSlice(b.buf)
}

// appendSingle appends value i in Iceberg's binary single-value serialisation (table specification, appendix D).
func appendSingle(dst []byte, k *index.Keys, i int) []byte {
	switch kind := k.Encoding.Kind; kind {
	case column.Bool:
		return append(dst, byte(k.Narrow[i]))
	case column.Int, column.Date:
		x := uint32(k.Narrow[i])
		return append(dst, byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
	case column.Float:
		x := math.Float32bits(float32(math.Float64frombits(floatBits(k.Narrow[i]))))
		return append(dst, byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
	case column.Double:
		return append64(dst, floatBits(k.Narrow[i]))
	case column.Decimal:
		return appendDecimal(dst, k.Wide(i))
	case column.String, column.Binary, column.Fixed, column.UUID:
		return append(dst, k.Wide(i)...)
	default:
		return append64(dst, k.Narrow[i]^1<<63)
	}
}

func append64(dst []byte, x uint64) []byte {
	return append(dst, byte(x), byte(x>>8), byte(x>>16), byte(x>>24), byte(x>>32), byte(x>>40), byte(x>>48), byte(x>>56))
}

// floatBits is the inverse of column.FloatKey.
func floatBits(key uint64) uint64 {
	if key>>63 == 1 {
		return key ^ 1<<63
	}
	return ^key
}

// appendDecimal is the unscaled value of a decimal key, big-endian two's complement of the fewest bytes.
func appendDecimal(dst, key []byte) []byte {
	first := key[0] ^ 0x80
	at := 0
	for ; at < len(key)-1; at++ {
		b, next := key[at], key[at+1]
		if at == 0 {
			b = first
		}
		if (b != 0 || next >= 0x80) && (b != 0xff || next < 0x80) {
			break
		}
	}
	if at == 0 {
		return append(append(dst, first), key[1:]...)
	}
	return append(dst, key[at:]...)
}

func (b *builder) Finish(body index.Sink) ([]byte, string, error) {
	if err := b.count.Done(); err != nil {
		return nil, "", err
	}
	b.Rows = int64(b.count.Got)
	s := Sketch{header: b.header, theta: b.theta.Compact(true), hll: b.hll, order: b.order}
	root, err := s.write(body)
	return root, "", err
}

func (b *builder) Close() error {
	b.theta, b.hll, b.order, b.elements = nil, nil, nil, nil
	return nil
}
