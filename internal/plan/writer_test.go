package plan

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/column"
)

// What a writer of manifests does, written from the specification and without any code of the package: bounds to bytes,
// values to partition values.

// serial is the binary single-value serialisation (appendix D).
func serial(v column.Value) []byte {
	switch v.Kind {
	case column.Bool:
		return []byte{byte(v.Lo)}
	case column.Int, column.Date, column.Float:
		return binary.LittleEndian.AppendUint32(nil, uint32(v.Lo))
	case column.Decimal:
		return twosComplement(whole(v))
	case column.String, column.UUID, column.Fixed, column.Binary:
		return append([]byte{}, v.S...)
	default:
		return binary.LittleEndian.AppendUint64(nil, v.Lo)
	}
}

// twosComplement is the shortest big-endian form.
func twosComplement(x *big.Int) []byte {
	for n := 1; ; n++ {
		limit := new(big.Int).Lsh(big.NewInt(1), uint(8*n-1))
		if x.Cmp(limit) < 0 && x.Cmp(new(big.Int).Neg(limit)) >= 0 {
			m := new(big.Int).Mod(x, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
			return m.FillBytes(make([]byte, n))
		}
	}
}

// cutLower and cutUpper shorten a bound to n code points or bytes; an upper bound is raised. nil: no bound.
func cutLower(k column.Kind, s string, n int) []byte {
	if k == column.String {
		return []byte(string([]rune(s)[:min(n, len([]rune(s)))]))
	}
	return []byte(s[:min(n, len(s))])
}

func cutUpper(k column.Kind, s string, n int) []byte {
	if k == column.String {
		r := []rune(s)
		if len(r) <= n {
			return []byte(s)
		}
		for i := n - 1; i >= 0; i-- {
			next := r[i] + 1
			if next == 0xD800 {
				next = 0xE000
			}
			if next <= utf8.MaxRune {
				return []byte(string(r[:i]) + string(next))
			}
		}
		return nil
	}
	if len(s) <= n {
		return []byte(s)
	}
	for i := n - 1; i >= 0; i-- {
		if s[i] != 0xFF {
			return append([]byte(s[:i]), s[i]+1)
		}
	}
	return nil
}

// writer is a partition transform as a writer computes it. early rounds towards zero like Java up to 0.10.
type writer struct {
	name  string
	param int64
	early bool
}

func (w writer) String() string {
	if w.param > 0 {
		return fmt.Sprintf("%s[%d]", w.name, w.param)
	}
	return w.name
}

// result is the type of the partition values.
func (w writer) result(t column.Type) column.Type {
	switch w.name {
	case "identity", "truncate", "void":
		return t
	default:
		return column.Of(column.Int)
	}
}

// apply is the partition value of a non-null value.
func (w writer) apply(v column.Value) (out column.Value, null bool) {
	switch w.name {
	case "identity":
		return v, false
	case "void":
		return v, true
	case "bucket":
		return column.IntValue(column.Int, int64(specHash(v)&math.MaxInt32)%w.param), false
	case "truncate":
		return w.cut(v), false
	case "geohash": // from a future version
		return column.IntValue(column.Int, int64(len(serial(v)))), false
	default:
		return column.IntValue(column.Int, w.periods(v)), false
	}
}

func (w writer) cut(v column.Value) column.Value {
	switch v.Kind {
	case column.String, column.Binary:
		v.S = string(cutLower(v.Kind, v.S, int(w.param)))
		return v
	}
	x := whole(v)
	x.Sub(x, new(big.Int).Mod(x, big.NewInt(w.param)))
	if v.Kind == column.Decimal {
		return decimalOf(x, int(v.Scale))
	}
	return column.IntValue(v.Kind, wrapped(x, v.Kind))
}

// wrapped is x in the arithmetic of the kind, which overflows silently in Java.
func wrapped(x *big.Int, k column.Kind) int64 {
	low := new(big.Int).And(x, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	if k == column.Int {
		return int64(int32(low))
	}
	return int64(low)
}

func (w writer) periods(v column.Value) int64 {
	instant := toTime(v)
	exact := true // v is the first of its period
	var p int64
	switch w.name {
	case "year":
		p = int64(instant.Year() - 1970)
		exact = instant.Equal(time.Date(instant.Year(), 1, 1, 0, 0, 0, 0, time.UTC))
	case "month":
		p = int64(instant.Year()-1970)*12 + int64(instant.Month()) - 1
		exact = instant.Equal(time.Date(instant.Year(), instant.Month(), 1, 0, 0, 0, 0, time.UTC))
	case "day":
		p, exact = floorTo(instant, 86400)
	case "hour":
		p, exact = floorTo(instant, 3600)
	}
	if w.early && p < 0 && !exact && (v.Kind != column.Date || w.name != "day") {
		p++
	}
	return p
}

func floorTo(t time.Time, unit int64) (p int64, exact bool) {
	p = t.Unix() / unit
	rest := t.Unix() % unit
	if rest < 0 {
		p--
	}
	return p, rest == 0 && t.Nanosecond() == 0
}

func toTime(v column.Value) time.Time {
	x := int64(v.Lo)
	switch v.Kind {
	case column.Date:
		return time.Unix(x*86400, 0).UTC()
	case column.TimestampNS, column.TimestampNZ:
		return time.Unix(0, x).UTC()
	default:
		return time.UnixMicro(x).UTC()
	}
}

// specHash is the bucket hash (appendix B).
func specHash(v column.Value) uint32 {
	switch v.Kind {
	case column.Decimal:
		return murmur(twosComplement(whole(v)))
	case column.String, column.UUID, column.Fixed, column.Binary:
		return murmur([]byte(v.S))
	case column.TimestampNS, column.TimestampNZ:
		micros := new(big.Int).Div(big.NewInt(int64(v.Lo)), big.NewInt(1000)) // Euclidean: floors
		return murmur(binary.LittleEndian.AppendUint64(nil, uint64(micros.Int64())))
	default:
		return murmur(binary.LittleEndian.AppendUint64(nil, v.Lo))
	}
}

// murmur is MurmurHash3_x86_32 with seed 0 (Austin Appleby, public domain algorithm).
func murmur(b []byte) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	h, n := uint32(0), uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := binary.LittleEndian.Uint32(b) * c1
		h ^= bits.RotateLeft32(k, 15) * c2
		h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
	}
	var tail [4]byte
	if copy(tail[:], b) > 0 {
		h ^= bits.RotateLeft32(binary.LittleEndian.Uint32(tail[:])*c1, 15) * c2
	}
	h ^= n
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// lossy cuts a string to n bytes and repairs the broken character as careless writers do.
func lossy(s string, n int) []byte {
	return []byte(strings.ToValidUTF8(s[:min(n, len(s))], "\uFFFD"))
}
