package puffin

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
)

// Decode gives the content of a blob from its stored bytes. A blob without codec is returned as it is. Content of more
// than limit bytes is Exhausted, and nothing is allocated for it. name is the object's in errors.
func Decode(name string, b Blob, stored []byte, limit int64) ([]byte, error) {
	if int64(len(stored)) != b.Length {
		return nil, fault.New(fault.Invalid, name, "blob of %d bytes given as %d", b.Length, len(stored))
	}
	switch b.Codec {
	case "":
		if b.Length > limit {
			return nil, tooLarge(name, uint64(b.Length), limit)
		}
		return stored, nil
	case LZ4:
		return inflateLZ4(name, stored, limit)
	case Zstd:
		return inflateZstd(name, stored, limit)
	}
	return nil, fault.New(fault.Unsupported, name, "blob of type %q has the unknown codec %q", b.Type, b.Codec)
}

func tooLarge(name string, size uint64, limit int64) error {
	return fault.New(fault.Exhausted, name, "%d bytes when decompressed, the limit is %d", size, limit)
}

// The parts of an LZ4 frame (https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md, version 1.6.4):
//
//	magic 4, FLG 1, BD 1, content size 8 if FLG bit 3, dictionary id 4 if FLG bit 0, header checksum 1
//	blocks: size 4 (bit 31: stored), size bytes, checksum 4 if FLG bit 4
//	end mark 4 of zero, content checksum 4 if FLG bit 2
const (
	lz4Magic           = 0x184D2204
	lz4DictionaryID    = 1 << 0
	lz4ContentChecksum = 1 << 2
	lz4ContentSize     = 1 << 3
	lz4BlockChecksum   = 1 << 4
	lz4MaxRatio        = 255 // a byte of a match length stands for at most 255 bytes
)

// inflateLZ4 decodes one LZ4 frame. Puffin demands that it states its content size.
func inflateLZ4(name string, frame []byte, limit int64) ([]byte, error) {
	size, err := lz4Envelope(name, frame)
	if err != nil {
		return nil, err
	}
	if size > uint64(limit) {
		return nil, tooLarge(name, size, limit)
	}
	if size/lz4MaxRatio > uint64(len(frame)) {
		return nil, fault.New(fault.Corrupt, name, "LZ4 frame of %d bytes claims %d bytes of content", len(frame), size)
	}
	out := make([]byte, size)
	err = guard(func() error {
		r := lz4.NewReader(bytes.NewReader(frame))
		if _, err := io.ReadFull(r, out); err != nil {
			return err
		}
		var more [1]byte
		if n, err := r.Read(more[:]); n != 0 || !errors.Is(err, io.EOF) {
			return fmt.Errorf("content is not the %d bytes stated, or damaged at its end: %v", size, err) //nolint:errorlint // err may be nil
		}
		return nil
	})
	if err != nil {
		return nil, fault.Wrap(fault.Corrupt, name, fmt.Errorf("LZ4 frame: %w", err))
	}
	return out, nil
}

// lz4Envelope checks that frame is one complete frame, which the decoder does not at its end, and gives the content size.
func lz4Envelope(name string, frame []byte) (size uint64, err error) {
	r := bytescan.NewReader(name, frame)
	if r.U32() != lz4Magic {
		return 0, fault.New(fault.Corrupt, name, "not an LZ4 frame")
	}
	flg := r.U8()
	r.U8()
	if flg&lz4ContentSize == 0 {
		return 0, fault.New(fault.Corrupt, name, "LZ4 frame does not state its content size")
	}
	size = r.U64()
	if flg&lz4DictionaryID != 0 {
		return 0, fault.New(fault.Unsupported, name, "LZ4 frame needs a dictionary")
	}
	r.U8()
	for {
		n := r.U32() &^ (1 << 31)
		if n == 0 { // the end mark, or an error
			break
		}
		r.Bytes(int(n))
		if flg&lz4BlockChecksum != 0 {
			r.U32()
		}
	}
	if flg&lz4ContentChecksum != 0 {
		r.U32()
	}
	return size, r.Done()
}

// inflateZstd decodes one Zstandard frame (RFC 8878). Puffin demands that it states its content size.
func inflateZstd(name string, frame []byte, limit int64) ([]byte, error) {
	var h zstd.Header
	var out []byte
	err := guard(func() error { return h.Decode(frame) })
	switch {
	case err != nil:
	case h.Skippable || !h.HasFCS:
		return nil, fault.New(fault.Corrupt, name, "zstd frame does not state its content size")
	case h.FrameContentSize > uint64(limit):
		return nil, tooLarge(name, h.FrameContentSize, limit)
	default:
		err = guard(func() error {
			d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(max(1, uint64(limit))))
			if err != nil {
				return err
			}
			defer d.Close()
			out, err = d.DecodeAll(frame, nil)
			return err
		})
		if err == nil && uint64(len(out)) != h.FrameContentSize {
			err = fmt.Errorf("content of %d bytes, %d stated", len(out), h.FrameContentSize)
		}
	}
	if err != nil {
		return nil, fault.Wrap(fault.Corrupt, name, fmt.Errorf("zstd frame: %w", err))
	}
	return out, nil
}

// guard turns a panic of a decoder on bad input into an error.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoder failed: %v", p)
		}
	}()
	return f()
}
