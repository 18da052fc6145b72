package ordered

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sort"

	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/rowset"
)

// merging is sources whose keys are written in order.
type merging struct {
	sources keyTexts  // by number
	live    []*source // those with keys left
	numeric bool
	rows    uint32
	out     *writer

	runs [][]pair // of the batch at hand
	bufs [2][]pair

	// the key at hand that is in none
	key      []byte
	ranges   []rowset.Range
	unsorted bool
	many     *index.Rows // instead of ranges, where these are many
}

// mergeKeys writes the keys of all sources in order: those that the blocks at hand settle in a batch, and one by one those with very many rows.
func mergeKeys(readers []*reader, sources []index.Source, m *index.OrdinalMap, budget index.Budget, out *writer) error {
	x := &merging{rows: m.Rows(), out: out, numeric: numeric(out.enc)}
	out.narrow = x.numeric
	alone := m.Alone()
	for i, r := range readers {
		s := newSource(r, &sources[i], m, i, shareOf(budget, len(readers)), x.gather)
		defer s.read.Close()
		s.alone = alone[i]
		x.sources, x.live = append(x.sources, s), append(x.live, s)
	}
	for {
		live := x.live[:0]
		for _, s := range x.live {
			ok, err := s.fill()
			if err != nil {
				return err
			}
			if ok {
				live = append(live, s)
			}
		}
		if x.live = live; len(live) == 0 {
			return nil
		}
		if err := x.step(); err != nil {
			return err
		}
	}
}

// step writes what is settled, and at least one key.
func (x *merging) step() error {
	if x.cut(); len(x.runs) == 0 {
		return x.takeKey()
	}
	if x.numeric {
		return x.out.numbers(x.merged())
	}
	x.setWords()
	return x.out.texts(x.merged(), x.sources)
}

// cut takes the batch from the sources: the pairs up to where the first of their blocks ends, below all keys that are in none.
func (x *merging) cut() {
	var bound *source
	for _, s := range x.live {
		if bound == nil {
			bound = s
			continue
		}
		if c := x.compare(s, bound); c < 0 || c == 0 && s.keyed {
			bound = s
		}
	}
	x.runs = x.runs[:0]
	for _, s := range x.live {
		n := len(s.pairs)
		if s != bound || bound.keyed {
			n = x.upTo(s.pairs, bound)
		}
		if n > 0 {
			x.runs, s.pairs = append(x.runs, s.pairs[:n]), s.pairs[n:]
		}
	}
}

// compare compares the last keys that sources have at hand.
func (x *merging) compare(s, t *source) int {
	if x.numeric {
		return cmp.Compare(s.word(), t.word())
	}
	return bytes.Compare(s.last, t.last)
}

// upTo is the number of pairs up to the last key of a source, or below it where that is in no batch.
func (x *merging) upTo(pairs []pair, bound *source) int {
	least := 1 // of the comparison, for a pair to be left
	if bound.keyed {
		least = 0
	}
	if x.numeric {
		word := bound.word()
		return sort.Search(len(pairs), func(i int) bool { return cmp.Compare(pairs[i].word, word) >= least })
	}
	return sort.Search(len(pairs), func(i int) bool { return bytes.Compare(x.sources.text(&pairs[i]), bound.last) >= least })
}

// keyTexts is sources by number, with the keys of their pairs that are no numbers.
type keyTexts []*source

// text is the key of a pair.
func (of keyTexts) text(p *pair) []byte {
	return of[p.key()>>keyBits].textOf(int(p.key() & (1<<keyBits - 1)))
}

// setWords sets the words of the batch to what follows what all its keys share.
func (x *merging) setWords() {
	if len(x.runs) == 1 {
		return
	}
	var least, most []byte
	for i, run := range x.runs {
		if k := x.sources.text(&run[0]); i == 0 || bytes.Compare(k, least) < 0 {
			least = k
		}
		if k := x.sources.text(&run[len(run)-1]); i == 0 || bytes.Compare(k, most) > 0 {
			most = k
		}
	}
	shared := commonPrefix(least, most)
	for _, run := range x.runs {
		for i := range run {
			run[i].word = bigEndian(x.sources.text(&run[i])[shared:])
		}
	}
}

