package parquetio

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// accumulator gathers the values of one leaf for one batch, in the table's type. Its buffers live on between batches.
//
// In flat mode it holds a slot a row, null slots included, and valid says which. In level mode it holds the non-null values
// only, and def and rep say where they belong.
type accumulator struct {
	conv   *conversion
	slots  int
	nulls  int
	valid  []uint64
	stored int // values in the stores below, null slots of flat mode included
	fixed  []byte
	off    []uint32
	bytes  []byte
	idx    []uint32
	dict   *column.Vector // set: idx is in use, the other stores are empty
	def    []uint8
	rep    []uint8
}

func (a *accumulator) reset() {
	a.slots, a.nulls, a.stored, a.dict = 0, 0, 0, nil
	a.valid, a.fixed, a.bytes, a.idx = a.valid[:0], a.fixed[:0], a.bytes[:0], a.idx[:0]
	a.off = append(a.off[:0], 0)
	a.def, a.rep = a.def[:0], a.rep[:0]
}

// size is the bytes held for the batch.
func (a *accumulator) size() int {
	return len(a.fixed) + len(a.bytes) + 4*len(a.off) + 4*len(a.idx) + len(a.def) + len(a.rep)
}

// store is the bytes of one value in fixed; 0 for values in off and bytes. A Bool takes a byte until the vector is made.
func (a *accumulator) store() int {
	if a.conv.target.Kind == column.Bool {
		return 1
	}
	return a.conv.target.Size()
}

// take appends the next k values of v. dict is the chunk's dictionary, if it has one.
func (a *accumulator) take(v *values, k int, dict *column.Vector) error {
	if v.form == formIndexes && a.stored == 0 && dict != nil && dict.Len > 0 {
		a.dict = dict
	}
	if k == 0 {
		return nil
	}
	if v.form == formIndexes {
		return a.takeIndexes(v, k, dict)
	}
	if err := a.undict(); err != nil {
		return err
	}
	a.stored += k
	switch {
	case a.conv.null:
		return v.skip(k)
	case a.conv.target.Kind == column.Bool:
		if v.form != formBits && v.form != formRuns {
			return errFewValues
		}
		var err error
		a.fixed, err = v.booleans(a.fixed, k)
		return err
	case a.store() == 0:
		return a.takeBytes(v, k)
	case v.form == formFixed:
		return a.takeFixed(v, k)
	default:
		return a.takeEach(v, k)
	}
}

func (a *accumulator) takeFixed(v *values, k int) error {
	src, err := v.fixed(k)
	if err != nil {
		return err
	}
	if a.conv.fixed == nil {
		a.fixed = append(a.fixed, src...)
		return nil
	}
	n := len(a.fixed)
	size := k * a.store()
	a.fixed = slices.Grow(a.fixed, size)[:n+size]
	return a.conv.fixed(a.fixed[n:], src, k)
}

// takeEach converts byte strings to a fixed size one by one.
func (a *accumulator) takeEach(v *values, k int) error {
	w := a.store()
	for range k {
		b, err := v.next()
		if err != nil {
			return err
		}
		n := len(a.fixed)
		a.fixed = slices.Grow(a.fixed, w)[:n+w]
		if err := a.conv.one(a.fixed[n:], b); err != nil {
			return err
		}
	}
	return nil
}

// next takes one value as bytes.
func (v *values) next() ([]byte, error) {
	switch v.form {
	case formPrefixed:
		return v.prefixed()
	case formVar:
		if len(v.off) < 2 {
			return nil, errFewValues
		}
		b := v.buf[v.off[0]:v.off[1]]
		v.off = v.off[1:]
		return b, nil
	case formFixed:
		return v.fixed(1)
	default:
		return nil, errFewValues
	}
}

var errBatchBytes = fault.New(fault.Exhausted, "", "one batch holds more than 4 GiB of bytes").WithFix("ask for fewer rows a batch")

