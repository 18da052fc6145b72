package column

import "encoding/binary"

// Builder grows a Vector of a primitive type value by value. It serves tests, defaults and small results; decoders fill
// vectors directly.
type Builder struct {
	v     Vector
	nulls bool
}

// NewBuilder starts an empty vector of a primitive type.
func NewBuilder(t Type) *Builder {
	b := &Builder{v: Vector{Type: t}}
	if t.Kind.VarLen() {
		b.v.Off = []uint32{0}
	}
	return b
}

// Append adds a value of the builder's kind.
func (b *Builder) Append(x Value) {
	b.grow(true)
	v := &b.v
	switch t := v.Type; {
	case t.Kind == Bool:
		if x.Lo != 0 {
			v.Fixed[(v.Len-1)>>3] |= 1 << ((v.Len - 1) & 7)
		}
	case t.Kind.VarLen():
		v.Bytes = append(v.Bytes, x.S...)
		v.Off = append(v.Off, uint32(len(v.Bytes)))
	case t.Kind == Decimal:
		v.Fixed = binary.LittleEndian.AppendUint64(v.Fixed, x.Lo)
		v.Fixed = binary.LittleEndian.AppendUint64(v.Fixed, uint64(x.Hi))
	case t.Kind == UUID || t.Kind == Fixed:
		v.Fixed = append(v.Fixed, x.S...)
	case t.Size() == 4:
		v.Fixed = binary.LittleEndian.AppendUint32(v.Fixed, uint32(x.Lo))
	case t.Size() == 8:
		v.Fixed = binary.LittleEndian.AppendUint64(v.Fixed, x.Lo)
	}
}

// AppendNull adds a null.
func (b *Builder) AppendNull() {
	b.grow(false)
	v := &b.v
	switch {
	case v.Type.Kind.VarLen():
		v.Off = append(v.Off, uint32(len(v.Bytes)))
	case v.Type.Kind != Bool:
		v.Fixed = append(v.Fixed, make([]byte, v.Type.Size())...)
	}
}

func (b *Builder) grow(valid bool) {
	v := &b.v
	i := v.Len
	v.Len++
	if v.Type.Kind == Bool && i&7 == 0 {
		v.Fixed = append(v.Fixed, 0)
	}
	if i&63 == 0 {
		v.Valid = append(v.Valid, 0)
	}
	if valid {
		v.Valid[i>>6] |= 1 << (i & 63)
	} else {
		b.nulls = true
	}
}

// Finish returns the vector; the builder must not be used again.
func (b *Builder) Finish() *Vector {
	if !b.nulls {
		b.v.Valid = nil
	}
	return &b.v
}

// Constant is a vector of n times the same value; a nil value gives n nulls.
func Constant(t Type, x *Value, n int) *Vector {
	b := NewBuilder(t)
	if x == nil || t.Kind == Unknown {
		b.AppendNull()
	} else {
		b.Append(*x)
	}
	dict := b.Finish()
	v := &Vector{Type: t, Len: n, Dict: dict, Idx: make([]uint32, n)}
	if dict.Valid != nil {
		v.Valid = make([]uint64, (n+63)/64)
	}
	return v
}
