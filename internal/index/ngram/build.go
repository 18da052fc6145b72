package ngram

import (
	"encoding/binary"
	"errors"
	"unicode"

	"github.com/skomerdb/skomer/internal/analysis"
	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/rowset"
)

// NewBuilder starts the gathering of trigrams: up to half the budget of rows in memory, beyond it in Budget.TempDir, and beside
// that about 50 bytes for every different trigram.
func (k Kind) NewBuilder(spec index.Spec, budget index.Budget) (index.Builder, error) {
	if _, err := oneText(name, spec.Columns); err != nil {
		return nil, err
	}
	return &builder{
		count: index.RowCount{Want: spec.Rows}, keys: index.NewKeys(textEncoding), sizes: k.orDefault(),
		gather: newGather(spec.Rows, budget.Bytes()/2, budget.TempDir),
	}, nil
}

type builder struct {
	count  index.RowCount
	keys   *index.Keys
	nulls  index.RowsWriter
	gather *gather
	sizes  sizes
	folded []byte
}

func (b *builder) Add(cols []*column.Vector) error {
	v, at := cols[0], b.count.Got
	if err := b.count.Add(v.Len); err != nil {
		return err
	}
	if err := b.keys.Load(v); err != nil {
		return err
	}
	for i := range v.Len {
		row := at + uint32(i)
		if b.keys.Null(i) {
			b.nulls.Add(rowset.Range{Start: row, End: row + 1})
			continue
		}
		b.folded = analysis.AppendFold(b.folded[:0], b.keys.Wide(i))
		if err := b.gather.add(b.folded, row); err != nil {
			return err
		}
	}
	return nil
}

// Cut ends the segment early. Trigrams that were too frequent for more rows are so for fewer.
func (b *builder) Cut(rows uint32) error {
	b.gather.rows = rows
	return b.count.Cut(rows)
}

func (b *builder) Finish(body index.Sink) ([]byte, string, error) {
	if err := b.count.Done(); err != nil {
		return nil, "", err
	}
	w := newWriter(b.count.Want, b.sizes, body)
	err := b.gather.each(func(trigram, n uint32, gaps []byte) error {
		if tooFrequent(n, b.count.Want) {
			return w.dropped(trigram)
		}
		row := uint32(0)
		for len(gaps) > 0 {
			gap, size := binary.Uvarint(gaps)
			gaps = gaps[size:]
			row += uint32(gap)
			w.posting.add(row)
			row++
		}
		return w.kept(trigram)
	})
	if err != nil {
		return nil, "", err
	}
	root, err := w.finish(func(rest *bytescan.Writer) error {
		return index.WriteUnordered(rest, body, b.nulls.Count(), b.count.Want, &b.nulls)
	})
	return root, "", err
}

func (b *builder) Close() error {
	if b.gather == nil {
		return nil
	}
	err := b.gather.runs.close()
	b.gather, b.keys = nil, nil
	return err
}

// writer writes the body of an artifact, trigram by trigram, and its root. Of a kept trigram the rows go to posting first.
type writer struct {
	rows    uint32
	folding string // the Unicode version of its texts
	sizes   sizes
	body    index.Sink
	posting posting

	// the dictionary block being filled
	entries bytescan.Writer
	count   int
	first   uint32 // its first trigram
	start   int64  // offset of its first posting
	last    int64  // the last trigram written, -1 before the first
	blocks  []finishedBlock
	seamed  bool // a posting has a seam
}

// finishedBlock is a dictionary block that is written when all postings are.
type finishedBlock struct {
	first uint32
	bytes []byte
}

func newWriter(rows uint32, s sizes, body index.Sink) *writer {
	return &writer{rows: rows, folding: unicode.Version, sizes: s, body: body, last: -1}
}

// entry starts the entry of a trigram.
func (w *writer) entry(trigram uint32) {
	if len(w.entries.Buf) >= w.sizes.block {
		w.closeBlock()
	}
	if w.count == 0 {
		w.first, w.start, w.last = trigram, w.body.Offset(), -1
	}
	w.entries.Uvarint(uint64(int64(trigram) - w.last - 1))
	w.last = int64(trigram)
	w.count++
}

// dropped forgets the rows that were added to w.posting.
func (w *writer) dropped(trigram uint32) error {
	w.posting.reset()
	w.entry(trigram)
	w.entries.Uvarint(0)
	return nil
}

// kept writes the rows that were added to w.posting, if there are any.
func (w *writer) kept(trigram uint32) error {
	defer w.posting.reset()
	b := w.posting.finish()
	if len(b) == 0 {
		return nil
	}
	w.entry(trigram)
	w.seamed = w.seamed || w.posting.seamed
	if len(b) <= maxInside {
		w.entries.Uvarint(uint64(w.posting.rows)<<1 | 1)
		w.entries.Blob(b)
		return nil
	}
	u, err := index.WriteUnit(w.body, b)
	w.entries.Uvarint(uint64(w.posting.rows) << 1)
	w.entries.Uvarint(uint64(u.Len))
	w.entries.U32(u.CRC)
	return err
}

func (w *writer) closeBlock() {
	if w.count == 0 {
		return
	}
	var b bytescan.Writer
	b.Uvarint(uint64(w.count))
	b.Uvarint(uint64(w.start))
	b.Bytes(w.entries.Buf)
	w.blocks = append(w.blocks, finishedBlock{w.first, b.Buf})
	w.entries.Buf, w.count = w.entries.Buf[:0], 0
}

// finish writes the dictionary and, by nulls, the null rows and returns the root.
func (w *writer) finish(nulls func(*bytescan.Writer) error) ([]byte, error) {
	w.closeBlock()
	var dictionary bytescan.Writer
	switch {
	case len(w.blocks) == 0:
		dictionary.U8(formInside)
		dictionary.Uvarint(0)
		dictionary.Uvarint(0)
	case len(w.blocks) == 1 && len(w.blocks[0].bytes) <= w.sizes.inside:
		dictionary.U8(formInside)
		dictionary.Bytes(w.blocks[0].bytes)
	default:
		if err := w.directory(&dictionary); err != nil {
			return nil, err
		}
	}
	var set bytescan.Writer
	if err := nulls(&set); err != nil {
		return nil, err
	}
	v := uint8(seamless)
	if w.seamed {
		v = version
	}
	root := index.StartRoot(v, textEncoding)
	root.String(w.folding)
	root.Uvarint(uint64(w.rows))
	root.Uvarint(uint64(w.body.Offset()))
	root.Bytes(set.Buf)
	root.Bytes(dictionary.Buf)
	return root.Buf, nil
}

func (w *writer) directory(out *bytescan.Writer) error {
	out.U8(formBlocks)
	out.Uvarint(uint64(len(w.blocks)))
	out.Uvarint(uint64(w.body.Offset()))
	last := int64(-1)
	var errs error
	for _, b := range w.blocks {
		u, err := index.WriteUnit(w.body, b.bytes)
		errs = errors.Join(errs, err)
		out.Uvarint(uint64(int64(b.first) - last - 1))
		out.Uvarint(uint64(u.Len))
		out.U32(u.CRC)
		last = int64(b.first)
	}
	return errs
}
