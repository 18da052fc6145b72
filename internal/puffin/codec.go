package puffin

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

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

// The fields of an LZ4 frame's head (https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md, version 1.6.4):
// magic 4, FLG 1, BD 1, content size 8 if FLG bit 3 is set, …
const (
	lz4Magic       = 0x184D2204
	lz4ContentSize = 1 << 3
	lz4MaxRatio    = 255 // a byte of a match length stands for at most 255 bytes
)

// inflateLZ4 decodes one LZ4 frame. Puffin demands that it states its content size.
func inflateLZ4(name string, frame []byte, limit int64) ([]byte, error) {
	if len(frame) < 15 || binary.LittleEndian.Uint32(frame) != lz4Magic {
		return nil, fault.New(fault.Corrupt, name, "not an LZ4 frame")
	}
	if frame[4]&lz4ContentSize == 0 {
		return nil, fault.New(fault.Corrupt, name, "LZ4 frame does not state its content size")
	}
	size := binary.LittleEndian.Uint64(frame[6:])
	if size > uint64(limit) {
		return nil, tooLarge(name, size, limit)
	}
	if size/lz4MaxRatio > uint64(len(frame)) {
		return nil, fault.New(fault.Corrupt, name, "LZ4 frame of %d bytes claims %d bytes of content", len(frame), size)
	}
	in := bytes.NewReader(frame)
	out := make([]byte, size)
	err := guard(func() error {
		r := lz4.NewReader(in)
		if _, err := io.ReadFull(r, out); err != nil {
			return err
		}
		var more [1]byte
		if n, err := r.Read(more[:]); n != 0 || err != io.EOF {
			return fmt.Errorf("content is longer than the %d bytes stated, or damaged at its end: %v", size, err)
		}
		return nil
	})
	if err == nil && in.Len() != 0 {
		err = fmt.Errorf("%d bytes follow the frame", in.Len())
	}
	if err != nil {
		return nil, fault.Wrap(fault.Corrupt, name, fmt.Errorf("LZ4 frame: %w", err))
	}
	return out, nil
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
