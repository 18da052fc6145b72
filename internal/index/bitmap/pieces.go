package bitmap

import (
	"math"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/rowset"
)

// inPieces is the first byte of a row set in pieces: any other has chunks.
const inPieces = 0

// eachPiece visits the pieces of a row set over size rows: row sets of rows from base on and below base + rows. The next piece is about rows
// behind these. A row set without is one of all rows.
func eachPiece(b []byte, size uint32, visit func(base, rows uint32, set []byte) error) error {
	if len(b) == 0 || b[0] != inPieces {
		return visit(0, size, b)
	}
	r, end := bytescan.NewReader(name+" row set", b[1:]), uint64(0)
	for r.Left() > 0 {
		base := end + min(r.Uvarint(), math.MaxUint32)
		rows := min(r.Uvarint(), math.MaxUint32)
		set := r.Blob(maxRowSet)
		if end = base + rows; r.Err() == nil && end > uint64(size) {
			r.Fail("a piece of %d rows from row %d on of %d", rows, base, size)
		}
		if r.Err() != nil {
			break
		}
		if err := visit(uint32(base), uint32(rows), set); err != nil {
			return err
		}
	}
	return r.Done()
}

// visit shows the rows of a unit of an artifact of size rows as ascending ranges. After a failure some of them may have been shown.
func (s rowSet) visit(b []byte, size uint32, show func(rowset.Range)) error {
	n := int64(0)
	err := eachPiece(b, size, func(base, rows uint32, set []byte) error {
		r := bytescan.NewReader(name+" row set", set)
		n += index.VisitRows(r, rows, func(x rowset.Range) { show(rowset.Range{Start: x.Start + base, End: x.End + base}) })
		return r.Done()
	})
	if err == nil && n != int64(s.count) {
		err = miscounted(n, s.count)
	}
	return err
}

func miscounted(n int64, want uint32) error {
	return index.Broken(name+" row set", "%d rows, the dictionary says %d", n, want)
}

// setWriter writes the row set of a value of a merge, in pieces where those of sources are copied. Rows come in ascending order.
type setWriter struct {
	count  int64
	pieces bytescan.Writer // the row set, as far as pieces of it are finished
	end    uint32          // of the rows of the last one
	open   index.RowsWriter
	base   uint32 // of the rows of open, if there are any
	joined bytescan.Writer
}

func (w *setWriter) reset() {
	w.pieces.Buf, w.end, w.count = w.pieces.Buf[:0], 0, 0
	w.open.Reset()
}

// size is about the bytes of the row set.
func (w *setWriter) size() int { return len(w.pieces.Buf) + w.open.Size() }

// at makes ready to write rows from row on.
func (w *setWriter) at(row uint32) {
	if w.open.Count() > 0 {
		return
	}
	w.open.Reset() // of a chunk that it turned to
	if w.base = row; !w.inPieces() {
		w.base = 0 // what is no piece needs no other
	}
}

func (w *setWriter) add(rows rowset.Range) {
	w.at(rows.Start)
	w.open.Add(rowset.Range{Start: rows.Start - w.base, End: rows.End - w.base})
	w.count += int64(rows.Len())
}

// splice adds those of count rows of a source of size rows that lie in stretches of it. Where all rows stay together, pieces of at least
// least bytes are copied.
func (w *setWriter) splice(b []byte, size, count uint32, along []index.Stretch, least int) error {
	together := len(along) == 1 && along[0].Old.Len() == size
	read, copied := int64(0), false
	err := eachPiece(b, size, func(base, rows uint32, set []byte) error {
		first := along[0].To
		if together {
			first += base
		}
		if together && len(set) >= least {
			copied = true
			w.copy(first, rows, set)
			return nil
		}
		w.at(first)
		before := w.open.Count()
		n, err := w.open.Splice(name+" row set", set, rowset.Range{Start: base, End: base + rows}, along, w.base)
		read += n
		if !together {
			w.count += w.open.Count() - before
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case !copied && read != int64(count) || read > int64(count):
		return miscounted(read, count)
	case together:
		w.count += int64(count)
	}
	return nil
}

// copy adds a piece as it is: of rows from base on. That it has none behind them is for readers to see.
func (w *setWriter) copy(base, rows uint32, set []byte) {
	w.close()
	w.put(base, rows, set)
}

// close finishes the piece of spliced rows.
func (w *setWriter) close() {
	if w.open.Count() > 0 {
		w.joined.Buf = w.joined.Buf[:0]
		w.open.Append(&w.joined)
		w.put(w.base, uint32(w.open.End()), w.joined.Buf)
		w.open.Reset()
	}
}

func (w *setWriter) put(base, rows uint32, set []byte) {
	if !w.inPieces() {
		w.pieces.U8(inPieces)
	}
	w.pieces.Uvarint(uint64(base - w.end))
	w.pieces.Uvarint(uint64(rows))
	w.pieces.Uvarint(uint64(len(set)))
	w.pieces.Bytes(set)
	w.end = base + rows
}

// inPieces reports whether a piece is finished: then the row set is in pieces.
func (w *setWriter) inPieces() bool { return len(w.pieces.Buf) > 0 }

// bytes ends the row set and returns it, in scratch or as a view that the next one ends.
func (w *setWriter) bytes(scratch *bytescan.Writer) []byte {
	if !w.inPieces() {
		w.open.Append(scratch)
		return scratch.Buf
	}
	w.close()
	return w.pieces.Buf
}
