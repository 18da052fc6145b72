package index

import (
	"encoding/binary"
	"math/bits"
)

// skimmed is ranges of a list that were passed over.
type skimmed struct {
	ranges, bytes int
	rows          int64
	at            uint64 // where the last of them ends
}

const (
	more   = 0x8080808080808080 // of every byte: the number goes on in the next one
	digits = ^uint64(more)
	ones   = more >> 7
	lanes  = 0x00ff00ff00ff00ff
)

// skim passes over ranges at the start of list, of which at most n belong to it, as long as they surely end at or before limit; at is where
// the range before ends. It takes eight bytes at a time and leaves a few ranges to the caller, and all of them where numbers are longer than
// the format's.
func skim(list []byte, at, limit, n uint64) (k skimmed) {
	k.at = at
	var (
		sum, lengths uint64 // of all numbers, and of every second one
		ended        uint64 // numbers
		goes         uint64 // flags of the byte before: the number went on
		goesOn       uint64 // and already did in the byte before that
		i            int
	)
	for ; i+8 <= len(list); i += 8 {
		x := binary.LittleEndian.Uint64(list[i:])
		on := x & more
		second := on<<8 | goes                 // of every byte: it is not the first of its number
		third := second & (second<<8 | goesOn) // nor the second
		end := on ^ more
		ends := ended + uint64(bits.OnesCount64(end))
		if third&on != 0 || ends > 2*n {
			break
		}
		x &= digits
		odd := end >> 7 // ends so far, of every byte
		odd ^= odd << 8
		odd ^= odd << 16
		odd ^= odd << 32
		odd = odd<<8 ^ ones*(ended&1)
		all := valueOf(x, second, third)
		if at+sum+all+(ends+1)/2 > limit {
			break
		}
		if y := x & (odd * 0xff); y != 0 {
			lengths += valueOf(y, second, third)
		}
		sum, ended, goes, goesOn = sum+all, ends, on>>56, second>>56
	}
	// Back to where the last range ends.
	unfinished := uint64(0)
	for i > 0 && list[i-1] >= 0x80 {
		i--
		unfinished = unfinished<<7 | uint64(list[i]&0x7f)
	}
	if sum -= unfinished; ended&1 == 1 {
		lengths -= unfinished
		rest, gap := lastUvarint(list[:i])
		i, sum, ended = len(rest), sum-gap, ended-1
	}
	k.ranges, k.bytes, k.rows, k.at = int(ended/2), i, int64(lengths+ended/2), at+sum+ended/2
	return k
}

// valueOf adds up the digits of eight bytes: seven bits each, which are those of the second or the third byte of a number where its flag says so.
func valueOf(x, second, third uint64) uint64 {
	high := x & (second >> 7 * 0xff)
	low := x ^ high
	if third == 0 { // then no two neighbours are second, and what they add to fits in 16 bits
		v := low&lanes + low>>8&lanes + (high&lanes+high>>8&lanes)<<7
		return v * 0x0001000100010001 >> 48
	}
	top := high & (third >> 7 * 0xff)
	return bytesOf(low) + bytesOf(high^top)<<7 + bytesOf(top)<<14
}

// bytesOf adds up eight bytes.
func bytesOf(x uint64) uint64 {
	return (x&lanes + x>>8&lanes) * 0x0001000100010001 >> 48
}
