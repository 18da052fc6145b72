package ordered

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/skomerdb/skomer/internal/index"
)

// sorter sorts (key, row) pairs by key and then row, in memory up to a budget and through spilled runs beyond it. Rows must
// arrive ascending. Narrow keys take the addNarrow path, all others addWide; never both.
type sorter struct {
	narrow bool
	size   int // wide: bytes of every key, 0 where they vary
	limit  int64
	want   int // pairs still to come at most: the first run is allocated for them
	spill  spill

	keys, keys2 []uint64 // narrow: the run and scratch space
	rows, rows2 []uint32

	arena []byte // wide: key bytes of the run
	pairs []widePair
}

// widePair is a key in the arena with its first eight bytes, which settle most comparisons.
type widePair struct {
	prefix   uint64
	off, len uint32
	row      uint32
}

const (
	narrowPair = 2 * (8 + 4) // with scratch space
	pairBytes  = 24
	minRun     = 16 << 10 // bytes; a smaller budget is exceeded rather than spilled pair by pair
	maxArena   = 1 << 31
)

func newSorter(e index.Encoding, rows uint32, budget index.Budget) *sorter {
	s := &sorter{narrow: e.Narrow(), limit: budget.Bytes(), want: int(rows), spill: spill{dir: budget.TempDir}}
	if !variable(e) {
		s.size = e.Size()
	}
	return s
}

func (s *sorter) addNarrow(key uint64, row uint32) error {
	if len(s.keys) == cap(s.keys) {
		if s.keys != nil {
			if err := s.spillRun(); err != nil {
				return err
			}
		} else {
			n := int(min(int64(s.want), max(s.limit/narrowPair, 1024)))
			s.keys, s.rows = make([]uint64, 0, n), make([]uint32, 0, n)
			s.keys2, s.rows2 = make([]uint64, n), make([]uint32, n)
		}
	}
	s.keys, s.rows = append(s.keys, key), append(s.rows, row)
	return nil
}

func (s *sorter) addWide(key []byte, row uint32) error {
	if used := int64(len(s.arena) + len(key) + pairBytes*(len(s.pairs)+1)); len(s.pairs) > 0 && (used > max(s.limit/2, minRun) || len(s.arena) > maxArena) {
		if err := s.spillRun(); err != nil {
			return err
		}
	}
	s.pairs = append(s.pairs, widePair{prefix: prefixOf(key), off: uint32(len(s.arena)), len: uint32(len(key)), row: row})
	s.arena = append(s.arena, key...)
	return nil
}

func prefixOf(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

func (p *widePair) key(arena []byte) []byte { return arena[p.off : p.off+p.len] }

// sortRun sorts what is in memory.
func (s *sorter) sortRun() {
	if s.narrow {
		s.keys, s.rows, s.keys2, s.rows2 = radixSort(s.keys, s.rows, s.keys2, s.rows2)
		return
	}
	slices.SortFunc(s.pairs, func(a, b widePair) int {
		if c := cmp.Compare(a.prefix, b.prefix); c != 0 {
			return c
		}
		if c := bytes.Compare(a.key(s.arena), b.key(s.arena)); c != 0 {
			return c
		}
		return cmp.Compare(a.row, b.row)
	})
}

// each calls visit for every pair in order. key is a view; narrow keys come as a number with a nil key.
func (s *sorter) each(visit func(narrow uint64, key []byte, row uint32) error) error {
	if s.spill.runs() > 0 {
		if len(s.keys)+len(s.pairs) > 0 {
			if err := s.spillRun(); err != nil {
				return err
			}
		}
		s.free()
		return s.spill.merge(s.narrow, s.size, s.limit/2, visit)
	}
	s.sortRun()
	for i, k := range s.keys {
		if err := visit(k, nil, s.rows[i]); err != nil {
			return err
		}
	}
	for i := range s.pairs {
		p := &s.pairs[i]
		if err := visit(p.prefix, p.key(s.arena), p.row); err != nil {
			return err
		}
	}
	return nil
}

func (s *sorter) spillRun() error {
	s.sortRun()
	err := s.spill.run(func(w *runWriter) {
		for i, k := range s.keys {
			w.narrow(k, s.rows[i])
		}
		for i := range s.pairs {
			w.wide(s.size, s.pairs[i].key(s.arena), s.pairs[i].row)
		}
	})
	s.keys, s.rows, s.arena, s.pairs = s.keys[:0], s.rows[:0], s.arena[:0], s.pairs[:0]
	return err
}

func (s *sorter) free() {
	s.keys, s.keys2, s.rows, s.rows2, s.arena, s.pairs = nil, nil, nil, nil, nil, nil
}

func (s *sorter) close() error {
	s.free()
	return s.spill.close()
}

const (
	digitBits = 11
	digits    = (64 + digitBits - 1) / digitBits
	buckets   = 1 << digitBits
)

// radixSort sorts keys and the rows beside them, stably, least significant digit first; digits that all keys share are skipped.
// It returns the sorted slices and the scratch slices, which may have changed places.
func radixSort(keys []uint64, rows []uint32, keys2 []uint64, rows2 []uint32) (k []uint64, r []uint32, k2 []uint64, r2 []uint32) {
	n := len(keys)
	if n == 0 {
		return keys, rows, keys2, rows2
	}
	var counts [digits][buckets]uint32
	for _, k := range keys {
		for d := range digits {
			counts[d][k>>(d*digitBits)&(buckets-1)]++
		}
	}
	keys2, rows2 = keys2[:n], rows2[:n]
	for d := range digits {
		c, shift := &counts[d], d*digitBits
		if c[keys[0]>>shift&(buckets-1)] == uint32(n) {
			continue
		}
		sum := uint32(0)
		for i := range c {
			c[i], sum = sum, sum+c[i]
		}
		for i, k := range keys {
			b := k >> shift & (buckets - 1)
			at := c[b]
			c[b]++
			keys2[at], rows2[at] = k, rows[i]
		}
		keys, keys2, rows, rows2 = keys2, keys, rows2, rows
	}
	return keys, rows, keys2[:cap(keys2)], rows2[:cap(rows2)]
}
