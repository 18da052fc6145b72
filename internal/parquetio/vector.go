package parquetio

import (
	"github.com/skomerdb/skomer/internal/column"
)

// keepDictionary says whether a batch of n rows keeps its dictionary: a filter then runs once per distinct value, which pays
// while there are no more of them than rows.
func keepDictionary(dict *column.Vector, n int) bool { return dict.Len <= n }

// vector makes the gathered slots a vector of n values. It shares the accumulator's buffers.
func (a *accumulator) vector(n int) *column.Vector {
	v := &column.Vector{Type: a.conv.target, Len: n}
	if a.conv.null {
		return nullVector(a.conv.target, n)
	}
	if a.nulls > 0 {
		v.Valid = a.valid
	}
	if a.dict != nil && keepDictionary(a.dict, n) {
		v.Dict, v.Idx = a.dict, a.idx
		return v
	}
	if a.dict != nil {
		v.Dict, v.Idx = a.dict, a.idx
		return flatten(v, a)
	}
	a.fill(v)
	return v
}

// flatten replaces a dictionary vector by its plain values.
func flatten(v *column.Vector, a *accumulator) *column.Vector {
	dict, idx := v.Dict, v.Idx
	if err := a.gather(dict, idx); err != nil {
		return v // past 4 GiB of bytes: the dictionary stays
	}
	v.Dict, v.Idx = nil, nil
	a.fill(v)
	return v
}

func (a *accumulator) fill(v *column.Vector) {
	switch {
	case a.conv.target.Kind == column.Bool:
		v.Fixed = packBools(a.fixed)
	case a.store() == 0:
		v.Off, v.Bytes = a.off, a.bytes
	default:
		v.Fixed = a.fixed
	}
}

func packBools(bools []byte) []byte {
	out := make([]byte, (len(bools)+7)/8)
	for i, b := range bools {
		out[i>>3] |= b << (i & 7)
	}
	return out
}

// nullVector is n nulls of a type, nested types included.
func nullVector(t column.Type, n int) *column.Vector {
	v := &column.Vector{Type: t, Len: n, Valid: make([]uint64, (n+63)/64)}
	switch {
	case t.Kind == column.Unknown:
	case t.Kind == column.Struct:
		for _, f := range t.Fields {
			v.Kids = append(v.Kids, nullVector(f.Type, n))
		}
	case t.Kind.Nested():
		v.Off = make([]uint32, n+1)
		for _, f := range t.Fields {
			v.Kids = append(v.Kids, emptyVector(f.Type))
		}
	case t.Kind == column.Bool:
		v.Fixed = make([]byte, (n+7)/8)
	case t.Kind.VarLen():
		v.Off = make([]uint32, n+1)
	default:
		v.Fixed = make([]byte, n*t.Size())
	}
	return v
}

func emptyVector(t column.Type) *column.Vector {
	v := nullVector(t, 0)
	v.Valid = nil
	return v
}

// defaultVector is n times the field's initial default, or n nulls.
func defaultVector(f column.Field, n int) *column.Vector {
	if f.Initial != nil && !f.Type.Kind.Nested() && f.Type.Kind != column.Unknown {
		return column.Constant(f.Type, f.Initial, n)
	}
	if f.Type.Kind == column.Struct && f.Initial != nil {
		return defaultStruct(f, n)
	}
	return nullVector(f.Type, n)
}

// defaultStruct is a struct whose default is the empty one: its fields bring their own defaults (spec v3, "Default values").
func defaultStruct(f column.Field, n int) *column.Vector {
	v := &column.Vector{Type: f.Type, Len: n}
	for _, k := range f.Type.Fields {
		v.Kids = append(v.Kids, defaultVector(k, n))
	}
	return v
}
