package avro

import (
	"encoding/binary"
	"errors"
	"slices"
)

// Inflate decompresses a whole DEFLATE stream (RFC 1951) into one slice. Blocks of Avro files are in memory as a whole, so that
// neither a window nor a reader stands between the bits and the bytes: matches are copied within the output, and at least 56 bits
// are held in a register. As in libdeflate, an entry of a code's table says all that a symbol means, and most symbols are decoded
// in a loop that has room to spare at both ends (inflate_fast.go).

var errInflate = errors.New("bad DEFLATE data")

const endOfData = 256

// inflater holds what is needed again for every block.
type inflater struct {
	in      []byte
	at      int
	hold    uint64 // the bits of in before at that are not yet taken, the next one lowest; above them may be those that follow
	held    uint   // how many they are
	out     []byte
	lit     litTable
	dist    distTable
	isFixed bool // the tables hold the fixed codes: such a block may be of ten bits
	lengths [286 + 32]uint8
	spare   []byte // memory for a block whose bytes nobody holds
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
	for z.held < 56 && z.at < len(z.in) {
		z.hold |= uint64(z.in[z.at]) << z.held
		z.at++
		z.held += 8
	}
}

// drop passes over n bits.
func (z *inflater) drop(n uint) {
	z.hold >>= n & 63
	z.held -= n
}

// take takes n bits, at most 32; ok is false past the end.
func (z *inflater) take(n uint) (v uint32, ok bool) {
	if z.held < n {
		if z.refill(); z.held < n {
			return 0, false
		}
	}
	v = uint32(z.hold & (1<<n - 1))
	z.drop(n)
	return v, true
}

// inflate appends to dst, which must be empty, until it is longer than limit: by a stored block or a match at most.
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
	z.drop(z.held % 8)
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

// fixed enters the codes of blocks that state none.
func (z *inflater) fixed() {
	if z.isFixed {
		return
	}
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
	_ = build(z.lit[:], litBits, l, literals[:]) // the codes are complete
	d := z.lengths[:32]
	for i := range d {
		d[i] = 5
	}
	_ = build(z.dist[:], distBits, d, distances[:])
	z.isFixed = true
}

// codeOrder is the order in which the lengths of the code length code come.
var codeOrder = [19]int{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// dynamic reads the codes of a block.
func (z *inflater) dynamic() error {
	z.isFixed = false
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
	if err := build(z.dist[:], distBits, l[:], numbers[:]); err != nil { // borrowed for the code length code
		return err
	}
	lengths := z.lengths[:lits+dists]
	if err := z.codeLengths(lengths); err != nil {
		return err
	}
	if lengths[endOfData] == 0 {
		return errInflate
	}
	if err := build(z.lit[:], litBits, lengths[:lits], literals[:]); err != nil {
		return err
	}
	return build(z.dist[:], distBits, lengths[lits:], distances[:])
}

// codeLengths reads the lengths of the two codes of a block.
func (z *inflater) codeLengths(lengths []uint8) error {
	for i := 0; i < len(lengths); {
		z.refill()
		e := z.dist[z.hold&(1<<distBits-1)]
		if e.taken() == 0 || e.taken() > z.held {
			return errInflate
		}
		z.drop(e.taken())
		if e.least() < 16 {
			lengths[i] = uint8(e.least())
			i++
			continue
		}
		value, n := uint8(0), 0
		more, ok := z.take([3]uint{2, 3, 7}[e.least()-16])
		switch {
		case !ok || e.least() == 16 && i == 0:
			return errInflate
		case e.least() == 16:
			value, n = lengths[i-1], 3+int(more)
		case e.least() == 17:
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
	return nil
}

// coded decodes the symbols of a block.
func (z *inflater) coded(limit int64) error {
	for {
		if done, err := z.fast(limit); done || err != nil {
			return err
		}
		left := limit - int64(len(z.out))
		if left < 0 {
			return nil
		}
		if z.refill(); len(z.in)-z.at >= fastIn { // then it is the output that has no room
			z.out = slices.Grow(z.out, int(min(int64(len(z.out)), left))+fastOut)
			continue
		}
		if done, err := z.symbol(); done || err != nil {
			return err
		}
	}
}

// symbol decodes one symbol, and a distance behind a length; done at the end of the block.
func (z *inflater) symbol() (done bool, err error) {
	z.refill()
	e := z.lit.find(z.hold)
	if e.taken() == 0 || e.taken() > z.held {
		return false, errInflate
	}
	if e&literal != 0 {
		z.drop(e.taken())
		z.out = append(z.out, byte(e.least()))
		return false, nil
	}
	n := e.value(z.hold)
	z.drop(e.taken())
	if e&special != 0 {
		return true, nil
	}
	z.refill()
	e = z.dist.find(z.hold)
	if e.taken() == 0 || e.taken() > z.held {
		return false, errInflate
	}
	back := e.value(z.hold)
	z.drop(e.taken())
	from := len(z.out) - back
	if from < 0 {
		return false, errInflate
	}
	for i := range n {
		z.out = append(z.out, z.out[from+i])
	}
	return false, nil
}
