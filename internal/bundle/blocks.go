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

// blocks gathers small writes into blocks. A full one is hashed and passed on in the background, while the next is filled.
type blocks struct {
	w     io.Writer
	block *[blockSize]byte // nil: nothing is gathered
	n     int              // bytes of it
	taken int              // of these, those that are in sums already or belong to no body
	sums  *sums            // of the body that is being written
	busy  chan error       // of the block in the background; nil: there is none
	err   error            // of the first block that failed
}

// sums is the checksums of a body.
type sums struct {
	sha hash.Hash
	crc uint32
}

// add adds bytes of a body; nil sums are of none.
func (s *sums) add(p []byte) {
	if s != nil {
		s.sha.Write(p)
		s.crc = bytescan.ExtendCRC(s.crc, p)
	}
}

// begin makes what is written from now on bytes of a body.
func (b *blocks) begin() {
	b.sums, b.taken = &sums{sha: sha256.New()}, b.n
}

// end is the checksums of the body. They mean nothing after a failure, which the next full block or flush reports.
func (b *blocks) end() *sums {
	_ = b.wait()
	if b.block != nil {
		b.sums.add(b.block[b.taken:b.n])
	}
	s := b.sums
	b.sums, b.taken = nil, b.n
	return s
}

// Write implements io.Writer. A failure is that of bytes before these.
func (b *blocks) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		if b.block == nil {
			b.block = blockPool.Get().(*[blockSize]byte)
		}
		n := copy(b.block[b.n:], rest)
		if b.n, rest = b.n+n, rest[n:]; b.n < blockSize {
			continue
		}
		if err := b.wait(); err != nil {
			return len(p) - len(rest), err
		}
		busy, block, taken, sums := make(chan error, 1), b.block, b.taken, b.sums
		b.busy, b.block, b.n, b.taken = busy, nil, 0, 0
		go func() { busy <- b.pass(block, taken, blockSize, sums) }()
	}
	return len(p), nil
}

// wait waits for the block in the background.
func (b *blocks) wait() error {
	if b.busy != nil {
		err := <-b.busy
		if b.busy = nil; b.err == nil {
			b.err = err
		}
	}
	return b.err
}

// pass passes on n bytes of a block and adds to sums those that were not taken yet.
func (b *blocks) pass(block *[blockSize]byte, taken, n int, sums *sums) error {
	sums.add(block[taken:n])
	written, err := b.w.Write(block[:n])
	if err == nil && written != n {
		err = io.ErrShortWrite
	}
	blockPool.Put(block)
	return err
}

// flush passes on what is gathered and waits for all of it.
func (b *blocks) flush() error {
	if b.wait() != nil || b.block == nil {
		return b.err
	}
	b.err = b.pass(b.block, b.taken, b.n, b.sums)
	b.block, b.n, b.taken = nil, 0, 0
	return b.err
}
