package bundle

import (
	"crypto/sha256"
	"hash"
	"io"
	"sync"

	"github.com/skomerdb/skomer/internal/bytescan"
)

// blockSize is the bytes that are hashed and written at a time: they stay in a core's cache meanwhile.
const blockSize = 128 << 10

var blockPool = sync.Pool{New: func() any { return new([blockSize]byte) }}

// blocks gathers small writes into blocks, and takes the checksums of a body when its bytes are passed on.
type blocks struct {
	w     io.Writer
	block *[blockSize]byte // nil: nothing is gathered
	n     int              // bytes of it
	taken int              // of these, those that are in sums already or belong to no body
	sums  *sums            // of the body that is being written
}

// sums is the checksums of a body.
type sums struct {
	sha hash.Hash
	crc uint32
}

func (s *sums) add(p []byte) {
	s.sha.Write(p)
	s.crc = bytescan.ExtendCRC(s.crc, p)
}

// begin makes what is written from now on bytes of a body.
func (b *blocks) begin() {
	b.sums, b.taken = &sums{sha: sha256.New()}, b.n
}

// end is the checksums of the body.
func (b *blocks) end() *sums {
	b.take()
	s := b.sums
	b.sums = nil
	return s
}

// take adds the bytes at hand to the checksums.
func (b *blocks) take() {
	if b.sums != nil && b.taken < b.n {
		b.sums.add(b.block[b.taken:b.n])
	}
	b.taken = b.n
}

// Write implements io.Writer. What ends no block is at hand until flush.
func (b *blocks) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		if b.block == nil {
			b.block = blockPool.Get().(*[blockSize]byte)
		}
		n := copy(b.block[b.n:], rest)
		b.n, rest = b.n+n, rest[n:]
		if b.n == blockSize {
			if err := b.flush(); err != nil {
				return len(p) - len(rest), err
			}
		}
	}
	return len(p), nil
}

// flush passes on what is gathered.
func (b *blocks) flush() error {
	if b.block == nil {
		return nil
	}
	b.take()
	n, err := b.w.Write(b.block[:b.n])
	if err == nil && n != b.n {
		err = io.ErrShortWrite
	}
	blockPool.Put(b.block)
	b.block, b.n, b.taken = nil, 0, 0
	return err
}
