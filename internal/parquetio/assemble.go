package parquetio

import (
	"math"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// Nested vectors are rebuilt from levels as in Dremel (Melnik et al., 2010). An entry is one element of a leaf's level arrays.
// At a field below rep repeated ancestors, the innermost of which has elements where the definition level reaches slot, an
// entry is a value slot of the field if its repetition level is at most rep and its definition level at least slot.

// place is where in the level arrays a field's slots are.
type place struct{ rep, slot uint8 }

var errRagged = fault.New(fault.Corrupt, "", "leaves of one column disagree about its rows or elements")

// assemble builds the vector of a plan from the accumulators of the column's readers.
func assemble(p *plan, at place, accs []*accumulator) (*column.Vector, error) {
	switch p.shape {
	case shapeLeaf:
		return accs[p.reader].place(at, p.def), nil
	case shapeStruct:
		return assembleStruct(p, at, accs)
	case shapeList:
		return assembleList(p, at, accs)
	case shapeVariant:
		return assembleVariant(p, at, accs)
	default:
		return nil, fault.New(fault.Corrupt, "", "default without a length")
	}
}

// place makes a leaf's vector: its non-null values spread over its slots.
func (a *accumulator) place(at place, top uint8) *column.Vector {
	n, k := 0, a.stored
	a.slots, a.valid = 0, a.valid[:0]
	a.room(len(a.def))
	for _, d := range a.def {
		if d < at.slot {
			continue
		}
		if d == top {
			a.valid[n>>6] |= 1 << (n & 63)
		}
		n++
	}
	a.slots, a.nulls = n, n-k
	if k < n && !a.conv.null {
		a.spread(0, n, k)
	}
	return a.vector(n)
}

// present marks which slots of a field are non-null, where the definition level reaches def.
func (a *accumulator) present(at place, def uint8) (valid []uint64, n int) {
	nulls := 0
	for i, d := range a.def {
		if d < at.slot || len(a.rep) > 0 && a.rep[i] > at.rep {
			continue
		}
		if n&63 == 0 {
			valid = append(valid, 0)
		}
		if d >= def {
			valid[n>>6] |= 1 << (n & 63)
		} else {
			nulls++
		}
		n++
	}
	if nulls == 0 {
		valid = nil
	}
	return valid, n
}

// lists rebuilds the offsets and nulls of a list from its levels, and counts its elements.
func (a *accumulator) lists(at place, p *plan) (v *column.Vector, n int) {
	v = &column.Vector{Type: p.field.Type, Off: make([]uint32, 0, len(a.def)+1), Valid: make([]uint64, (len(a.def)+63)/64)}
	nulls := 0
	for i, d := range a.def {
		r := a.rep[i]
		if d < at.slot || r > at.rep+1 {
			continue
		}
		if r <= at.rep {
			if row := len(v.Off); d >= p.def {
				v.Valid[row>>6] |= 1 << (row & 63)
			} else {
				nulls++
			}
			v.Off = append(v.Off, uint32(n))
		}
		if d >= p.elem {
			n++
		}
	}
	v.Len = len(v.Off)
	v.Off = append(v.Off, uint32(n))
	if nulls == 0 {
		v.Valid = nil
	}
	return v, n
}

func assembleStruct(p *plan, at place, accs []*accumulator) (*column.Vector, error) {
	v := &column.Vector{Type: p.field.Type}
	v.Valid, v.Len = accs[p.reader].present(at, p.def)
	for _, k := range p.kids {
		kid, err := assembleKid(k, at, accs, v.Len)
		if err != nil {
			return nil, err
		}
		v.Kids = append(v.Kids, kid)
	}
	return v, nil
}

// assembleKid builds a child that must have n slots.
func assembleKid(k *plan, at place, accs []*accumulator, n int) (*column.Vector, error) {
	if k.shape == shapeDefault {
		return defaultVector(k.field, n), nil
	}
	v, err := assemble(k, at, accs)
	if err != nil {
		return nil, err
	}
	if v.Len != n {
		return nil, errRagged
	}
	return v, nil
}

func assembleList(p *plan, at place, accs []*accumulator) (*column.Vector, error) {
	v, n := accs[p.reader].lists(at, p)
	if n > math.MaxUint32 || len(v.Off) != v.Len+1 {
		return nil, errRagged
	}
	inside := place{rep: at.rep + 1, slot: p.elem}
	for _, k := range p.kids {
		kid, err := assembleKid(k, inside, accs, n)
		if err != nil {
			return nil, err
		}
		v.Kids = append(v.Kids, kid)
	}
	return v, nil
}

// assembleVariant joins each value's metadata and value bytes.
func assembleVariant(p *plan, at place, accs []*accumulator) (*column.Vector, error) {
	valid, n := accs[p.reader].present(at, p.def)
	v := &column.Vector{Type: p.field.Type, Len: n, Valid: valid, Off: make([]uint32, 1, n+1)}
	var parts []*column.Vector
	for _, k := range p.kids {
		part, err := assembleKid(k, at, accs, n)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	for i := range n {
		for _, part := range parts {
			if !part.Null(i) && !v.Null(i) {
				v.Bytes = append(v.Bytes, part.Raw(i)...)
			}
		}
		if len(v.Bytes) > math.MaxUint32 {
			return nil, errBatchBytes
		}
		v.Off = append(v.Off, uint32(len(v.Bytes)))
	}
	return v, nil
}

// columnVector is a bound column's vector of n rows.
func (c *bound) vector(accs []*accumulator, n int) (*column.Vector, error) {
	switch {
	case c.flat:
		return accs[0].vector(n), nil
	case c.plan.shape == shapeDefault && c.plan.reader < 0:
		return defaultVector(c.plan.field, n), nil
	case c.plan.shape == shapeDefault:
		valid, rows := accs[c.plan.reader].present(place{}, c.plan.def)
		v := defaultVector(c.plan.field, n)
		if v.Valid == nil {
			v.Valid = valid
		}
		if rows != n {
			return nil, errRagged
		}
		return v, nil
	default:
		return assembleKid(c.plan, place{}, accs, n)
	}
}
