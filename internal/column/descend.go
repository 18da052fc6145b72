package column

// Descend is the values of a field inside structs, one for each value of v: null where a struct on the way is. fields is the path
// from a field of v down to the field. Nil: v does not hold such structs.
func (v *Vector) Descend(fields Path) *Vector {
	for _, f := range fields {
		if v.Type.Kind == Unknown {
			return v
		}
		if v.Type.Kind != Struct || v.Dict != nil {
			return nil
		}
		kid := -1
		for i, have := range v.Type.Fields {
			if have.ID == f.ID && i < len(v.Kids) {
				kid = i
			}
		}
		if kid < 0 {
			return nil
		}
		v = v.Kids[kid].within(v.Valid, v.Len)
	}
	return v
}

// within is v with the nulls of valid added.
func (v *Vector) within(valid []uint64, n int) *Vector {
	if valid == nil || v.Type.Kind == Unknown {
		return v
	}
	out := *v
	if v.Valid == nil {
		out.Valid = valid
		return &out
	}
	out.Valid = make([]uint64, (n+63)/64)
	for w := range out.Valid {
		out.Valid[w] = valid[w] & v.Valid[w]
	}
	return &out
}