// merged is the runs as one: two by two, again and again.
func (x *merging) merged() []pair {
	for level := 0; len(x.runs) > 1; level ^= 1 {
		total := 0
		for _, run := range x.runs {
			total += len(run)
		}
		buf := sized(x.bufs[level], total)
		x.bufs[level] = buf
		next := x.runs[:0]
		for i := 0; i < len(x.runs); i += 2 {
			a, b := x.runs[i], []pair(nil)
			if i+1 < len(x.runs) {
				b = x.runs[i+1]
			}
			n := len(a) + len(b)
			x.merge(buf[:n], a, b)
			next, buf = append(next, buf[:n]), buf[n:]
		}
		x.runs = next
	}
	return x.runs[0]
}

// merge merges two runs; pairs of equal keys come out next to each other.
func (x *merging) merge(out, a, b []pair) {
	if x.numeric {
		mergeNumbers(out, a, b)
		return
	}
	for {
		i, j := mergeWords(out, a, b)
		out, a, b = out[i+j:], a[i:], b[j:]
		switch {
		case len(a) == 0 || len(b) == 0:
			copy(out[copy(out, a):], b)
			return
		case bytes.Compare(x.sources.text(&a[0]), x.sources.text(&b[0])) <= 0:
			out[0], out, a = a[0], out[1:], a[1:]
		default:
			out[0], out, b = b[0], out[1:], b[1:]
		}
	}
}

// mergeWords merges two runs until one ends or two words are equal, and reports how many of each it took. It has no branches that depend on
// which is less: of random numbers every second would be foretold wrongly.
func mergeWords(out, a, b []pair) (i, j int) {
	for i < len(a) && j < len(b) && i+j < len(out) {
		p, q := a[i], b[j]
		if p.word == q.word {
			break
		}
		later := 0
		if q.word < p.word {
			later = 1
		}
		mask := -uint64(later)
		out[i+j] = pair{p.word ^ (p.word^q.word)&mask, p.from ^ (p.from^q.from)&mask}
		i, j = i+1-later, j+later
	}
	return i, j
}

// takeKey writes the least key at hand, with the rows that all sources have of it.
func (x *merging) takeKey() error {
	var least *source
	for _, s := range x.live {
		if s.keyed && (least == nil || x.compare(s, least) < 0) {
			least = s
		}
	}
	x.key = append(x.key[:0], least.last...)
	for _, s := range x.live {
		for s.keyed && bytes.Equal(s.last, x.key) {
			if err := s.gatherKey(); err != nil {
				return err
			}
			if _, err := s.fill(); err != nil {
				return err
			}
		}
		n := x.equal(s.pairs)
		for _, p := range s.pairs[:n] {
			x.gather([]rowset.Range{{Start: p.row(), End: p.row() + 1}})
		}
		s.pairs = s.pairs[n:]
	}
	return x.flush()
}

// equal is the number of pairs of the key at hand, which are the first.
func (x *merging) equal(pairs []pair) (n int) {
	if x.numeric {
		for word := binary.BigEndian.Uint64(x.key); n < len(pairs) && pairs[n].word == word; n++ {
		}
		return n
	}
	for n < len(pairs) && bytes.Equal(x.sources.text(&pairs[n]), x.key) {
		n++
	}
	return n
}

// maxGathered is the runs of one key above which they are kept as bits.
const maxGathered = 1 << 17

// gather adds rows of the key at hand.
func (x *merging) gather(runs []rowset.Range) {
	if x.many != nil {
		for _, r := range runs {
			x.many.Add(r)
		}
		return
	}
	for _, r := range runs {
		if n := len(x.ranges); n > 0 && r.Start <= x.ranges[n-1].End {
			if r.Start == x.ranges[n-1].End {
				x.ranges[n-1].End = r.End
				continue
			}
			x.unsorted = true
		}
		x.ranges = append(x.ranges, r)
	}
	if len(x.ranges) > maxGathered {
		x.many = index.NewRows(x.rows)
		for _, r := range x.ranges {
			x.many.Add(r)
		}
		x.ranges, x.unsorted = x.ranges[:0], false
	}
}

// flush writes the key at hand.
func (x *merging) flush() error {
	if x.many != nil {
		many := x.many
		x.many = nil
		if err := many.Runs(maxRuns, func(runs []rowset.Range) error { return x.out.part(x.key, runs) }); err != nil {
			return err
		}
		return x.out.end()
	}
	if x.unsorted {
		slices.SortFunc(x.ranges, func(a, b rowset.Range) int { return cmp.Compare(a.Start, b.Start) })
		for i, r := range x.ranges[1:] {
			if r.Start < x.ranges[i].End {
				return index.Broken(name+" block", "a key has a row twice")
			}
		}
	}
	err := x.out.whole(x.key, x.ranges)
	x.ranges, x.unsorted = x.ranges[:0], false
	return err
}
