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
	for range k {
		b, err := v.next()
		if err != nil {
			return err
		}
		a.bytes = append(a.bytes, b...)
		if len(a.bytes) > math.MaxUint32 {
			return errBatchBytes
		}
		a.off = append(a.off, uint32(len(a.bytes)))
	}
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

// rows appends n rows of which k, where def reaches top, take the next values.
func (a *accumulator) rows(v *values, n, k int, def []uint8, top uint8, dict *column.Vector) error {
	if err := a.take(v, k, dict); err != nil {
		return err
	}
	a.mark(def, n, k, top)
	if k < n {
		a.spread(n, k, func(i int) bool { return def[i] == top })
		a.stored += n - k
	}
	return nil
}

// mark appends n validity bits. def is nil when all are valid.
func (a *accumulator) mark(def []uint8, n, k int, top uint8) {
	a.nulls += n - k
	start := a.slots
	a.slots += n
	if words := (a.slots + 63) / 64; words > len(a.valid) {
		a.valid = append(a.valid, make([]uint64, words-len(a.valid))...)
	}
	switch {
	case k == n:
		setRange(a.valid, start, a.slots)
	case k > 0:
		setEqual(a.valid, start, def[:n], top)
	}
}

// setRange sets the bits [from, to).
func setRange(words []uint64, from, to int) {
	for from < to {
		w, b := from>>6, from&63
		n := min(64-b, to-from)
		words[w] |= ^uint64(0) >> (64 - n) << b
		from += n
	}
}

// setEqual sets bit start+i where def[i] is top.
func setEqual(words []uint64, start int, def []uint8, top uint8) {
	for i, d := range def {
		if d == top {
			words[(start+i)>>6] |= 1 << ((start + i) & 63)
		}
	}
}

// spread moves the last k stored values apart to the n slots where valid says so. The other slots repeat a neighbour or hold
// index 0.
func (a *accumulator) spread(n, k int, valid func(i int) bool) {
	switch w := a.store(); {
	case a.dict != nil:
		spreadIndexes(&a.idx, n, k, valid)
	case w == 0:
		spreadOffsets(&a.off, n, k, valid)
	default:
		spreadFixed(&a.fixed, n, k, w, valid)
	}
}

func spreadIndexes(idx *[]uint32, n, k int, valid func(int) bool) {
	base := len(*idx) - k
	s := slices.Grow(*idx, n-k)[:base+n]
	for i, from := n-1, base+k-1; i >= 0; i-- {
		if valid(i) {
			s[base+i] = s[from]
			from--
		} else {
			s[base+i] = 0
		}
	}
	*idx = s
}

func spreadOffsets(off *[]uint32, n, k int, valid func(int) bool) {
	base := len(*off) - k
	s := slices.Grow(*off, n-k)[:base+n]
	for i, from := n-1, base+k-1; i >= 0; i-- {
		s[base+i] = s[from]
		if valid(i) {
			from--
		}
	}
	*off = s
}

func spreadFixed(fixed *[]byte, n, k, w int, valid func(int) bool) {
	base := len(*fixed) - k*w
	s := slices.Grow(*fixed, (n-k)*w)[:base+n*w]
	for i, from := n-1, base+(k-1)*w; i >= 0; i-- {
		at := base + i*w
		switch {
		case !valid(i):
			clear(s[at : at+w])
		case w == 8:
			binary.LittleEndian.PutUint64(s[at:], binary.LittleEndian.Uint64(s[from:]))
			from -= w
		case w == 4:
			binary.LittleEndian.PutUint32(s[at:], binary.LittleEndian.Uint32(s[from:]))
			from -= w
		default:
			copy(s[at:at+w], s[from:from+w])
			from -= w
		}
	}
	*fixed = s
}
