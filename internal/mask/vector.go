package mask

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
)

// A deletion vector is the blob type deletion-vector-v1 of the Puffin specification:
//
//	length  4 bytes big-endian: of magic and vector
//	magic   d1 d3 39 64
//	vector  64-bit roaring bitmap in portable serialisation, below
//	crc     4 bytes big-endian: CRC-32 (IEEE) of magic and vector
//
//	vector  count (8 bytes little-endian), then so many times
//	        key (4 bytes little-endian, ascending): the upper 32 bits of the positions
//	        32-bit roaring bitmap in portable serialisation (github.com/RoaringBitmap/RoaringFormatSpec)
const (
	vectorMagic   = 0x6439d3d1
	vectorFraming = 4 + 4 + 4
	// maxVectorKey is the largest key: positions are below 2^63, and no writer uses the last key.
	maxVectorKey = math.MaxInt32 - 1
)

// parseVector reads a deletion vector blob. Positions that no readable file has, 2^32 and up, are checked and left out of the
// bitmap; count has them.
func parseVector(name string, blob []byte) (positions *roaring.Bitmap, count uint64, err error) {
	r := bytescan.NewReader(name, blob)
	length := binary.BigEndian.Uint32(pad(r.Bytes(4)))
	if r.Err() == nil && int64(length) != int64(len(blob))-8 {
		r.Fail("deletion vector of %d bytes states a length of %d", len(blob), length)
	}
	body := r.Bytes(len(blob) - 8)
	sum := binary.BigEndian.Uint32(pad(r.Bytes(4)))
	if err := r.Done(); err != nil {
		return nil, 0, err
	}
	if got := crc32.ChecksumIEEE(body); got != sum {
		return nil, 0, fault.New(fault.Corrupt, name, "deletion vector has CRC-32 %08x, states %08x", got, sum)
	}
	if len(body) < 4 || binary.LittleEndian.Uint32(body) != vectorMagic {
		return nil, 0, fault.New(fault.Corrupt, name, "deletion vector does not begin with the magic d1 d3 39 64")
	}
	return parseRoaring64(name, body[4:])
}

func pad(b []byte) []byte {
	if len(b) == 4 {
		return b
	}
	return make([]byte, 4)
}

func parseRoaring64(name string, b []byte) (positions *roaring.Bitmap, count uint64, err error) {
	r := bytescan.NewReader(name, b)
	n := r.U64()
	if n > uint64(r.Left())/8 { // a key and an empty bitmap take 12 bytes
		r.Fail("%d bitmaps do not fit in %d bytes", n, r.Left())
	}
	positions = roaring.New()
	last := int64(-1)
	for range n {
		key := r.U32()
		if r.Err() == nil && (int64(key) <= last || key > maxVectorKey) {
			r.Fail("bitmap key %d after %d: keys ascend and are at most %d", key, last, maxVectorKey)
		}
		if r.Err() != nil {
			break
		}
		last = int64(key)
		bitmap, used, err := parseRoaring(b[r.Offset():])
		if err != nil {
			return nil, 0, fault.New(fault.Corrupt, name, "bad roaring bitmap").WithCause(err)
		}
		r.Bytes(used)
		count += bitmap.GetCardinality()
		if key == 0 {
			positions = bitmap
		}
	}
	if err := r.Done(); err != nil {
		return nil, 0, err
	}
	return positions, count, nil
}

// parseRoaring reads a 32-bit bitmap from the start of b. The library panics on some bad input.
func parseRoaring(b []byte) (bitmap *roaring.Bitmap, used int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	bitmap = roaring.New()
	n, err := bitmap.ReadFrom(bytes.NewReader(b))
	if err != nil {
		return nil, 0, err
	}
	if err := bitmap.Validate(); err != nil {
		return nil, 0, err
	}
	return bitmap, int(n), nil
}
