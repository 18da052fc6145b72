package ordered

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/rowset"
)

// whole takes a key with all its rows, ascending; none: it is gone.
func (w *writer) whole(key []byte, runs []rowset.Range) error {
	if err := w.part(key, runs); err != nil {
		return err
	}
	return w.end()
}

// part takes a key with some of its rows, behind those of the parts before.
func (w *writer) part(key []byte, runs []rowset.Range) error {
	narrow := uint64(0)
	if w.narrow {
		narrow = binary.BigEndian.Uint64(key)
	}
	for i, r := range runs {
		if n := len(w.runs); i > 0 && w.runs[n-1].End < r.Start && n < w.sizes.runs {
			w.runs = append(w.runs, r)
			continue
		}
		if err := w.addRun(narrow, key, r); err != nil {
			return err
		}
	}
	return nil
}

// end follows the parts of a key.
func (w *writer) end() error {
	err := w.closeKey(false)
	w.any = false
	return err
}

// numbers takes all pairs of numbers.
func (w *writer) numbers(batch []pair) error {
	var key [8]byte
	for len(batch) > 0 {
		n := 1
		for n < len(batch) && batch[n].word == batch[0].word {
			n++
		}
		binary.BigEndian.PutUint64(key[:], batch[0].word)
		if err := w.several(key[:], batch[:n]); err != nil {
			return err
		}
		batch = batch[n:]
		n, err := w.oneEach(batch)
		if err != nil {
			return err
		}
		batch = batch[n:]
	}
	return nil
}

// oneEach takes the first pairs of numbers into the block at hand, as long as each has a key of its own, and reports how many.
func (w *writer) oneEach(batch []pair) (n int, err error) {
	if w.count == 0 {
		return 0, nil
	}
	if len(w.singles) < w.count {
		return w.oneEachPosted(batch)
	}
	last := binary.BigEndian.Uint64(w.last)
	for n < len(batch) {
		left := w.sizes.block - len(w.keys.Buf) - w.asPosted
		if left <= 0 {
			break
		}
		most := 1 + (left-1)/maxSingle // the block has room for so many, whatever they are
		run := batch[n:min(n+most, len(batch))]
		if d := distinct(batch[n:min(n+most+1, len(batch))]); d < len(run) {
			run = run[:d]
		}
		if len(run) == 0 {
			break
		}
		at := len(w.keys.Buf)
		keys := slices.Grow(w.keys.Buf, 9*len(run))
		w.keys.Buf = keys[:appendNumbers(keys[:at+9*len(run)], at, run, last)]
		w.oneRows(run)
		n, last = n+len(run), run[len(run)-1].word
	}
	binary.BigEndian.PutUint64(w.last, last)
	return n, w.closeFull()
}

// maxSingle is the most bytes that a number and its only row take: a count of shared bytes, eight others, and a posting.
const maxSingle = 1 + 8 + 1 + 5

// distinct is the number of first pairs whose key is not that of the next one.
func distinct(of []pair) int {
	last := of[0].word
	for i := 1; i < len(of); i++ {
		word := of[i].word
		if word == last {
			return i - 1
		}
		last = word
	}
	return len(of)
}

// appendNumbers appends different numbers behind the last one to the at bytes of keys, and returns how many these are then.
//
//go:noinline
func appendNumbers(keys []byte, at int, of []pair, last uint64) int {
	for i := range of {
		word := of[i].word
		shared := bits.LeadingZeros64(word^last) / 8
		key := keys[at : at+9]
		key[0] = uint8(shared)
		binary.BigEndian.PutUint64(key[1:9], word<<(8*shared&63))
		at, last = at+9-shared, word
	}
	return at
}

// oneRows notes the rows of keys that have one.
func (w *writer) oneRows(of []pair) {
	from, posted := len(w.singles), 0
	w.singles = slices.Grow(w.singles, len(of))[:from+len(of)]
	rows := w.singles[from:]
	for i := range of {
		row := of[i].row()
		rows[i] = row
		posted += postedBytes(row)
	}
	w.asPosted, w.count = w.asPosted+posted, w.count+len(of)
}

