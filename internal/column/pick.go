package column

import "bytes"

// Pick is a copy of some rows of the batch, by ascending index.
func (b *Batch) Pick(rows []uint32) *Batch {
	out := &Batch{Rows: len(rows), Cols: make([]*Vector, len(b.Cols))}
	if b.Pos != nil {
		out.Pos = pick(b.Pos, rows)
	} else {
		out.Pos = make([]uint32, len(rows))
		for i, r := range rows {
			out.Pos[i] = b.Start + r
		}
	}
	for i, v := range b.Cols {
		out.Cols[i] = v.Pick(rows)
	}
	return out
}

// Run is neighbouring rows of a batch, To not among them.
type Run struct{ From, To uint32 }

// PickRuns is Pick of long runs: values of fixed size without nulls are copied run by run.
func (b *Batch) PickRuns(runs []Run) *Batch {
	n := 0
	for _, r := range runs {
		n += int(r.To - r.From)
	}
	out := &Batch{Rows: n, Cols: make([]*Vector, len(b.Cols)), Pos: make([]uint32, 0, n)}
	var rows []uint32
	for _, r := range runs {
		for i := r.From; i < r.To; i++ {
			out.Pos = append(out.Pos, b.Position(int(i)))
		}
	}
	for i, v := range b.Cols {
		if k := v.Type.Kind; v.Dict == nil && v.Valid == nil && k != Bool && v.Type.Size() > 0 {
			out.Cols[i] = v.pickRuns(runs, n)
			continue
		}
		if rows == nil {
			rows = make([]uint32, 0, n)
			for _, r := range runs {
				for i := r.From; i < r.To; i++ {
					rows = append(rows, i)
				}
			}
		}
		out.Cols[i] = v.Pick(rows)
	}
	return out
}

// pickRuns copies n values of fixed size: all between the first and the last, closed up then, so that no memory is cleared first.
func (v *Vector) pickRuns(runs []Run, n int) *Vector {
	out := &Vector{Type: v.Type, Len: n}
	if n == 0 {
		return out
	}
	size, first := v.Type.Size(), int(runs[0].From)
	all := bytes.Clone(v.Fixed[first*size : int(runs[len(runs)-1].To)*size])
	at := 0
	for _, r := range runs {
		at += copy(all[at:], all[(int(r.From)-first)*size:(int(r.To)-first)*size])
	}
	out.Fixed = all[:at:at]
	return out
}

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
		size := v.Type.Size()
		out.Fixed = make([]byte, 0, len(rows)*size)
		for _, r := range rows {
			out.Fixed = append(out.Fixed, v.Fixed[int(r)*size:int(r)*size+size]...)
		}
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
