package avro

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// Inflate decompresses a whole DEFLATE stream (RFC 1951) into one slice. Blocks of Avro files are in memory as a whole, so that
// neither a window nor a reader stands between the bits and the bytes: matches are copied within the output, and up to 57 bits
// are held in a register. Codes are looked up by their first bits in a table of two levels.

var errInflate = errors.New("bad DEFLATE data")

const (
	litBits   = 10 // first level of the table of literals and lengths
	distBits  = 9  // and of that of distances
	maxCode   = 15 // bits of the longest code
	endOfData = 256
)

// entry of a table: low byte the bits of the code (0: none such), the rest the symbol; or with link set the bits of the second
// level and where it begins.
type entry uint32

const link = 0x80

// table maps the next bits of the input, least significant first, to symbols.
type table struct {
	first   uint
	entries []entry
}

// build makes the table of a canonical code of which each symbol's length is given. A code that leaves bits over is allowed where
// it has one symbol of one bit or none, as a distance code may; one with too many is not.
func (t *table) build(first uint, lengths []uint8) error {
	var count [maxCode + 1]int
	for _, n := range lengths {
		count[n]++
	}
	count[0] = 0
	code, left := 0, 1
	var next [maxCode + 1]int
	for n := 1; n <= maxCode; n++ {
		code = (code + count[n-1]) << 1
		next[n] = code
		if left = left<<1 - count[n]; left < 0 {
			return errInflate
		}
	}
	used := 0
	for _, n := range count {
		used += n
	}
	if left > 0 && used > count[1] || left > 0 && used > 1 {
		return errInflate
	}
	t.first = first
	size := 1 << first
	if cap(t.entries) < size {
		t.entries = make([]entry, size, 2*size)
	}
	t.entries = t.entries[:size]
	clear(t.entries)
	for symbol, n := range lengths {
		if n == 0 {
			continue
		}
		at := int(bits.Reverse16(uint16(next[n])) >> (16 - n))
		next[n]++
		t.put(at, uint(n), entry(symbol)<<8|entry(n))
	}
	return nil
}

// put enters a symbol under every index that ends in its code.
func (t *table) put(at int, n uint, e entry) {
	if n <= t.first {
		for ; at < 1<<t.first; at += 1 << n {
			t.entries[at] = e
		}
		return
	}
	// The second level is of full depth, one for each first level prefix that needs it: there are few.
	const deep = maxCode
	low := at & (1<<t.first - 1)
	depth := uint(deep) - t.first
	if t.entries[low]&link == 0 {
		from := len(t.entries)
		for range 1 << depth {
			t.entries = append(t.entries, 0)
		}
		t.entries[low] = entry(from)<<8 | link
	}
	base := int(t.entries[low] >> 8)
	for k := at >> t.first; k < 1<<depth; k += 1 << (n - t.first) {
		t.entries[base+k] = e
	}
}

// inflater holds what is needed again for every block.
type inflater struct {
	in      []byte
	at      int
	hold    uint64
	held    uint
	out     []byte
	lit     table
	dist    table
	lengths [286 + 32]uint8
}

// refill holds at least 56 bits, or all that are left.
func (z *inflater) refill() {
	if z.at+8 <= len(z.in) {
		z.hold |= binary.LittleEndian.Uint64(z.in[z.at:]) << z.held
		n := (63 - z.held) >> 3
		z.at += int(n)
		z.held += n * 8
		return
	}
	for z.held <= 56 && z.at < len(z.in) {
		z.hold |= uint64(z.in[z.at]) << z.held
		z.at++
		z.held += 8
	}
}

// take takes n bits, at most 32; ok is false past the end.
func (z *inflater) take(n uint) (v uint32, ok bool) {
	if z.held < n {
		if z.refill(); z.held < n {
			return 0, false
		}
	}
	v = uint32(z.hold & (1<<n - 1))
	z.hold >>= n
	z.held -= n
	return v, true
}

// inflate appends to dst at most limit+1 bytes.
func (z *inflater) inflate(dst, raw []byte, limit int64) ([]byte, error) {
	z.in, z.at, z.hold, z.held, z.out = raw, 0, 0, 0, dst
	defer func() { z.in, z.out = nil, nil }()
	for {
		head, ok := z.take(3)
		if !ok {
			return nil, errInflate
		}
		var err error
		switch head >> 1 {
		case 0:
			err = z.stored()
		case 1:
			z.fixed()
			err = z.coded(limit)
		case 2:
			if err = z.dynamic(); err == nil {
				err = z.coded(limit)
			}
		default:
			err = errInflate
		}
		if err != nil {
			return nil, err
		}
		if head&1 != 0 || int64(len(z.out)) > limit {
			return z.out, nil
		}
	}
}

// stored copies a block that is not compressed.
func (z *inflater) stored() error {
	z.hold >>= z.held % 8
	z.held -= z.held % 8
	z.at -= int(z.held / 8)
	z.hold, z.held = 0, 0
	if len(z.in)-z.at < 4 {
		return errInflate
	}
	n, check := binary.LittleEndian.Uint16(z.in[z.at:]), binary.LittleEndian.Uint16(z.in[z.at+2:])
	z.at += 4
	if n != ^check || int(n) > len(z.in)-z.at {
		return errInflate
	}
	z.out = append(z.out, z.in[z.at:z.at+int(n)]...)
	z.at += int(n)
	return nil
}

