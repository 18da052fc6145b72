package parquetio

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/skomerdb/skomer/internal/fault"
)

var (
	le = binary.LittleEndian
	be = binary.BigEndian
)

func intToLong(dst, src []byte, k int) error {
	for i := range k {
		le.PutUint64(dst[i*8:], uint64(int64(int32(le.Uint32(src[i*4:])))))
	}
	return nil
}

func unsignedToLong(dst, src []byte, k int) error {
	for i := range k {
		le.PutUint64(dst[i*8:], uint64(le.Uint32(src[i*4:])))
	}
	return nil
}

func floatToDouble(dst, src []byte, k int) error {
	for i := range k {
		le.PutUint64(dst[i*8:], math.Float64bits(float64(math.Float32frombits(le.Uint32(src[i*4:])))))
	}
	return nil
}

func halfToFloat(dst, src []byte, k int) error {
	for i := range k {
		le.PutUint32(dst[i*4:], math.Float32bits(half(le.Uint16(src[i*2:]))))
	}
	return nil
}

func halfToDouble(dst, src []byte, k int) error {
	for i := range k {
		le.PutUint64(dst[i*8:], math.Float64bits(float64(half(le.Uint16(src[i*2:])))))
	}
	return nil
}

// half is the value of an IEEE 754 binary16.
func half(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exp {
	case 31:
		return math.Float32frombits(sign | 255<<23 | frac<<13)
	case 0:
		f := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(f) | sign)
	default:
		return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
	}
}

func putDecimal(dst []byte, hi, lo uint64) {
	le.PutUint64(dst, lo)
	le.PutUint64(dst[8:], hi)
}

func intToDecimal(dst, src []byte, k int) error {
	for i := range k {
		v := int64(int32(le.Uint32(src[i*4:])))
		putDecimal(dst[i*16:], uint64(v>>63), uint64(v))
	}
	return nil
}

func longToDecimal(dst, src []byte, k int) error {
	for i := range k {
		v := int64(le.Uint64(src[i*8:]))
		putDecimal(dst[i*16:], uint64(v>>63), uint64(v))
	}
	return nil
}

func unsignedToDecimal(dst, src []byte, k int) error {
	for i := range k {
		putDecimal(dst[i*16:], 0, le.Uint64(src[i*8:]))
	}
	return nil
}

func fixedToDecimal(dst, src []byte, k, w int) error {
	for i := range k {
		if err := bytesToDecimal(dst[i*16:], src[i*w:(i+1)*w]); err != nil {
			return err
		}
	}
	return nil
}

// bytesToDecimal reads a big-endian two's complement integer of any width, sign-extended. No bytes at all are zero.
func bytesToDecimal(dst, src []byte) error {
	var b [16]byte
	fill := byte(0)
	if len(src) > 0 && src[0]&0x80 != 0 {
		fill = 0xff
	}
	for len(src) > 16 {
		if src[0] != fill {
			return fault.New(fault.Corrupt, "", "decimal of more than 128 bits")
		}
		src = src[1:]
	}
	if len(src) == 16 && src[0]>>7 != fill>>7 {
		return fault.New(fault.Corrupt, "", "decimal of more than 128 bits")
	}
	for i := range 16 - len(src) {
		b[i] = fill
	}
	copy(b[16-len(src):], src)
	putDecimal(dst, be.Uint64(b[:]), be.Uint64(b[8:]))
	return nil
}

func millisToTime(dst, src []byte, k int) error {
	for i := range k {
		le.PutUint64(dst[i*8:], uint64(int64(int32(le.Uint32(src[i*4:])))*1000))
	}
	return nil
}

func divide1000(dst, src []byte, k int) error {
	for i := range k {
		le.PutUint64(dst[i*8:], uint64(floorDiv(int64(le.Uint64(src[i*8:])), 1000)))
	}
	return nil
}

func floorDiv(v, by int64) int64 {
	q := v / by
	if v%by < 0 {
		q--
	}
	return q
}

func times1000(dst, src []byte, k int) error    { return scale(dst, src, k, 1000) }
func times1000000(dst, src []byte, k int) error { return scale(dst, src, k, 1000000) }

func scale(dst, src []byte, k int, by int64) error {
	for i := range k {
		v, err := multiply(int64(le.Uint64(src[i*8:])), by)
		if err != nil {
			return err
		}
		le.PutUint64(dst[i*8:], uint64(v))
	}
	return nil
}

// multiply fails where the product does not fit: a timestamp that the table's type cannot hold.
func multiply(v, by int64) (int64, error) {
	hi, lo := bits.Mul64(uint64(max(v, -v)), uint64(by))
	if hi != 0 || lo > math.MaxInt64 || v == math.MinInt64 {
		return 0, outOfRange(v, by)
	}
	return v * by, nil
}

func outOfRange(v, by int64) error {
	return fault.New(fault.Unsupported, "", "timestamp %d × %d is outside the range of the table's type", v, by)
}

const microsPerDay = 86_400_000_000

func daysToMicros(dst, src []byte, k int) error { return scaleDays(dst, src, k, microsPerDay) }
func daysToNanos(dst, src []byte, k int) error  { return scaleDays(dst, src, k, microsPerDay*1000) }

func scaleDays(dst, src []byte, k int, by int64) error {
	for i := range k {
		v, err := multiply(int64(int32(le.Uint32(src[i*4:]))), by)
		if err != nil {
			return err
		}
		le.PutUint64(dst[i*8:], uint64(v))
	}
	return nil
}

// julianEpoch is the Julian day number of 1970-01-01. INT96 is nanoseconds of the day (64 bits) and Julian day (32 bits).
const julianEpoch = 2_440_588

// int96ToMicros wraps around like Spark, which wraps when it writes: its own far timestamps come back.
func int96ToMicros(dst, src []byte, k int) error {
	for i := range k {
		day, nanos := int96(src[i*12:])
		le.PutUint64(dst[i*8:], uint64(day*microsPerDay+floorDiv(nanos, 1000)))
	}
	return nil
}

func int96ToNanos(dst, src []byte, k int) error {
	for i := range k {
		day, nanos := int96(src[i*12:])
		base, err := multiply(day, microsPerDay*1000)
		sum := base + nanos
		if err != nil || (sum < base) != (nanos < 0) && nanos != 0 {
			return outOfRange(day, microsPerDay*1000)
		}
		le.PutUint64(dst[i*8:], uint64(sum))
	}
	return nil
}

func int96(b []byte) (day, nanos int64) {
	return int64(int32(le.Uint32(b[8:]))) - julianEpoch, int64(le.Uint64(b))
}
