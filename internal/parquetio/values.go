package parquetio

import (
	"encoding/binary"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/bytestreamsplit"
	"github.com/parquet-go/parquet-go/encoding/delta"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// form is how the values of a page lie in memory after decoding.
type form uint8

const (
	formFixed    form = iota // buf: width bytes a value
	formPrefixed             // buf: a 4-byte length before each value (PLAIN BYTE_ARRAY)
	formVar                  // off, buf
	formBits                 // buf: one bit a value (PLAIN BOOLEAN)
	formRuns                 // runs: one value a bit (RLE BOOLEAN)
	formIndexes              // runs: indexes into the dictionary
)

// maxPageValues bounds the values of a page in the encodings that are decoded whole: a few bytes of them can claim billions.
const maxPageValues = 1 << 26

// values is the non-null values of one page, taken in order.
type values struct {
	form  form
	width int
	buf   []byte
	off   []uint32 // formVar: off[0] is the start of the next value
	at    int      // formBits: next bit
	runs  hybrid
	// Scratch, kept between pages.
	ints32 []int32
	ints64 []int64
	bytes  []byte
	offs   []uint32
}

var errFewValues = fault.New(fault.Corrupt, "", "page holds fewer values than it claims")

// open decodes body, the value part of a page of slots values (nulls included) of leaf n.
func (v *values) open(n *node, encoding int32, body []byte, slots int) error {
	v.width, v.at, v.buf, v.off = n.valueWidth(), 0, body, nil
	switch encoding {
	case encPlain:
		v.form = formFixed
		switch n.phys {
		case byteArray:
			v.form = formPrefixed
		case boolean:
			v.form = formBits
		}
		return nil
	case encPlainDictionary, encRLEDictionary:
		return v.openIndexes(body)
	case encRLE:
		if n.phys == boolean {
			return v.openBooleans(body)
		}
	case encDelta:
		return v.openDelta(n, body, slots)
	case encDeltaLength, encDeltaByteArray:
		return v.openDeltaBytes(n, encoding, body, slots)
	case encByteStreamSplit:
		return v.openSplit(n, body)
	}
	return fault.New(fault.Unsupported, "", "encoding %d of %s", encoding, n.phys)
}

func (v *values) openIndexes(body []byte) (err error) {
	v.form = formIndexes
	if len(body) == 0 { // a page of nulls only
		v.runs = hybrid{}
		return nil
	}
	v.runs, err = newHybrid(body[1:], uint(body[0]))
	return err
}

func (v *values) openBooleans(body []byte) (err error) {
	if len(body) < 4 {
		v.form, v.runs = formRuns, hybrid{}
		return nil
	}
	n := binary.LittleEndian.Uint32(body)
	if uint64(n) > uint64(len(body)-4) {
		return errFewValues
	}
	v.form = formRuns
	v.runs, err = newHybrid(body[4:4+n], 1)
	return err
}

func (v *values) openDelta(n *node, body []byte, slots int) (err error) {
	if len(body) == 0 {
		v.form = formFixed
		return nil
	}
	v.form = formFixed
	if total, err := deltaCount(body, slots); err != nil || total == 0 {
		v.buf = nil
		return err
	}
	var enc delta.BinaryPackedEncoding
	switch n.phys {
	case int32s:
		v.ints32, err = enc.DecodeInt32(v.ints32, body)
		v.buf = column.BytesOf(v.ints32)
	case int64s:
		v.ints64, err = enc.DecodeInt64(v.ints64, body)
		v.buf = column.BytesOf(v.ints64)
	default:
		return fault.New(fault.Unsupported, "", "DELTA_BINARY_PACKED of %s", n.phys)
	}
	return err
}

// deltaCount is the number of values that a DELTA_BINARY_PACKED run claims, checked before the decoder allocates them.
func deltaCount(body []byte, slots int) (int, error) {
	c := &compact{b: body}
	block, minis, total := c.uvarint(), c.uvarint(), c.uvarint()
	switch {
	case c.err != nil:
		return 0, c.err
	case total == 0: // some writers leave the rest of the header out
		return 0, nil
	case total > uint64(slots):
		return 0, fault.New(fault.Corrupt, "", "delta run of %d values in a page of %d", total, slots)
	case total > maxPageValues:
		return 0, fault.New(fault.Exhausted, "", "page of %d delta-encoded values, the limit is %d", total, maxPageValues)
	case block == 0 || block > 1<<20 || minis == 0 || minis > block/8 || minis > uint64(len(body)):
		return 0, fault.New(fault.Corrupt, "", "delta blocks of %d values in %d parts", block, minis)
	}
	return int(total), nil
}

func (v *values) openDeltaBytes(n *node, encoding int32, body []byte, slots int) (err error) {
	v.form = formVar
	if len(body) == 0 {
		v.buf, v.off = nil, []uint32{0}
		return nil
	}
	if total, err := deltaCount(body, slots); err != nil || total == 0 {
		v.buf, v.off = nil, []uint32{0}
		return err
	}
	switch {
	case encoding == encDeltaLength && n.phys == byteArray:
		var enc delta.LengthByteArrayEncoding
		v.bytes, v.offs, err = enc.DecodeByteArray(v.bytes, body, v.offs)
	case encoding == encDeltaByteArray && (n.phys == byteArray || n.phys == fixedLen):
		return v.openPrefixes(n, body, slots)
	default:
		return fault.New(fault.Unsupported, "", "encoding %d of %s", encoding, n.phys)
	}
	v.buf, v.off = v.bytes, v.offs
	return err
}

// openPrefixes decodes DELTA_BYTE_ARRAY here: a shared prefix repeats bytes without limit, so the sum is held against maxPage
// while it grows.
func (v *values) openPrefixes(n *node, body []byte, slots int) error {
	prefix, body, err := deltaRun(nil, body, slots)
	if err != nil {
		return err
	}
	suffix, body, err := deltaRun(nil, body, slots)
	if err != nil {
		return err
	}
	if len(prefix) != len(suffix) {
		return fault.New(fault.Corrupt, "", "%d prefixes for %d suffixes", len(prefix), len(suffix))
	}
	v.bytes, v.offs = v.bytes[:0], append(v.offs[:0], 0)
	last := 0
	for i, p := range prefix {
		s, start := suffix[i], len(v.bytes)
		if p < 0 || s < 0 || int(p) > start-last || int(s) > len(body) || n.phys == fixedLen && int(p)+int(s) != v.width {
			return fault.New(fault.Corrupt, "", "prefix of %d and suffix of %d bytes", p, s)
		}
		if start+int(p)+int(s) > maxPage {
			return fault.New(fault.Exhausted, "", "page of more than %d bytes of prefixed values", int(maxPage))
		}
		v.bytes = append(v.bytes, v.bytes[last:last+int(p)]...)
		v.bytes = append(v.bytes, body[:s]...)
		v.offs = append(v.offs, uint32(len(v.bytes)))
		body, last = body[s:], start
	}
	v.buf, v.off = v.bytes, v.offs
	if n.phys == fixedLen {
		v.form = formFixed
	}
	return nil
}

func (v *values) openSplit(n *node, body []byte) error {
	v.form = formFixed
	if v.width == 0 || n.phys == int96s || len(body)%v.width != 0 {
		return fault.New(fault.Corrupt, "", "BYTE_STREAM_SPLIT of %s in %d bytes", n.phys, len(body))
	}
	if len(body) == 0 {
		return nil
	}
	var enc bytestreamsplit.Encoding
	var err error
	v.bytes, err = enc.DecodeFixedLenByteArray(v.bytes, body, v.width)
	v.buf = v.bytes
	return err
}

// fixed takes the next k values of formFixed.
func (v *values) fixed(k int) ([]byte, error) {
	size := k * v.width
	if size > len(v.buf) {
		return nil, errFewValues
	}
	b := v.buf[:size]
	v.buf = v.buf[size:]
	return b, nil
}

// prefixed takes the next value of formPrefixed.
func (v *values) prefixed() ([]byte, error) {
	if len(v.buf) < 4 {
		return nil, errFewValues
	}
	n := binary.LittleEndian.Uint32(v.buf)
	if uint64(n) > uint64(len(v.buf)-4) {
		return nil, errFewValues
	}
	b := v.buf[4 : 4+n]
	v.buf = v.buf[4+n:]
	return b, nil
}

// skip passes over k values.
func (v *values) skip(k int) error {
	switch v.form {
	case formFixed:
		_, err := v.fixed(k)
		return err
	case formPrefixed:
		for range k {
			if _, err := v.prefixed(); err != nil {
				return err
			}
		}
	case formVar:
		if k > len(v.off)-1 {
			return errFewValues
		}
		v.off = v.off[k:]
	case formBits:
		if v.at+k > len(v.buf)*8 {
			return errFewValues
		}
		v.at += k
	default:
		return v.runs.skip(k)
	}
	return nil
}

// booleans takes the next k values of formBits or formRuns, one byte each.
func (v *values) booleans(dst []byte, k int) ([]byte, error) {
	if v.form == formBits && v.at+k > len(v.buf)*8 {
		return nil, errFewValues
	}
	dst = slices.Grow(dst, k)
	if v.form == formBits {
		for range k {
			dst = append(dst, v.buf[v.at>>3]>>(v.at&7)&1)
			v.at++
		}
		return dst, nil
	}
	start := len(dst)
	dst = dst[:start+k]
	_, err := v.runs.levels(dst[start:], 1)
	return dst, err
}
