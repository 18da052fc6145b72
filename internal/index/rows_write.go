package index

import (
	"encoding/binary"
	"math/bits"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/rowset"
)

// AppendRows writes a set; equal sets give equal bytes.
func AppendRows(w *bytescan.Writer, s *rowset.Set) {
	var rows RowsWriter
	for _, r := range s.Ranges() {
		rows.Add(r)
	}
	rows.Append(w)
}

// maxListed is the ranges of a chunk above which its bits are smaller: a range takes two bytes at least.
const maxListed = chunkBitmap / 2

// RowsWriter writes a set whose rows come in ascending order. It holds the bytes written and those of one chunk.
type RowsWriter struct {
	body   []byte
	chunks int
	next   uint64 // chunk after the last one written
	cur    uint64
	count  int64
	end    uint64 // after the last row added
	reused bool   // one for many sets: it keeps its memory

	// Chunk cur, numbered from its start: ranges as they are written, and the last one; or, once these take more, its bits.
	list  []byte
	n     int
	at    uint32 // where the n ranges end
	open  rowset.Range
	dense bool
	words []uint64
}

// Add adds rows that start at or after the end of all rows before; ranges that touch are joined.
func (w *RowsWriter) Add(r rowset.Range) {
	w.count, w.end = w.count+int64(r.Len()), uint64(r.End)
	for at := uint64(r.Start); at < uint64(r.End); {
		w.turnTo(at / chunkRows)
		base := w.cur * chunkRows
		end := min(uint64(r.End), base+chunkRows)
		w.add(uint32(at-base), uint32(end-base))
		at = end
	}
}

// turnTo makes chunk c the one at hand.
func (w *RowsWriter) turnTo(c uint64) {
	if c != w.cur {
		w.flush()
		w.cur = c
	}
}

// add adds a range of the chunk at hand.
func (w *RowsWriter) add(start, end uint32) {
	switch {
	case w.dense:
		markWords(w.words, start, end)
	case start == w.open.End:
		w.open.End = end
	default:
		w.closeRange()
		w.open = rowset.Range{Start: start, End: end}
		if w.n > maxListed || len(w.list) > chunkBitmap {
			w.densify()
		}
	}
}

// closeRange lists the open range.
func (w *RowsWriter) closeRange() {
	if w.open.End == 0 {
		return
	}
	w.list = binary.AppendUvarint(w.list, uint64(w.open.Start-w.at))
	w.list = binary.AppendUvarint(w.list, uint64(w.open.Len()-1))
	w.n, w.at, w.open = w.n+1, w.open.End, rowset.Range{}
}

// densify goes on with bits.
func (w *RowsWriter) densify() {
	if w.words == nil {
		w.words = make([]uint64, chunkRows/64)
	} else {
		clear(w.words)
	}
	markList(w.words, w.list, 0)
	markWords(w.words, w.open.Start, w.open.End)
	w.dense, w.list, w.n, w.at, w.open = true, w.list[:0], 0, 0, rowset.Range{}
}

// sparsify lists the ranges of the bits again, where these are few.
func (w *RowsWriter) sparsify() {
	if !w.dense || runsOf(w.words) > maxListed {
		return
	}
	w.dense = false
	eachRun(w.words, func(start, end uint32) {
		w.closeRange()
		w.open = rowset.Range{Start: start, End: end}
	})
}

// Reset starts a new set and keeps the memory.
func (w *RowsWriter) Reset() {
	*w = RowsWriter{body: w.body[:0], list: w.list[:0], words: w.words, reused: true}
}

// Count is the number of rows added.
func (w *RowsWriter) Count() int64 { return w.count }

// Ends reports whether row is the last one added.
func (w *RowsWriter) Ends(row uint32) bool { return w.end == uint64(row)+1 }

// End is the row after the last one added.
func (w *RowsWriter) End() uint64 { return w.end }

// Size is the bytes of finished chunks.
func (w *RowsWriter) Size() int { return len(w.body) }

// flush writes the chunk at hand as ranges or bits, whichever is smaller.
func (w *RowsWriter) flush() {
	w.sparsify()
	w.closeRange()
	if !w.dense && w.n == 0 {
		return
	}
	if !w.dense && (w.n > maxListed || len(w.list)+uvarintLen(uint64(w.n)) > chunkBitmap) {
		w.densify()
	}
	head := (w.cur - w.next) << 1
	if w.dense {
		w.body = binary.AppendUvarint(w.body, head|1)
		for _, x := range w.words {
			w.body = binary.LittleEndian.AppendUint64(w.body, x)
		}
	} else {
		w.body = binary.AppendUvarint(w.body, head)
		w.body = binary.AppendUvarint(w.body, uint64(w.n))
		w.body = append(w.body, w.list...)
	}
	w.chunks, w.next = w.chunks+1, w.cur+1
	w.list, w.n, w.at, w.open, w.dense = w.list[:0], 0, 0, rowset.Range{}, false
	if !w.reused { // many writers share the memory of a build
		if w.words = nil; cap(w.list) > 256 {
			w.list = nil
		}
	}
}

// Append ends the set and writes it.
func (w *RowsWriter) Append(out *bytescan.Writer) {
	w.flush()
	out.Uvarint(uint64(w.chunks))
	out.Bytes(w.body)
}

// Bytes ends the set and writes it to scratch, whose bytes it returns.
func (w *RowsWriter) Bytes(scratch *bytescan.Writer) []byte {
	w.Append(scratch)
	return scratch.Buf
}

func uvarintLen(x uint64) int { return (bits.Len64(x|1) + 6) / 7 }

// markList sets the bits of listed ranges, the first of which follows row at.
func markList(words []uint64, list []byte, at uint32) {
	for len(list) > 0 {
		gap, n := binary.Uvarint(list)
		length, m := binary.Uvarint(list[n:])
		start := at + uint32(gap)
		at = start + uint32(length) + 1
		markWords(words, start, at)
		list = list[n+m:]
	}
}

func markWords(words []uint64, start, end uint32) {
	for at := start; at < end; {
		n := min(64-at&63, end-at)
		words[at>>6] |= ^uint64(0) >> (64 - n) << (at & 63)
		at += n
	}
}

// runsOf counts the runs of bits.
func runsOf(words []uint64) (n int) {
	before := uint64(0) // the bit before the word
	for _, x := range words {
		n += bits.OnesCount64(x &^ (x<<1 | before))
		before = x >> 63
	}
	return n
}

// eachRun visits the runs of bits.
func eachRun(words []uint64, visit func(start, end uint32)) {
	start, in := uint32(0), false
	for i, x := range words {
		at := uint32(i) * 64
		for left := uint32(64); left > 0; {
			y := x
			if in {
				y = ^x
			}
			n := min(uint32(bits.TrailingZeros64(y)), left)
			if at, left, x = at+n, left-n, x>>n; left == 0 {
				break
			}
			if in {
				visit(start, at)
			}
			start, in = at, !in
		}
	}
	if in {
		visit(start, uint32(len(words))*64)
	}
}
