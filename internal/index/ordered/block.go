package ordered

import (
	"encoding/binary"
	"sort"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/rowset"
)

// takeBlock adds the rows of a block whose keys lie in the probe's intervals. Memory: the rows found, and the longest key.
func (p *probe) takeBlock(b []byte) error {
	r := bytescan.NewReader(name+" block", b)
	form := r.U8()
	n := r.Count(len(b), 1)
	if r.Err() == nil && (form > formPostings || n == 0) {
		r.Fail("block of form %d with %d keys", form, n)
	}
	if r.Err() != nil {
		return r.Err()
	}
	var hits []hit
	if p.numeric {
		hits = matchNarrow(r, b[r.Offset():], n, p.numbers)
	} else {
		hits = p.matchKeys(r, n)
	}
	if r.Err() != nil {
		return r.Err()
	}
	if form == formUnique {
		p.takeSingles(r, n, hits)
	} else {
		p.takePostings(r, n, hits)
	}
	return r.Done()
}

// hit is consecutive keys of a block that lie in an interval; unsure hits are one key.
type hit struct {
	from, to int
	unsure   bool
}

// matchKeys reads the n keys of a block, which must ascend, and returns those that lie in the probe's intervals.
func (p *probe) matchKeys(r *bytescan.Reader, n int) []hit {
	var hits []hit
	key := make([]byte, 0, maxKey+1)
	fixed := 0
	if !variable(p.enc) {
		fixed = p.enc.Size()
	}
	iv := 0
	for i := range n {
		shared := int(min(r.Uvarint(), 1<<20))
		length := fixed - shared
		if fixed == 0 {
			length = r.Count(maxKey+1, 1)
		}
		if r.Err() == nil && (shared > len(key) || length < 0 || shared+length > maxKey+1) {
			r.Fail("key %d shares %d of %d bytes and adds %d", i, shared, len(key), length)
		}
		suffix := r.Bytes(length)
		if r.Err() != nil {
			return nil
		}
		if i > 0 && string(suffix) <= string(key[shared:]) {
			r.Fail("key %d is not above the one before", i)
			return nil
		}
		key = append(key[:shared], suffix...)
		if i == 0 {
			iv = sort.Search(len(p.intervals), func(i int) bool { return !p.intervals[i].Above(key) })
		}
		for iv < len(p.intervals) && p.intervals[iv].Above(key) {
			iv++
		}
		if iv == len(p.intervals) || p.intervals[iv].Below(key) {
			continue
		}
		unsure := unsure(&p.intervals[iv], key)
		if h := len(hits) - 1; h >= 0 && hits[h].to == i && !unsure && !hits[h].unsure {
			hits[h].to = i + 1
		} else {
			hits = append(hits, hit{i, i + 1, unsure})
		}
	}
	return hits
}

// takeSingles reads n packed rows.
func (p *probe) takeSingles(r *bytescan.Reader, n int, hits []hit) {
	width := rowBits(p.rows)
	packed := r.Bytes((n*int(width) + 7) / 8)
	if r.Err() != nil {
		return
	}
	for _, h := range hits {
		for i := h.from; i < h.to; i++ {
			row := unpack(packed, i, width)
			p.takeRun(r, row, row+1, h.unsure)
		}
	}
}

// unpack is number i of packed numbers of at most 32 bits.
func unpack(b []byte, i int, width uint) uint64 {
	at := uint(i) * width
	if at/8+8 <= uint(len(b)) {
		return binary.LittleEndian.Uint64(b[at/8:]) >> (at % 8) & (1<<width - 1)
	}
	var window [8]byte
	copy(window[:], b[at/8:])
	return binary.LittleEndian.Uint64(window[:]) >> (at % 8) & (1<<width - 1)
}

// takePostings reads n postings and keeps the rows of the hits.
func (p *probe) takePostings(r *bytescan.Reader, n int, hits []hit) {
	for i := range n {
		if len(hits) > 0 && hits[0].to == i {
			hits = hits[1:]
		}
		wanted := len(hits) > 0 && hits[0].from <= i
		head := r.Uvarint()
		if head>>1 > uint64(r.Left()) {
			r.Fail("posting of %d runs in %d bytes", head>>1, r.Left())
		}
		at := uint64(0)
		for range head >> 1 {
			start, length := at+r.Uvarint(), uint64(1)
			if head&1 == 1 {
				length += r.Uvarint()
			}
			at = start + length
			if r.Err() != nil {
				return
			}
			if start > uint64(p.rows) || length > uint64(p.rows) {
				r.Fail("rows %d + %d of %d", start, length, p.rows)
				return
			}
			if wanted {
				p.takeRun(r, start, at, hits[0].unsure)
			}
		}
		if r.Err() != nil {
			return
		}
	}
}

func (p *probe) takeRun(r *bytescan.Reader, start, end uint64, unsure bool) {
	if end > uint64(p.rows) {
		r.Fail("rows [%d, %d) of %d", start, end, p.rows)
		return
	}
	run := rowset.Range{Start: uint32(start), End: uint32(end)}
	p.may.Add(run)
	if unsure {
		p.unsure.Add(run)
	}
}