// takeBytes copies k byte strings.
func (a *accumulator) takeBytes(v *values, k int) error {
	if v.form == formVar {
		return a.takeVar(v, k)
	}
	if v.form == formPrefixed {
		return a.takePrefixed(v, k)
	}
	for range k { // fixed-size values of a variable-length type
		b, err := v.next()
		if err != nil {
			return err
		}
		a.bytes = append(a.bytes, b...)
		a.off = append(a.off, uint32(len(a.bytes)))
	}
	if len(a.bytes) > math.MaxUint32 {
		return errBatchBytes
	}
	return nil
}

func (a *accumulator) takePrefixed(v *values, k int) error {
	if len(v.buf) > math.MaxUint32-len(a.bytes) {
		return errBatchBytes
	}
	src, bytes, off := v.buf, a.bytes, slices.Grow(a.off, k)
	for range k {
		if len(src) < 4 {
			return errFewValues
		}
		n := uint64(binary.LittleEndian.Uint32(src)) + 4
		if n > uint64(len(src)) {
			return errFewValues
		}
		bytes = append(bytes, src[4:n]...)
		off = append(off, uint32(len(bytes)))
		src = src[n:]
	}
	v.buf, a.bytes, a.off = src, bytes, off
	return nil
}

func (a *accumulator) takeVar(v *values, k int) error {
	if k > len(v.off)-1 {
		return errFewValues
	}
	first, last := v.off[0], v.off[k]
	if uint64(len(a.bytes))+uint64(last-first) > math.MaxUint32 {
		return errBatchBytes
	}
	base := uint32(len(a.bytes)) - first
	a.bytes = append(a.bytes, v.buf[first:last]...)
	for _, o := range v.off[1 : k+1] {
		a.off = append(a.off, base+o)
	}
	v.off = v.off[k:]
	return nil
}

func (a *accumulator) takeIndexes(v *values, k int, dict *column.Vector) error {
	if dict == nil {
		return fault.New(fault.Corrupt, "", "dictionary-encoded page without a dictionary")
	}
	n := len(a.idx)
	a.idx = slices.Grow(a.idx, k)[:n+k]
	got := a.idx[n:]
	if err := v.runs.read(got); err != nil {
		return err
	}
	top := uint32(0)
	for _, i := range got {
		top = max(top, i)
	}
	if uint64(top) >= uint64(dict.Len) {
		return fault.New(fault.Corrupt, "", "index %d into a dictionary of %d values", top, dict.Len)
	}
	a.stored += k
	if a.dict == dict {
		return nil
	}
	if err := a.gather(dict, got); err != nil {
		return err
	}
	a.idx = a.idx[:0]
	return nil
}

// undict turns what is held as indexes into plain values.
func (a *accumulator) undict() error {
	if a.dict == nil {
		return nil
	}
	dict, idx := a.dict, a.idx
	a.dict = nil
	a.idx = a.idx[:0]
	return a.gather(dict, idx)
}

// gather appends dictionary values. Null slots of flat mode hold index 0.
func (a *accumulator) gather(dict *column.Vector, idx []uint32) error {
	w := a.store()
	if w == 0 {
		for _, i := range idx {
			a.bytes = append(a.bytes, dict.Bytes[dict.Off[i]:dict.Off[i+1]]...)
			if len(a.bytes) > math.MaxUint32 {
				return errBatchBytes
			}
			a.off = append(a.off, uint32(len(a.bytes)))
		}
		return nil
	}
	n := len(a.fixed)
	a.fixed = slices.Grow(a.fixed, w*len(idx))[:n+w*len(idx)]
	gatherFixed(a.fixed[n:], dict, idx, w)
	return nil
}

func gatherFixed(dst []byte, dict *column.Vector, idx []uint32, w int) {
	src := dict.Fixed
	switch {
	case dict.Type.Kind == column.Bool:
		for i, x := range idx {
			dst[i] = src[x>>3] >> (x & 7) & 1
		}
	case w == 4:
		for i, x := range idx {
			binary.LittleEndian.PutUint32(dst[i*4:], binary.LittleEndian.Uint32(src[x*4:]))
		}
	case w == 8:
		for i, x := range idx {
			binary.LittleEndian.PutUint64(dst[i*8:], binary.LittleEndian.Uint64(src[int(x)*8:]))
		}
	default:
		for i, x := range idx {
			copy(dst[i*w:(i+1)*w], src[int(x)*w:])
		}
	}
}
