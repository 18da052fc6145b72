package index

import (
	"encoding/binary"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// Keys turns vectors into keys, reusing its memory. Load, then ask for each value: Null first, then NaN, then its key.
type Keys struct {
	Encoding Encoding
	Len      int
	// Narrow holds the keys of a narrow encoding; the slots of nulls are unspecified.
	Narrow []uint64

	vec     *column.Vector
	wide    []byte // decimals
	allNull bool
	floats  bool
}

// NewKeys makes keys of encoding e.
func NewKeys(e Encoding) *Keys {
	return &Keys{Encoding: e, floats: e.Kind.Floating()}
}

// nanKey is column.AppendKey's one key of every NaN.
const nanKey = 0xfff8000000000000

// Load takes a vector of the encoding's type or of one that it was promoted from. The vector must stay valid while the keys
// are used.
func (k *Keys) Load(v *column.Vector) error {
	from, err := EncodingOf(v.Type)
	k.vec, k.Len, k.allNull = v, v.Len, v.Type.Kind == column.Unknown
	switch {
	case k.allNull:
		return nil
	case err != nil:
		return err
	case !from.Widens(k.typ()) || v.Dict != nil && (v.Dict.Dict != nil || v.Dict.Type.Kind != v.Type.Kind):
		return fault.New(fault.Unsupported, v.Type.String(), "vector does not hold the %s values of the index", k.Encoding.Kind)
	case k.Encoding.Narrow():
		k.loadNarrow()
	case k.Encoding.Kind == column.Decimal:
		k.loadDecimals()
	}
	return nil
}

func (k *Keys) typ() column.Type {
	e := k.Encoding
	return column.Type{Kind: e.Kind, Width: int(e.Width), Scale: int(e.Scale)}
}

func (k *Keys) loadNarrow() {
	v := k.vec
	if cap(k.Narrow) < v.Len {
		k.Narrow = make([]uint64, v.Len)
	}
	k.Narrow = k.Narrow[:v.Len]
	src := v
	if v.Dict != nil {
		src = v.Dict
	}
	switch src.Type.Kind {
	case column.Bool:
		for i := range k.Narrow {
			k.Narrow[i] = 0
			if column.Bit(src.Fixed, slot(v, i)) {
				k.Narrow[i] = 1
			}
		}
	case column.Int, column.Date:
		fill(k.Narrow, src.Int32s(), v.Idx, func(x int32) uint64 { return uint64(int64(x)) ^ 1<<63 })
	case column.Float:
		fill(k.Narrow, src.Float32s(), v.Idx, func(x float32) uint64 { return column.FloatKey(float64(x)) })
	case column.Double:
		fill(k.Narrow, src.Float64s(), v.Idx, column.FloatKey)
	default:
		fill(k.Narrow, src.Int64s(), v.Idx, func(x int64) uint64 { return uint64(x) ^ 1<<63 })
	}
}

func fill[T any](dst []uint64, src []T, idx []uint32, key func(T) uint64) {
	if idx == nil {
		for i := range dst {
			dst[i] = key(src[i])
		}
		return
	}
	for i := range dst {
		dst[i] = key(src[idx[i]])
	}
}

func (k *Keys) loadDecimals() {
	k.wide = k.wide[:0]
	for i := range k.Len {
		b := k.vec.Raw(i)
		k.wide = binary.BigEndian.AppendUint64(k.wide, binary.LittleEndian.Uint64(b[8:])^1<<63)
		k.wide = binary.BigEndian.AppendUint64(k.wide, binary.LittleEndian.Uint64(b))
	}
}

// Null reports whether value i is null.
func (k *Keys) Null(i int) bool {
	if k.allNull || k.vec.Null(i) {
		return true
	}
	d := k.vec.Dict
	return d != nil && d.Valid != nil && d.Null(int(k.vec.Idx[i]))
}

// NaN reports whether value i, which is not null, is NaN.
func (k *Keys) NaN(i int) bool { return k.floats && k.Narrow[i] == nanKey }

// Wide is the key of value i of an encoding that is not narrow: a view that the next Load ends.
func (k *Keys) Wide(i int) []byte {
	if k.Encoding.Kind == column.Decimal {
		return k.wide[i*16 : i*16+16]
	}
	return k.vec.Raw(i)
}

func slot(v *column.Vector, i int) int {
	if v.Idx != nil {
		return int(v.Idx[i])
	}
	return i
}
