package ordered

import (
	"bytes"
	"math/bits"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/rowset"
)

// writer turns sorted pairs into blocks and their directory.
type writer struct {
	parts    []part // of tuples
	enc      index.Encoding
	narrow   bool
	variable bool
	rows     uint32
	rowBits  uint
	sizes    sizes
	body     index.Sink

	// the key being gathered
	any       bool
	key       []byte
	keyNarrow uint64
	runs      []rowset.Range
	continues bool // its earlier rows are in the block before

	// the block being filled
	keys      bytescan.Writer
	postings  bytescan.Writer // empty while every key has one row
	singles   []uint32        // the one row of each key, while every key has one
	asPosted  int             // bytes that singles would take as postings
	count     int
	first     []byte // first key
	continued bool   // which is also the last of the block before
	last      []byte // last key written, in this block or before it
	blocks    directory
	dataBytes int64

	block  bytescan.Writer // memory of what closeBlock writes
	ranges []rowset.Range  // and of several
}

func newWriter(e index.Encoding, rows uint32, s sizes, body index.Sink) *writer {
	return &writer{sizes: s, enc: e, narrow: e.Narrow(), variable: variable(e), rows: rows, rowBits: rowBits(rows), body: body}
}

// rowBits is the width of a packed row number.
func rowBits(rows uint32) uint {
	if rows == 0 {
		return 0
	}
	return uint(bits.Len32(rows - 1))
}

// add takes the next pair. Of narrow keys key is nil.
func (w *writer) add(narrow uint64, key []byte, row uint32) error {
	return w.addRun(narrow, key, rowset.Range{Start: row, End: row + 1})
}

// addRun takes the rows of r, which come after all earlier ones of the same key.
func (w *writer) addRun(narrow uint64, key []byte, r rowset.Range) error {
	same := w.any && narrow == w.keyNarrow && (w.narrow || bytes.Equal(key, w.key))
	if same {
		if n := len(w.runs); w.runs[n-1].End == r.Start {
			w.runs[n-1].End = r.End
			return nil
		} else if n < w.sizes.runs {
			w.runs = append(w.runs, r)
			return nil
		}
	}
	if err := w.closeKey(same); err != nil {
		return err
	}
	w.any, w.keyNarrow = true, narrow
	if w.narrow {
		w.key = w.enc.AppendNarrow(w.key[:0], narrow)
	} else {
		w.key = append(w.key[:0], key...)
	}
	w.runs = append(w.runs[:0], r)
	return nil
}

// closeKey puts the gathered key into the block, and closes the block when it is full or the key goes on.
func (w *writer) closeKey(goesOn bool) error {
	if !w.any {
		return nil
	}
	shared := 0
	if w.count == 0 {
		w.first = append(w.first[:0], w.key...)
		w.continued = w.continues
	} else {
		shared = commonPrefix(w.last, w.key)
	}
	w.keys.Uvarint(uint64(shared))
	if w.variable {
		w.keys.Uvarint(uint64(len(w.key) - shared))
	}
	w.keys.Bytes(w.key[shared:])
	w.post()
	if w.count == 0 {
		// The separator needs the last key of the block before.
		w.blocks = append(w.blocks, entry{sep: separator(w.last, w.first, len(w.blocks) == 0), continued: w.continued})
	}
	w.count++
	w.last = append(w.last[:0], w.key...)
	w.continues = goesOn
	if goesOn || len(w.keys.Buf)+len(w.postings.Buf)+w.asPosted >= w.sizes.block {
		return w.closeBlock()
	}
	return nil
}

// post puts the rows of the key into the block: packed while every key has one, and as postings from the first on that has more.
func (w *writer) post() {
	one := len(w.runs) == 1 && w.runs[0].Len() == 1
	if one && len(w.singles) == w.count {
		w.oneRow(w.runs[0].Start)
		return
	}
	for _, row := range w.singles {
		appendPosting(&w.postings, []rowset.Range{{Start: row, End: row + 1}})
	}
	w.singles, w.asPosted = w.singles[:0], 0
	appendPosting(&w.postings, w.runs)
}

// oneRow notes the row of a key that has one.
func (w *writer) oneRow(row uint32) {
	w.singles = append(w.singles, row)
	w.asPosted += postedBytes(row)
}

// postedBytes is what the only row of a key would take as a posting: a byte, and one for every seven bits begun.
func postedBytes(row uint32) int { return 1 + (bits.Len32(row|1)+6)*37>>8 }

