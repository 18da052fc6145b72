package ngram

import (
	"sort"
	"unicode"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Open parses a root of at most 1 MiB, which it keeps, into at most 6 MiB beside it.
func (Kind) Open(root []byte, rows uint32) (index.Reader, error) { return open(root, rows) }

func open(root []byte, rows uint32) (*reader, error) {
	r, enc, err := index.OpenRoot(name, root, version, maxRoot)
	if err != nil {
		return nil, err
	}
	if r.Err() == nil && enc != textEncoding {
		r.Fail("values of kind %s", enc.Kind)
	}
	x := &reader{rows: rows, folding: r.String(maxFolding)}
	if n := r.Uvarint(); r.Err() == nil && n != uint64(rows) {
		r.Fail("covers %d rows, asked to cover %d", n, rows)
	}
	x.bodySize = index.ReadSize(r)
	x.nulls = index.ReadUnordered(r, rows, x.bodySize)
	switch form := r.U8(); form {
	case formInside:
		x.inside = r.Bytes(r.Left())
		if r.Err() == nil && len(x.inside) > maxBlock {
			r.Fail("dictionary of %d bytes inside, above the limit of %d", len(x.inside), maxBlock)
		}
		if r.Err() == nil {
			if err := x.eachEntry(x.inside, func(entry) {}); err != nil {
				return nil, err
			}
		}
	case formBlocks:
		x.readDirectory(r)
	default:
		r.Fail("form %d is none", form)
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	return x, nil
}

type reader struct {
	rows     uint32
	folding  string // the Unicode version of its texts
	bodySize int64
	nulls    index.Unordered
	inside   []byte  // the dictionary block, where it lives in the root
	blocks   []block // else
}

// block is a dictionary block in the body.
type block struct {
	first uint32
	unit  index.Unit
}

func (x *reader) readDirectory(r *bytescan.Reader) {
	n, at := r.Count(trigrams, 6), r.Uvarint()
	if r.Err() == nil && (n == 0 || at > uint64(x.bodySize)) {
		r.Fail("%d dictionary blocks at %d of %d", n, at, x.bodySize)
	}
	if r.Err() != nil {
		return
	}
	x.blocks = make([]block, 0, n)
	first := uint64(0)
	for range n {
		first += min(r.Uvarint(), trigrams)
		length, crc := r.Uvarint(), r.U32()
		if r.Err() == nil && (first >= trigrams || length > maxBlock || length > uint64(x.bodySize)-at) {
			r.Fail("dictionary block of %d bytes at %d of %d, from trigram %d", length, at, x.bodySize, first)
		}
		if r.Err() != nil {
			return
		}
		x.blocks = append(x.blocks, block{uint32(first), index.Unit{Span: index.Span{Off: int64(at), Len: int64(length)}, CRC: crc}})
		at, first = at+length, first+1
	}
}

// block is the number of the block that may hold a trigram, -1 if there is none.
func (x *reader) block(trigram uint32) int {
	return sort.Search(len(x.blocks), func(i int) bool { return x.blocks[i].first > trigram }) - 1
}

// entry is a trigram of the dictionary.
type entry struct {
	trigram uint32
	rows    uint32 // 0: too frequent
	inside  []byte // the posting, or
	unit    index.Unit
}

// eachEntry visits the entries of a dictionary block in order.
func (x *reader) eachEntry(b []byte, visit func(entry)) error {
	r := bytescan.NewReader(name+" dictionary", b)
	n, at := r.Count(len(b), 2), r.Uvarint()
	if r.Err() == nil && at > uint64(x.bodySize) {
		r.Fail("postings at %d of %d", at, x.bodySize)
	}
	next := uint64(0)
	for range n {
		next += min(r.Uvarint(), trigrams)
		e := entry{trigram: uint32(next)}
		head := r.Uvarint()
		if r.Err() == nil && (next >= trigrams || head>>1 > uint64(x.rows) || head == 1) {
			r.Fail("trigram %d in %d rows of %d", next, head>>1, x.rows)
		}
		e.rows = uint32(head >> 1)
		switch {
		case head&1 == 1:
			e.inside = r.Blob(maxInside)
		case head > 0:
			length, crc := r.Uvarint(), r.U32()
			if r.Err() == nil && (length > maxPosting || length > uint64(x.bodySize)-at) {
				r.Fail("posting of %d bytes at %d of %d", length, at, x.bodySize)
			}
			e.unit = index.Unit{Span: index.Span{Off: int64(at), Len: int64(length)}, CRC: crc}
			at += length
		}
		if r.Err() != nil {
			return r.Err()
		}
		visit(e)
		next++
	}
	return r.Done()
}

// Probe answers in at most two waves: dictionary blocks, then postings. A dictionary in the root costs no wave.
func (x *reader) Probe(leaf *predicate.Leaf) index.Probe {
	fits := leaf.Column.Type().Kind == column.String && !leaf.Column.Path.Repeated()
	switch {
	case !fits:
		return index.Settled(rowset.Maybe(x.rows))
	case leaf.Op == predicate.IsNull:
		return x.probeNulls(leaf)
	case leaf.Negated || leaf.Unknown || x.folding != unicode.Version: // letters of another Unicode may have other cases
		return index.Settled(rowset.Maybe(x.rows))
	}
	p := &probe{reader: x, leaf: leaf, query: queryOf(leaf), found: map[uint32]entry{}, sets: map[uint32]*rowset.Set{}}
	p.start()
	return p
}
