package parquetio

import (
	"encoding/binary"
	"math/bits"

	"github.com/parquet-go/bitpack"

	"github.com/skomerdb/skomer/internal/fault"
)

// hybrid streams the RLE/bit-packing hybrid of Parquet ("Encodings.md", RLE = 3): levels, dictionary indexes and RLE
// booleans. It holds one run, so a header that claims two billion values costs nothing until they are asked for.
type hybrid struct {
	src   []byte
	width uint
	// The current run: run values left, either all equal to value or bit-packed in packed from value number at on.
	run    int
	value  uint32
	packed []byte
	at     int
}

var errLevels = fault.New(fault.Corrupt, "", "run-length encoded data ends early")

func newHybrid(src []byte, width uint) (hybrid, error) {
	if width > 32 {
		return hybrid{}, fault.New(fault.Corrupt, "", "bit width of %d", width)
	}
	return hybrid{src: src, width: width}, nil
}

// next loads the next run; run is above 0 afterwards.
func (h *hybrid) next() error {
	for h.run == 0 {
		u, n := binary.Uvarint(h.src)
		if n <= 0 || u>>1 > 1<<32 {
			return errLevels
		}
		h.src = h.src[n:]
		count := int(u >> 1)
		if u&1 == 0 {
			size := int(h.width+7) / 8
			if size > len(h.src) {
				return errLevels
			}
			var b [4]byte
			copy(b[:], h.src[:size])
			h.value, h.packed, h.run = binary.LittleEndian.Uint32(b[:]), nil, count
			h.src = h.src[size:]
			continue
		}
		// The last group may be cut short: what is there counts.
		size := min(count*int(h.width), len(h.src))
		run := count * 8
		if h.width > 0 {
			run = min(run, size*8/int(h.width))
			if run == 0 && count > 0 {
				return errLevels
			}
		}
		h.packed, h.at, h.run = h.src[:size:size], 0, run
		h.src = h.src[size:]
		if h.width == 0 {
			h.packed, h.value = nil, 0
		}
	}
	return nil
}

// take is a run of up to n values: equal ones if packed is nil, else bit-packed from value number at on.
func (h *hybrid) take(n int) (count int, value uint32, packed []byte, at int, err error) {
	if err := h.next(); err != nil {
		return 0, 0, nil, 0, err
	}
	count = min(n, h.run)
	h.run -= count
	at = h.at
	h.at += count
	return count, h.value, h.packed, at, nil
}

// read fills dst.
func (h *hybrid) read(dst []uint32) error {
	for len(dst) > 0 {
		n, value, packed, at, err := h.take(len(dst))
		if err != nil {
			return err
		}
		if packed == nil {
			for i := range dst[:n] {
				dst[i] = value
			}
		} else {
			unpack(dst[:n], packed, at, h.width)
		}
		dst = dst[n:]
	}
	return nil
}

// skip passes over n values.
func (h *hybrid) skip(n int) error {
	for n > 0 {
		k, _, _, _, err := h.take(n)
		if err != nil {
			return err
		}
		n -= k
	}
	return nil
}

// levels fills dst with levels and returns how many equal top.
func (h *hybrid) levels(dst []uint8, top uint8) (tops int, err error) {
	for len(dst) > 0 {
		n, value, packed, at, err := h.take(len(dst))
		if err != nil {
			return 0, err
		}
		if packed == nil {
			if value > uint32(top) {
				return 0, fault.New(fault.Corrupt, "", "level %d above %d", value, top)
			}
			for i := range dst[:n] {
				dst[i] = uint8(value)
			}
			if uint8(value) == top {
				tops += n
			}
		} else if tops, err = unpackLevels(dst[:n], packed, at, h.width, top, tops); err != nil {
			return 0, err
		}
		dst = dst[n:]
	}
	return tops, nil
}

func unpackLevels(dst []uint8, packed []byte, at int, width uint, top uint8, tops int) (int, error) {
	mask := uint64(1)<<width - 1
	for i := 0; i < len(dst); {
		bit := (at + i) * int(width)
		x := load(packed, bit>>3) >> (bit & 7)
		// A load at a byte's edge holds eight levels of up to eight bits; elsewhere one is sure.
		n := 1
		if bit&7 == 0 {
			n = min(8, len(dst)-i)
		}
		for _, end := i, i+n; i < end; i++ {
			v := uint8(x & mask)
			x >>= width
			if v >= top {
				if v > top {
					return 0, fault.New(fault.Corrupt, "", "level %d above %d", v, top)
				}
				tops++
			}
			dst[i] = v
		}
	}
	return tops, nil
}

// bits sets the bits of words from start on where a level of one bit is 1, for n levels, and returns how many are. The bits must be
// zero before.
func (h *hybrid) bits(words []uint64, start, n int) (ones int, err error) {
	for n > 0 {
		k, value, packed, at, err := h.take(n)
		if err != nil {
			return 0, err
		}
		switch {
		case packed != nil:
			ones += orBits(words, start, packed, at, k)
		case value == 1:
			setRange(words, start, start+k)
			ones += k
		case value > 1:
			return 0, fault.New(fault.Corrupt, "", "level %d above 1", value)
		}
		start, n = start+k, n-k
	}
	return ones, nil
}

// orBits copies n bits from position at of packed to position start of words and counts the ones.
func orBits(words []uint64, start int, packed []byte, at, n int) (ones int) {
	for n > 0 {
		k := min(n, 56) // what a load at any bit surely holds
		x := load(packed, at>>3) >> (at & 7) & (1<<k - 1)
		ones += bits.OnesCount64(x)
		w, b := start>>6, start&63
		words[w] |= x << b
		if b+k > 64 {
			words[w+1] |= x >> (64 - b)
		}
		start, at, n = start+k, at+k, n-k
	}
	return ones
}

// load is eight bytes at i, padded with zeros at the end.
func load(b []byte, i int) uint64 {
	if i+8 <= len(b) {
		return binary.LittleEndian.Uint64(b[i:])
	}
	var tail [8]byte
	if i < len(b) {
		copy(tail[:], b[i:])
	}
	return binary.LittleEndian.Uint64(tail[:])
}

// unpack fills dst with bit-packed values from value number at on.
func unpack(dst []uint32, packed []byte, at int, width uint) {
	mask := uint64(1)<<width - 1
	for at&7 != 0 && len(dst) > 0 {
		bit := at * int(width)
		dst[0] = uint32(load(packed, bit>>3) >> (bit & 7) & mask)
		dst, at = dst[1:], at+1
	}
	// Whole bytes from here on: the bulk unpacker reads up to its padding past the last value.
	packed = packed[at*int(width)/8:]
	bulk := len(dst)
	if room := len(packed) - bitpack.PaddingInt32; room < (bulk*int(width)+7)/8 {
		bulk = max(0, room) * 8 / int(width) &^ 7
	}
	if bulk > 0 {
		bitpack.Unpack(dst[:bulk], packed, width)
	}
	for i := bulk; i < len(dst); i++ {
		bit := i * int(width)
		dst[i] = uint32(load(packed, bit>>3) >> (bit & 7) & mask)
	}
}

// levelWidth is the bits of a level up to top.
func levelWidth(top uint8) uint { return uint(bits.Len8(top)) }
