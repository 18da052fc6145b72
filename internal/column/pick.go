package column

// Pick is a deep copy of some values, by index. A dictionary with more values than are picked is flattened.
func (v *Vector) Pick(rows []uint32) *Vector {
	out := &Vector{Type: v.Type, Len: len(rows), Valid: v.pickValid(rows)}
	switch k := v.Type.Kind; {
	case k == Unknown:
	case v.Dict != nil:
		out.Idx = make([]uint32, len(rows))
		for i, r := range rows {
			out.Idx[i] = v.Idx[r]
		}
		if v.Dict.Len > len(rows) {
			valid := out.Valid
			out.Dict = v.Dict
			out = out.Flatten()
			out.Valid = valid
			break
		}
		out.Dict = v.Dict.Clone()
	case k == Struct:
		for _, kid := range v.Kids {
			out.Kids = append(out.Kids, kid.Pick(rows))
		}
	case k == List || k == Map:
		v.pickElements(out, rows)
	case k == Bool:
		out.Fixed = make([]byte, (len(rows)+7)/8)
		for i, r := range rows {
			if Bit(v.Fixed, int(r)) {
				out.Fixed[i>>3] |= 1 << (i & 7)
			}
		}
	case k.VarLen():
		v.pickBytes(out, rows)
	case v.Type.Size() == 8:
		out.Fixed = BytesOf(pick(v.Int64s(), rows))
	case v.Type.Size() == 4:
		out.Fixed = BytesOf(pick(v.Int32s(), rows))
	default:
		out.Fixed = v.pickFixed(rows)
	}
	return out
}

func (v *Vector) pickFixed(rows []uint32) []byte {
	size := v.Type.Size()
	out := make([]byte, 0, len(rows)*size)
	for _, r := range rows {
		out = append(out, v.Fixed[int(r)*size:int(r)*size+size]...)
	}
	return out
}

func pick[T any](from []T, rows []uint32) []T {
	out := make([]T, len(rows))
	for i, r := range rows {
		out[i] = from[r]
	}
	return out
}

func (v *Vector) pickValid(rows []uint32) []uint64 {
	if v.Valid == nil {
		return nil
	}
	out := make([]uint64, (len(rows)+63)/64)
	for i, r := range rows {
		out[i>>6] |= v.Valid[r>>6] >> (r & 63) & 1 << (i & 63)
	}
	return out
}

func (v *Vector) pickBytes(out *Vector, rows []uint32) {
	total := 0
	for _, r := range rows {
		total += int(v.Off[r+1] - v.Off[r])
	}
	out.Off, out.Bytes = make([]uint32, 1, len(rows)+1), make([]byte, 0, total)
	for _, r := range rows {
		out.Bytes = append(out.Bytes, v.Bytes[v.Off[r]:v.Off[r+1]]...)
		out.Off = append(out.Off, uint32(len(out.Bytes)))
	}
}

func (v *Vector) pickElements(out *Vector, rows []uint32) {
	if v.Off == nil { // nothing but nulls
		out.Off = make([]uint32, len(rows)+1)
		return
	}
	out.Off = make([]uint32, 1, len(rows)+1)
	var elements []uint32
	for _, r := range rows {
		for e := v.Off[r]; e < v.Off[r+1]; e++ {
			elements = append(elements, e)
		}
		out.Off = append(out.Off, uint32(len(elements)))
	}
	for _, kid := range v.Kids {
		out.Kids = append(out.Kids, kid.Pick(elements))
	}
}