func (z *inflater) fixed() {
	l := z.lengths[:288]
	for i := range l {
		switch {
		case i < 144, i >= 280:
			l[i] = 8
		case i < 256:
			l[i] = 9
		default:
			l[i] = 7
		}
	}
	_ = z.lit.build(litBits, l) // the code is complete
	d := z.lengths[:32]
	for i := range d {
		d[i] = 5
	}
	_ = z.dist.build(distBits, d)
}

// codeOrder is the order in which the lengths of the code length code come.
var codeOrder = [19]int{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// dynamic reads the codes of a block.
func (z *inflater) dynamic() error {
	head, ok := z.take(14)
	if !ok {
		return errInflate
	}
	lits, dists, codes := int(head&31)+257, int(head>>5&31)+1, int(head>>10)+4
	if lits > 286 || dists > 30 {
		return errInflate
	}
	var l [19]uint8
	for _, i := range codeOrder[:codes] {
		n, ok := z.take(3)
		if !ok {
			return errInflate
		}
		l[i] = uint8(n)
	}
	if err := z.dist.build(7, l[:]); err != nil { // borrowed for the code length code
		return err
	}
	lengths := z.lengths[:lits+dists]
	for i := 0; i < len(lengths); {
		symbol, ok := z.symbol(&z.dist)
		if !ok {
			return errInflate
		}
		if symbol < 16 {
			lengths[i] = uint8(symbol)
			i++
			continue
		}
		value, n := uint8(0), 0
		extra := [3]uint{2, 3, 7}[symbol-16]
		more, ok := z.take(extra)
		switch {
		case !ok || symbol == 16 && i == 0:
			return errInflate
		case symbol == 16:
			value, n = lengths[i-1], 3+int(more)
		case symbol == 17:
			n = 3 + int(more)
		default:
			n = 11 + int(more)
		}
		if i+n > len(lengths) {
			return errInflate
		}
		for range n {
			lengths[i] = value
			i++
		}
	}
	if lengths[endOfData] == 0 {
		return errInflate
	}
	if err := z.lit.build(litBits, lengths[:lits]); err != nil {
		return err
	}
	return z.dist.build(distBits, lengths[lits:])
}

// symbol decodes one symbol.
func (z *inflater) symbol(t *table) (uint, bool) {
	if z.held < maxCode {
		z.refill()
	}
	e := t.entries[z.hold&(1<<t.first-1)]
	if e&link != 0 {
		e = t.entries[uint64(e>>8)+z.hold>>t.first&(1<<(maxCode-t.first)-1)]
	}
	n := uint(e & 0x7f)
	if n == 0 || n > z.held {
		return 0, false
	}
	z.hold >>= n
	z.held -= n
	return uint(e >> 8), true
}

// Lengths and distances: the least value of each symbol and the number of bits that follow (RFC 1951, 3.2.5).
var (
	lengthBase = [29]uint16{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258}
	lengthBits = [29]uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	distBase   = [30]uint16{1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577}
	distExtra  = [30]uint8{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13}
)

// coded decodes the symbols of a block.
func (z *inflater) coded(limit int64) error {
	for {
		for z.literals() {
			if int64(len(z.out)) > limit {
				return nil
			}
		}
		symbol, ok := z.symbol(&z.lit)
		switch {
		case !ok:
			return errInflate
		case symbol < endOfData:
			z.out = append(z.out, byte(symbol))
		case symbol == endOfData:
			return nil
		default:
			if !z.match(symbol - endOfData - 1) {
				return errInflate
			}
		}
		if int64(len(z.out)) > limit {
			return nil
		}
	}
}

// literals decodes literals while the held bits surely hold one more symbol, up to three; false before anything else.
func (z *inflater) literals() bool {
	if z.at+8 > len(z.in) || len(z.out)+4 > cap(z.out) {
		return false
	}
	z.refill()
	out, hold, held := z.out, z.hold, z.held
	entries := z.lit.entries
	done := false
	for range 4 { // of at most litBits bits each
		e := entries[hold&(1<<litBits-1)]
		if e&0xff == 0 || e&link != 0 || e>>8 >= endOfData {
			break
		}
		out = append(out, byte(e>>8))
		hold >>= e & 0x7f
		held -= uint(e & 0x7f)
		done = true
	}
	z.out, z.hold, z.held = out, hold, held
	return done
}

// match copies bytes that were written before.
func (z *inflater) match(symbol uint) bool {
	if symbol >= 29 {
		return false
	}
	more, ok := z.take(uint(lengthBits[symbol]))
	if !ok {
		return false
	}
	n := int(lengthBase[symbol]) + int(more)
	d, ok := z.symbol(&z.dist)
	if !ok || d >= 30 {
		return false
	}
	if more, ok = z.take(uint(distExtra[d])); !ok {
		return false
	}
	back := int(distBase[d]) + int(more)
	from := len(z.out) - back
	if from < 0 {
		return false
	}
	if back >= n {
		z.out = append(z.out, z.out[from:from+n]...)
		return true
	}
	for i := range n {
		z.out = append(z.out, z.out[from+i])
	}
	return true
}
