package ordered

import (
	"encoding/binary"
	"math"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
)

// pair is a key of a source's block and one of its rows in the merged artifact.
type pair struct {
	word uint64 // the key if it is a number; else its place in the block, or its eight bytes from where the keys at hand begin to differ
	from uint64 // row, and above it where a key that is no number stands: source << keyBits and its place in the block
}

func (p pair) row() uint32 { return uint32(p.from) }
func (p pair) key() uint32 { return uint32(p.from >> 32) }

const (
	keyBits  = 16
	maxMerge = 1 << (32 - keyBits) // sources
	maxPairs = 1 << 15             // of a block that is read as pairs, below 1 << keyBits
	maxText  = 512 << 10           // bytes of its keys
)

// openPairs reads a block, whose keys are in no other, as pairs; false: it takes too much memory for that, and nothing was read.
func (s *source) openPairs() (ok bool, err error) {
	r, form, n := s.head()
	if r.Err() != nil || n > s.share.pairs {
		return false, r.Err()
	}
	if s.numeric {
		if err = s.readWords(r, n); err != nil {
			return false, err
		}
	} else if ok, err = s.readTexts(r, n); !ok {
		return false, err
	}
	if form == formUnique {
		err = s.readSingles(r, n)
	} else if ok, err = s.readLists(r, n); !ok {
		return false, err
	}
	if err != nil {
		return false, err
	}
	if s.numeric {
		s.last = binary.BigEndian.AppendUint64(s.last[:0], s.words[n-1])
	} else {
		s.last = append(s.last[:0], s.textOf(n-1)...)
	}
	if err := s.see(uint64(len(s.olds))); err != nil {
		return false, err
	}
	s.started = true
	s.pair(form == formUnique)
	return true, nil
}

// pair puts keys and new rows together.
func (s *source) pair(unique bool) {
	s.taken = sized(s.taken, len(s.olds))
	key, step := uint64(s.no<<keyBits)<<32, uint64(1)<<32
	if s.numeric {
		key, step = 0, 0
	}
	if unique && s.numeric && s.alone != nil {
		s.pairs = s.taken[:zipAlone(s.taken, s.words, s.olds, s.alone)]
		return
	}
	s.m.Send(s.no, s.olds)
	if unique {
		s.pairs = s.taken[:zip(s.taken, s.words, s.olds, key, step)]
		return
	}
	kept, from := 0, 0
	for i, end := range s.lists {
		for _, row := range s.olds[from:end] {
			s.taken[kept] = pair{s.words[i], key | uint64(row)}
			if row != index.Gone {
				kept++
			}
		}
		from, key = end, key+step
	}
	s.pairs = s.taken[:kept]
}

// zip puts keys and their only rows together and reports how many rows stay. Which do is as random as the keys, so it has no branches on that.
func zip(out []pair, words []uint64, rows []uint32, key, step uint64) (kept int) {
	for i := 0; i < len(words) && i < len(rows) && kept < len(out); i++ {
		out[kept] = pair{words[i], key | uint64(rows[i])}
		stays := 1
		if rows[i] == index.Gone {
			stays = 0
		}
		kept, key = kept+stays, key+step
	}
	return kept
}

// readWords reads n keys that are numbers.
func (s *source) readWords(r *bytescan.Reader, n int) error {
	s.words = sized(s.words, n)
	b := s.block[r.Offset():]
	if len(b) < 9 || b[0] != 0 {
		return index.Broken(name+" block", "the first key does not fit, or shares bytes")
	}
	first := binary.BigEndian.Uint64(b[1:])
	if s.started && first <= s.word() {
		return index.Broken(name+" block", "the first key is not above the one before")
	}
	s.words[0] = first
	read, at := unshare(s.words[1:], b, 9, first)
	if read < n-1 {
		return index.Broken(name+" block", "key %d does not fit, is not above the one before or shares too many bytes of it", read+1)
	}
	r.Bytes(at)
	return r.Err()
}

// bigEndian is the first eight bytes; those past the end are 0.
func bigEndian(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	return prefixOf(b)
}

