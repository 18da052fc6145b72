package parquetio

import (
	"bytes"
	"encoding/binary"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/skomerdb/skomer/internal/fault"
)

// Compression codecs, by their numbers in parquet.thrift.
const (
	codecNone   = 0
	codecSnappy = 1
	codecGzip   = 2
	codecLZO    = 3
	codecBrotli = 4
	codecLZ4    = 5 // Hadoop's framing, or whatever its writer thought
	codecZstd   = 6
	codecLZ4Raw = 7
)

var codecNames = [...]string{"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"}

// maxExpansion is the most that one byte of a codec can become, a little above the format's own bound; codecs without a useful
// bound are held by maxPage alone.
var maxExpansion = [...]int{1, 64, 1040, 0, 0, 256, 0, 256}

// maxPage is the largest page that is read, after decompression.
const maxPage = 512 << 20

var errShortPage = fault.New(fault.Corrupt, "", "compressed page does not have the stated size")

var zstdDecoders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(maxPage))
	if err != nil {
		return err
	}
	return d
}}

// checkPageSize refuses a page size before anything of it is allocated.
func checkPageSize(codec int8, compressed, size int) error {
	if size > maxPage {
		return fault.New(fault.Exhausted, "", "page of %d bytes, the limit is %d", size, int(maxPage))
	}
	if m := maxExpansion[codec]; m > 0 && size > (compressed+16)*m {
		return fault.New(fault.Corrupt, "", "page claims %d bytes from %d of %s", size, compressed, codecNames[codec])
	}
	return nil
}

// decompress inflates src to exactly size bytes, into dst's room if it suffices. The result may be src itself.
func decompress(codec int8, dst, src []byte, size int) ([]byte, error) {
	if codec == codecNone {
		return src, nil
	}
	if codec < 0 || int(codec) >= len(codecNames) || codec == codecLZO {
		return nil, unsupportedCodec(codec)
	}
	if err := checkPageSize(codec, len(src), size); err != nil {
		return nil, err
	}
	if size == 0 {
		return dst[:0], nil
	}
	if cap(dst) < size {
		dst = make([]byte, size)
	}
	dst = dst[:size:size]
	n, err := inflate(codec, dst, src)
	if err != nil {
		return nil, fault.New(fault.Corrupt, "", "%s", codecNames[codec]).WithCause(err)
	}
	if n != size {
		return nil, errShortPage
	}
	return dst, nil
}

func unsupportedCodec(codec int8) error {
	name := "number"
	if codec == codecLZO {
		name = "LZO"
	}
	return fault.New(fault.Unsupported, "", "compression codec %s (%d)", name, codec)
}

func inflate(codec int8, dst, src []byte) (int, error) {
	switch codec {
	case codecSnappy:
		if n, err := snappy.DecodedLen(src); err != nil || n != len(dst) {
			return 0, errShortPage
		}
		out, err := snappy.Decode(dst, src)
		return len(out), err
	case codecGzip:
		r, err := gzip.NewReader(bytes.NewReader(src))
		if err != nil {
			return 0, err
		}
		return fill(r, dst)
	case codecBrotli:
		return fill(brotli.NewReader(bytes.NewReader(src)), dst)
	case codecZstd:
		return inflateZstd(dst, src)
	case codecLZ4Raw:
		return lz4.UncompressBlock(src, dst)
	default:
		return inflateHadoopLZ4(dst, src)
	}
}

// fill reads exactly len(dst) bytes and wants the end after them.
func fill(r io.Reader, dst []byte) (int, error) {
	n, err := io.ReadFull(r, dst)
	if err != nil {
		return n, err
	}
	var more [1]byte
	if k, _ := r.Read(more[:]); k > 0 {
		return n + k, nil
	}
	return n, nil
}

func inflateZstd(dst, src []byte) (int, error) {
	got := zstdDecoders.Get()
	d, ok := got.(*zstd.Decoder)
	if !ok {
		return 0, got.(error)
	}
	defer zstdDecoders.Put(d)
	out, err := d.DecodeAll(src, dst[:0])
	return len(out), err
}

// inflateHadoopLZ4 reads codec 5 in the three shapes that writers gave it: Hadoop's blocks (big-endian uncompressed and compressed
// sizes, then a raw block, repeated), a raw block, or an LZ4 frame.
func inflateHadoopLZ4(dst, src []byte) (int, error) {
	if n, ok := hadoopBlocks(dst, src); ok {
		return n, nil
	}
	if n, err := lz4.UncompressBlock(src, dst); err == nil && n == len(dst) {
		return n, nil
	}
	return fill(lz4.NewReader(bytes.NewReader(src)), dst)
}

func hadoopBlocks(dst, src []byte) (n int, ok bool) {
	for len(src) >= 8 {
		out, in := binary.BigEndian.Uint32(src), binary.BigEndian.Uint32(src[4:])
		src = src[8:]
		if uint64(in) > uint64(len(src)) || uint64(out) > uint64(len(dst)-n) {
			return 0, false
		}
		k, err := lz4.UncompressBlock(src[:in], dst[n:n+int(out)])
		if err != nil || k != int(out) {
			return 0, false
		}
		src, n = src[in:], n+k
	}
	return n, len(src) == 0 && n == len(dst)
}