// separator is the shortest start of first that is above last, or first itself where there is no last or the two are equal.
func separator(last, first []byte, veryFirst bool) []byte {
	n := commonPrefix(last, first) + 1
	if veryFirst || n > len(first) {
		n = len(first)
	}
	return bytes.Clone(first[:n])
}

func appendPosting(w *bytescan.Writer, runs []rowset.Range) {
	total := uint64(0)
	for _, r := range runs {
		total += uint64(r.Len())
	}
	asRuns := total > 2*uint64(len(runs))
	head, at := total<<1, uint32(0)
	if asRuns {
		head = uint64(len(runs))<<1 | 1
	}
	w.Uvarint(head)
	for _, r := range runs {
		w.Uvarint(uint64(r.Start - at))
		at = r.End
		if asRuns {
			w.Uvarint(uint64(r.Len() - 1))
			continue
		}
		for range r.Len() - 1 {
			w.Uvarint(0)
		}
	}
}

func (w *writer) closeBlock() error {
	if w.count == 0 {
		return nil
	}
	b := &w.block
	b.Buf = b.Buf[:0]
	unique := len(w.singles) == w.count
	if unique {
		b.U8(formUnique)
	} else {
		b.U8(formPostings)
	}
	b.Uvarint(uint64(w.count))
	b.Bytes(w.keys.Buf)
	if unique {
		packRows(b, w.singles, w.rowBits)
	} else {
		b.Bytes(w.postings.Buf)
	}
	u, err := index.WriteUnit(w.body, b.Buf)
	w.blocks[len(w.blocks)-1].unit = u
	w.dataBytes += u.Len
	w.keys.Buf, w.postings.Buf, w.singles, w.asPosted, w.count = w.keys.Buf[:0], w.postings.Buf[:0], w.singles[:0], 0, 0
	return err
}

// seal writes what is left of the body and returns the root. unordered writes the null and NaN rows, and describes them.
func (w *writer) seal(unordered func(*bytescan.Writer) error) ([]byte, string, error) {
	dir, level, err := w.finish()
	if err != nil {
		return nil, "", err
	}
	dataBytes, rest := w.dataBytes, &bytescan.Writer{}
	if err := unordered(rest); err != nil {
		return nil, "", err
	}
	if len(dir) > 0 {
		rest.Blob(w.last)
		rest.Uvarint(uint64(dataBytes))
		rest.U8(level)
		dir.append(rest)
	}
	root := index.StartRoot(version, w.enc)
	if len(w.parts) > 0 {
		root = startTuples(w.parts)
	}
	root.Uvarint(uint64(w.rows))
	root.Uvarint(uint64(w.body.Offset()))
	root.Bytes(rest.Buf)
	if len(root.Buf) > maxRoot || separatorBytes(dir) > maxSeparators {
		return nil, "the directory of its long keys would be larger than the index is worth", nil
	}
	return root.Buf, "", nil
}

// finish writes what is left and the directory pages, and returns the root's entries and their level.
func (w *writer) finish() (directory, uint8, error) {
	if err := w.closeKey(false); err != nil {
		return nil, 0, err
	}
	if err := w.closeBlock(); err != nil {
		return nil, 0, err
	}
	total := directorySize(w.blocks)
	if total <= w.sizes.page {
		return w.blocks, levelBlocks, nil
	}
	target := max(w.sizes.page, total/maxPages)
	var top directory
	for left := w.blocks; len(left) > 0; {
		n, size, separators := 0, 0, 0
		for n < len(left) && size < target && separators < maxSeparators/2 {
			size += entrySize(left, n)
			separators += len(left[n].sep)
			n++
		}
		page := &bytescan.Writer{}
		left[:n].append(page)
		u, err := index.WriteUnit(w.body, page.Buf)
		if err != nil {
			return nil, 0, err
		}
		top = append(top, entry{sep: left[0].sep, continued: left[0].continued, unit: u})
		left = left[n:]
	}
	return top, levelPages, nil
}

func directorySize(d directory) int {
	size := 0
	for i := range d {
		size += entrySize(d, i)
	}
	return size
}

func separatorBytes(d directory) int {
	size := 0
	for i := range d {
		size += len(d[i].sep)
	}
	return size
}

// entrySize is about what entry i takes on disk.
func entrySize(d directory, i int) int {
	shared := 0
	if i > 0 {
		shared = commonPrefix(d[i-1].sep, d[i].sep)
	}
	return 10 + len(d[i].sep) - shared
}