// readTexts reads n keys that are no numbers; false: they are too long.
func (s *source) readTexts(r *bytescan.Reader, n int) (ok bool, err error) {
	s.words, s.text, s.ends = sized(s.words, n), s.text[:0], s.ends[:0]
	b, at, last, first := s.block[r.Offset():], 0, s.last, !s.started
	for i := range s.words {
		shared, length, next := keyHead(b, at, s.fixed)
		if i == 0 && shared > 0 || shared > len(last) || length < 0 || shared+length > maxKey+1 || next < 0 || length > len(b)-next {
			return false, index.Broken(name+" block", "key %d shares %d of %d bytes and adds %d", i, shared, len(last), length)
		}
		suffix := b[next : next+length]
		if !first && !above(suffix, last[shared:]) {
			return false, index.Broken(name+" block", "key %d is not above the one before", i)
		}
		from := len(s.text)
		if from+shared+length > s.share.text {
			return false, nil
		}
		s.text = appendShort(appendShort(s.text, last[:shared]), suffix)
		s.words[i], s.ends = uint64(i), append(s.ends, len(s.text))
		at, last, first = next+length, s.text[from:], false
	}
	r.Bytes(at)
	return true, r.Err()
}

// keyHead is the bytes that a key at b[at] shares and adds, the latter so that it has a fixed length where that is not 0, and where those it
// adds begin; that is -1 where the head does not fit.
func keyHead(b []byte, at, fixed int) (shared, length, next int) {
	if fixed == 0 && len(b)-at >= 2 && b[at]|b[at+1] < 0x80 {
		return int(b[at]), int(b[at+1]), at + 2
	}
	x, n := binary.Uvarint(b[at:])
	if n <= 0 {
		return 0, 0, -1
	}
	at, shared = at+n, int(min(x, 1<<20))
	if fixed > 0 {
		return shared, fixed - shared, at
	}
	if x, n = binary.Uvarint(b[at:]); n <= 0 {
		return 0, 0, -1
	}
	return shared, int(min(x, 1<<20)), at + n
}

// appendShort is append, eight bytes at a time where both have room behind: a call takes longer than most keys do.
func appendShort(dst, src []byte) []byte {
	n, more := len(dst), len(src)
	if more > 32 || cap(dst)-n < 40 || cap(src) < 40 {
		return append(dst, src...)
	}
	out, in := dst[n:n+40], src[:40]
	for i := 0; i < more && i < 32; i += 8 {
		binary.LittleEndian.PutUint64(out[i:], binary.LittleEndian.Uint64(in[i:]))
	}
	return dst[:n+more]
}

// above reports whether a is above b, which is seldom in doubt after the first byte.
func above(a, b []byte) bool {
	if len(a) > 0 && len(b) > 0 && a[0] != b[0] {
		return a[0] > b[0]
	}
	return string(a) > string(b)
}

// textOf is a key of the block that is no number.
func (s *source) textOf(i int) []byte {
	from := 0
	if i > 0 {
		from = s.ends[i-1]
	}
	return s.text[from:s.ends[i]]
}

// readSingles reads the only rows of n keys.
func (s *source) readSingles(r *bytescan.Reader, n int) error {
	width := rowBits(s.reader.rows)
	packed := r.Bytes((n*int(width) + 7) / 8)
	if err := r.Done(); err != nil {
		return err
	}
	s.olds = sized(s.olds, n)
	return s.inRange(unpackRows(s.olds, packed, width))
}

// inRange checks the largest row of a block.
func (s *source) inRange(most uint32) error {
	if most >= s.reader.rows {
		return index.Broken(name+" block", "row %d of %d", most, s.reader.rows)
	}
	return nil
}

// readLists reads the postings of n keys; false: they are of too many rows.
func (s *source) readLists(r *bytescan.Reader, n int) (ok bool, err error) {
	s.olds, s.lists = s.olds[:0], s.lists[:0]
	most := uint32(0)
	for range n {
		head, at := r.Uvarint(), uint64(0)
		for i := head >> 1; i > 0 && r.Err() == nil; i-- {
			gap, length := r.Uvarint(), uint64(1)
			if head&1 == 1 {
				length += r.Uvarint()
			}
			if gap > math.MaxUint32 || length-1 >= math.MaxUint32 {
				return false, index.Broken(name+" block", "rows %d + %d + %d of %d", at, gap, length, s.reader.rows)
			}
			at += gap
			if uint64(len(s.olds))+length > uint64(s.share.pairs) {
				return false, nil
			}
			for end := at + length; at < end; at++ {
				row := uint32(min(at, math.MaxUint32))
				s.olds, most = append(s.olds, row), max(most, row)
			}
		}
		s.lists = append(s.lists, len(s.olds))
	}
	if err := r.Done(); err != nil {
		return false, err
	}
	return true, s.inRange(most)
}

// sized is a slice of n elements, whatever they are.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	return s[:n]
}
