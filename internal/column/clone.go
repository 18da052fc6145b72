package column

import (
	"bytes"
	"slices"
)

// Clone is a copy of the batch that stays valid. Vectors over a dictionary with more values than rows are flattened.
func (b *Batch) Clone() *Batch {
	c := &Batch{Start: b.Start, Pos: slices.Clone(b.Pos), Rows: b.Rows, Cols: make([]*Vector, len(b.Cols))}
	for i, v := range b.Cols {
		c.Cols[i] = v.Clone()
	}
	return c
}

// MemorySize is the bytes that the batch's values take.
func (b *Batch) MemorySize() int64 {
	n := int64(4 * len(b.Pos))
	for _, v := range b.Cols {
		n += v.MemorySize()
	}
	return n
}

// MemorySize is the bytes that the vector's values take, its dictionary's too.
func (v *Vector) MemorySize() int64 {
	n := int64(8*len(v.Valid) + len(v.Fixed) + 4*len(v.Off) + len(v.Bytes) + 4*len(v.Idx))
	for _, k := range v.Kids {
		n += k.MemorySize()
	}
	if v.Dict != nil {
		n += v.Dict.MemorySize()
	}
	return n
}

// Clone is a deep copy of the vector.
func (v *Vector) Clone() *Vector {
	c := &Vector{
		Type: v.Type, Len: v.Len, Valid: slices.Clone(v.Valid), Fixed: bytes.Clone(v.Fixed), Off: slices.Clone(v.Off),
		Bytes: bytes.Clone(v.Bytes), Idx: slices.Clone(v.Idx),
	}
	for _, k := range v.Kids {
		c.Kids = append(c.Kids, k.Clone())
	}
	switch {
	case v.Dict == nil:
	case v.Dict.Len <= v.Len:
		c.Dict = v.Dict.Clone()
	default:
		c = v.Flatten()
		c.Valid = slices.Clone(v.Valid)
	}
	return c
}

// Flatten is the vector without a dictionary; the copy shares Valid. A vector without one is returned as it is.
func (v *Vector) Flatten() *Vector {
	if v.Dict == nil {
		return v
	}
	c := &Vector{Type: v.Type, Len: v.Len, Valid: v.Valid}
	d := v.Dict
	switch size := v.Type.Size(); {
	case v.Type.Kind == Bool:
		c.Fixed = make([]byte, (v.Len+7)/8)
		for i, x := range v.Idx[:v.Len] {
			if Bit(d.Fixed, int(x)) {
				c.Fixed[i>>3] |= 1 << (i & 7)
			}
		}
	case v.Type.Kind.VarLen():
		c.Off = make([]uint32, 1, v.Len+1)
		for i, x := range v.Idx[:v.Len] {
			if !v.Null(i) {
				c.Bytes = append(c.Bytes, d.Bytes[d.Off[x]:d.Off[x+1]]...)
			}
			c.Off = append(c.Off, uint32(len(c.Bytes)))
		}
	default:
		c.Fixed = make([]byte, 0, v.Len*size)
		for _, x := range v.Idx[:v.Len] {
			c.Fixed = append(c.Fixed, d.Fixed[int(x)*size:int(x)*size+size]...)
		}
	}
	return c
}