// oneEachPosted is oneEach for a block in which a key has several rows.
func (w *writer) oneEachPosted(batch []pair) (n int, err error) {
	keys, last := w.keys.Buf, binary.BigEndian.Uint64(w.last)
	for n < len(batch) && len(keys)+w.rest() < w.sizes.block {
		word := batch[n].word
		if n+1 < len(batch) && batch[n+1].word == word {
			break
		}
		shared, at := bits.LeadingZeros64(word^last)/8, len(keys)
		keys = slices.Grow(keys, 9)[:at+9]
		keys[at] = uint8(shared)
		binary.BigEndian.PutUint64(keys[at+1:], word<<(8*shared))
		keys, last = keys[:at+9-shared], word
		w.row(batch[n].row())
		n++
	}
	w.keys.Buf = keys
	binary.BigEndian.PutUint64(w.last, last)
	return n, w.closeFull()
}

// row puts the only row of a key into the block.
func (w *writer) row(row uint32) {
	if len(w.singles) == w.count {
		w.oneRow(row)
	} else {
		w.postings.Buf = binary.AppendUvarint(append(w.postings.Buf, 1<<1), uint64(row))
	}
	w.count++
}

// rest is the bytes of the block that are no keys.
func (w *writer) rest() int { return len(w.postings.Buf) + w.asPosted }

// closeFull closes the block when it is large enough.
func (w *writer) closeFull() error {
	if len(w.keys.Buf)+w.rest() < w.sizes.block {
		return nil
	}
	return w.closeBlock()
}

// texts takes all pairs of keys that are no numbers.
func (w *writer) texts(batch []pair, of keyTexts) error {
	last := w.last // a view of the last key, which is copied where others look at it
	for len(batch) > 0 {
		first, key, n := &batch[0], of.text(&batch[0]), 1
		for n < len(batch) && batch[n].word == first.word && (batch[n].key() == first.key() || bytes.Equal(of.text(&batch[n]), key)) {
			n++
		}
		if n > 1 || w.count == 0 {
			w.last = append(w.last[:0], last...)
			if err := w.several(key, batch[:n]); err != nil {
				return err
			}
			batch, last = batch[n:], w.last
			continue
		}
		w.shareText(last, key)
		w.row(first.row())
		if err := w.closeFull(); err != nil {
			return err
		}
		batch, last = batch[1:], key
	}
	w.last = append(w.last[:0], last...)
	return nil
}

// shareText puts a key behind the last one into the block.
func (w *writer) shareText(last, key []byte) {
	shared := commonPrefix(last, key)
	rest := len(key) - shared
	switch {
	case !w.variable:
		w.keys.Uvarint(uint64(shared))
	case shared|rest < 0x80:
		w.keys.Buf = append(w.keys.Buf, uint8(shared), uint8(rest))
	default:
		w.keys.Uvarint(uint64(shared))
		w.keys.Uvarint(uint64(rest))
	}
	w.keys.Buf = appendShort(w.keys.Buf, key[shared:])
}

// several takes the pairs of one key.
func (w *writer) several(key []byte, of []pair) error {
	slices.SortFunc(of, func(a, b pair) int { return cmp.Compare(a.row(), b.row()) })
	w.ranges = w.ranges[:0]
	for _, p := range of {
		if n := len(w.ranges); n > 0 && w.ranges[n-1].End == p.row() {
			w.ranges[n-1].End++
		} else {
			w.ranges = append(w.ranges, rowset.Range{Start: p.row(), End: p.row() + 1})
		}
	}
	return w.whole(key, w.ranges)
}

// packRows appends rows in width bits each, least significant bit first, padded to a byte.
func packRows(w *bytescan.Writer, rows []uint32, width uint) {
	size, from := (len(rows)*int(width)+7)/8, len(w.Buf)
	out := slices.Grow(w.Buf, size+8)[:from+size+8]
	acc, have, at := uint64(0), uint(0), from
	for _, r := range rows {
		acc |= uint64(r) << (have & 63)
		binary.LittleEndian.PutUint64(out[at:], acc)
		have += width
		at += int(have / 8)
		acc >>= have &^ 7 & 63
		have %= 8
	}
	w.Buf = out[:from+size]
}
