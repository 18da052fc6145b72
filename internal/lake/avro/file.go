package avro

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
)

// MaxDecoded is the most bytes that the blocks of one file may decompress to.
const MaxDecoded = 512 << 20

const syncLen = 16

// File is an open object container file:
//
//	"Obj" 01 | file metadata (map of bytes: avro.schema, avro.codec, …) | 16-byte sync marker | blocks
//	block = record count (long) | byte size (long) | data, compressed | sync marker
type File struct {
	Schema *Schema
	Meta   map[string][]byte

	what  string
	limit int64 // MaxDecoded
	codec string
	rest  []byte // the blocks
	sync  []byte

	reuse bool
}

// Reuse makes Each decompress all blocks into the same memory, which other files use later: bytes that the cursor hands out are gone
// after the next block and after Each.
func (f *File) Reuse() { f.reuse = true }

// Open reads the header of b; what names the file in faults.
func Open(what string, b []byte) (*File, error) {
	c := newCursor(what, b)
	if magic := c.Fixed(4); !bytes.Equal(magic, []byte("Obj\x01")) {
		return nil, fault.New(fault.Corrupt, what, "not an Avro file: it does not begin with 4f 62 6a 01")
	}
	f := &File{Meta: map[string][]byte{}, what: what, limit: MaxDecoded}
	c.Blocks(func() {
		key := c.String()
		f.Meta[key] = c.Bytes()
	})
	f.sync = c.Fixed(syncLen)
	if c.err != nil {
		return nil, c.err
	}
	f.rest = b[c.off:]
	f.codec = string(f.Meta["avro.codec"])
	var err error
	f.Schema, err = ParseSchema(what, f.Meta["avro.schema"])
	return f, err
}

// Records is how many records the blocks say they hold.
func (f *File) Records() (n int64, err error) {
	err = f.blocks(func(count int64, raw []byte) error {
		if count < 0 || n+count < n {
			return fault.New(fault.Corrupt, f.what, "a block of %d records", count)
		}
		n += count
		return nil
	})
	return n, err
}

// Each calls visit once a record with the cursor at the record's first byte. visit must read or Skip the record exactly.
// Bytes that the cursor hands out stay valid, unless Reuse was called.
func (f *File) Each(visit func(*Cursor) error) error {
	decoded := int64(0) // bytes of the blocks that were read, decompressed
	z := inflaters.Get().(*inflater)
	defer inflaters.Put(z)
	return f.blocks(func(count int64, raw []byte) error {
		data, err := f.decompress(z, raw, f.limit-decoded)
		if err != nil {
			return err
		}
		decoded += int64(len(data))
		return f.block(count, data, visit)
	})
}

// blocks calls visit with the record count and the bytes of each block.
func (f *File) blocks(visit func(count int64, raw []byte) error) error {
	r := bytescan.NewReader(f.what, f.rest)
	for r.Left() > 0 {
		count, size := zigzag(r.Uvarint()), zigzag(r.Uvarint())
		if size < 0 || size > int64(r.Left()) {
			r.Fail("block of %d bytes does not fit in the %d left", size, r.Left())
			return r.Err()
		}
		raw := r.Bytes(int(size))
		if !bytes.Equal(r.Bytes(syncLen), f.sync) {
			r.Fail("no sync marker before offset %d of the blocks", r.Offset())
			return r.Err()
		}
		if err := visit(count, raw); err != nil {
			return err
		}
	}
	return r.Err()
}

func (f *File) block(count int64, data []byte, visit func(*Cursor) error) error {
	if count < 0 || count > int64(len(data)) {
		return fault.New(fault.Corrupt, f.what, "%d records in a block of %d bytes", count, len(data))
	}
	c := newCursor(f.what, data)
	for range count {
		if err := visit(c); err != nil {
			return err
		}
		if c.err != nil {
			return c.err
		}
	}
	return c.done()
}

var errTooLarge = errors.New("decompresses to more than the limit")

func (f *File) decompress(z *inflater, raw []byte, limit int64) ([]byte, error) {
	var out []byte
	var err error
	switch f.codec {
	case "", "null":
		return raw, nil
	case "deflate":
		out, err = f.inflate(z, raw, limit)
	case "snappy":
		out, err = unsnappy(raw, limit)
	case "zstandard":
		out, err = unzstd(raw, limit)
	default:
		return nil, fault.New(fault.Unsupported, f.what, "Avro codec %q", f.codec).
			WithFix("rewrite the file with one of null, deflate, snappy, zstandard")
	}
	if err == nil && int64(len(out)) > limit {
		err = errTooLarge
	}
	if errors.Is(err, errTooLarge) {
		return nil, fault.New(fault.Exhausted, f.what, "its blocks decompress to more than %d bytes", f.limit)
	}
	if err != nil {
		return nil, fault.New(fault.Corrupt, f.what, "bad %s block", f.codec).WithCause(err)
	}
	return out, nil
}

var inflaters = sync.Pool{New: func() any { return &inflater{} }}

// maxSpare is the most memory for a block that is kept for others.
const maxSpare = 4 << 20

// inflate decompresses to not much more than limit bytes.
func (f *File) inflate(z *inflater, raw []byte, limit int64) (out []byte, err error) {
	dst := z.spare
	if !f.reuse || cap(dst) == 0 { // metadata shrinks to about a quarter
		dst = make([]byte, 0, min(4*int64(len(raw))+fastOut, limit+fastOut))
	}
	out, err = z.inflate(dst[:0], raw, limit)
	if f.reuse && cap(out) <= maxSpare {
		z.spare = out
	}
	return out, err
}

// unsnappy checks the declared length before allocating. The CRC-32 behind the data is of the uncompressed bytes.
func unsnappy(raw []byte, limit int64) ([]byte, error) {
	if len(raw) < 4 {
		return nil, io.ErrUnexpectedEOF
	}
	body := raw[:len(raw)-4]
	n, err := s2.DecodedLen(body)
	if err != nil {
		return nil, err
	}
	// A snappy element of 3 bytes copies at most 64: a larger claim cannot be true and must not be allocated.
	if n > 64*len(body) {
		return nil, io.ErrUnexpectedEOF
	}
	if int64(n) > limit {
		return nil, errTooLarge
	}
	return s2.Decode(nil, body)
}

func unzstd(raw []byte, limit int64) ([]byte, error) {
	d, err := zstd.NewReader(bytes.NewReader(raw), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxMemory(uint64(max(limit, 1))), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	out, err := io.ReadAll(io.LimitReader(d, limit+1))
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		err = errTooLarge
	}
	return out, err
}

func zigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }
