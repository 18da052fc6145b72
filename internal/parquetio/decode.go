package parquetio

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/rowset"
)

const (
	// decodeStep is the rows that every column advances by between looks at the clock and the batch's size.
	decodeStep = 1024
	// maxBatchBytes ends a batch early.
	maxBatchBytes = 64 << 20
	// defaultBatch is the rows of a batch when the caller does not care.
	defaultBatch = 8192
)

// decoder decodes the wanted rows of one binding.
type decoder struct {
	b       *Binding
	accs    [][]*accumulator
	readers [][]*chunkReader
	emit    func(*column.Batch) error
	limit   int
	pos     []uint32
}

// Decode turns the bytes of Spans(rows), in that order, into batches of at most batchRows rows (0: a default): exactly the
// given rows, in file order, with file positions. A batch never crosses a row group and is valid until emit returns. Errors
// of emit and ctx are returned as they are; bad bytes are Corrupt faults that name file and column. When PageIndexWrong(err), the
// pages contradict their index: DropPageIndex, fetch the new spans and decode again.
func (b *Binding) Decode(ctx context.Context, data [][]byte, rows *rowset.Set, batchRows int, emit func(*column.Batch) error) error {
	if rows != nil && int64(rows.Size()) != b.file.Rows() {
		return fault.New(fault.Invalid, b.file.name, "row set over %d rows for a file of %d", rows.Size(), b.file.Rows())
	}
	if batchRows <= 0 {
		batchRows = defaultBatch
	}
	d := &decoder{b: b, emit: emit, limit: batchRows}
	defer d.release()
	d.prepare()
	err := b.eachGroup(rows, func(g int, wanted []rowset.Range) (err error) {
		if data, err = d.startGroup(g, wanted, data); err != nil {
			return err
		}
		return d.group(ctx, b.file.group(g).Start, wanted)
	})
	if err != nil {
		return err
	}
	if len(data) > 0 {
		return d.misfit()
	}
	return nil
}

func (d *decoder) misfit() error {
	return fault.New(fault.Invalid, d.b.file.name, "data does not belong to the spans of these rows")
}

// PageIndexWrong reports whether a decode failed because the file's page index does not describe its pages.
func PageIndexWrong(err error) bool { return errors.Is(err, errIndexed) }

func (d *decoder) prepare() {
	for _, c := range d.b.cols {
		var accs []*accumulator
		for _, r := range c.readers {
			accs = append(accs, &accumulator{conv: r.conv})
		}
		d.accs = append(d.accs, accs)
	}
}

// startGroup hands every reader its segments of a row group and returns the data that is left.
func (d *decoder) startGroup(g int, wanted []rowset.Range, data [][]byte) ([][]byte, error) {
	segments := map[int][]segment{}
	for _, leaf := range d.b.leaves {
		for _, p := range d.b.pieces(g, leaf, wanted) {
			if len(data) == 0 || int64(len(data[0])) != p.span.Len {
				return nil, d.misfit()
			}
			p.seg.data, data = data[0], data[1:]
			segments[leaf] = append(segments[leaf], p.seg)
		}
	}
	group := &d.b.file.meta.groups[g]
	old := d.readers
	d.readers = nil
	for i, c := range d.b.cols {
		var readers []*chunkReader
		for j, r := range c.readers {
			k := &chunkReader{
				leaf: r.leaf, chunk: &group.chunks[r.leaf.leaf], acc: d.accs[i][j], levels: !c.flat,
				compressed: d.b.file.writer.alwaysCompressed(),
				segments:   append([]segment(nil), segments[r.leaf.leaf]...),
			}
			if old != nil {
				k.page.reuse(&old[i][j].page)
			} else {
				k.page.body = *pageBodies.Get().(*[]byte)
			}
			readers = append(readers, k)
		}
		d.readers = append(d.readers, readers)
	}
	return data, nil
}

// pageBodies is room for decompressed pages, of decoders that are done: batches hold copies.
var pageBodies = sync.Pool{New: func() any { return new([]byte) }}

// maxKeptBody is the most room that is kept of one page.
const maxKeptBody = 4 << 20

// release gives the room of pages back.
func (d *decoder) release() {
	for _, readers := range d.readers {
		for _, r := range readers {
			if body := r.page.body[:0]; cap(body) > 0 && cap(body) <= maxKeptBody {
				pageBodies.Put(&body)
			}
		}
	}
}

// reuse takes over the buffers of a page that is done with.
func (p *page) reuse(old *page) {
	p.rep, p.def, p.body = old.rep[:0], old.def[:0], old.body
	p.values = values{ints32: old.values.ints32, ints64: old.values.ints64, bytes: old.values.bytes, offs: old.values.offs}
}

// group decodes the wanted rows of a row group that begins at file position base.
func (d *decoder) group(ctx context.Context, base uint32, wanted []rowset.Range) error {
	for len(wanted) > 0 {
		var taken []rowset.Range
		rows, size := 0, 0
		for _, accs := range d.accs {
			for _, a := range accs {
				a.reset()
			}
		}
		for len(wanted) > 0 && rows < d.limit && size < maxBatchBytes {
			if err := ctx.Err(); err != nil {
				return err
			}
			var step []rowset.Range
			var n int
			step, wanted, n = cut(wanted, min(decodeStep, d.limit-rows))
			var err error
			if size, err = d.read(step); err != nil {
				return err
			}
			taken, rows = append(taken, step...), rows+n
		}
		if err := d.finish(base, taken, rows); err != nil {
			return err
		}
	}
	return nil
}

// cut takes the first n rows off ranges, shortening them in place.
func cut(ranges []rowset.Range, n int) (head, rest []rowset.Range, rows int) {
	for len(ranges) > 0 && rows < n {
		r := ranges[0]
		if room := n - rows; int64(r.Len()) > int64(room) {
			ranges[0].Start += uint32(room)
			return append(head, rowset.Range{Start: r.Start, End: ranges[0].Start}), ranges, n
		}
		head, ranges, rows = append(head, r), ranges[1:], rows+int(r.Len())
	}
	return head, ranges, rows
}

// read advances every reader over the step's ranges and returns the bytes gathered in the batch so far.
func (d *decoder) read(step []rowset.Range) (size int, err error) {
	for i, readers := range d.readers {
		for _, r := range readers {
			if err := d.guard(i, r.leaf, func() error { return r.readRanges(step) }); err != nil {
				return 0, err
			}
			size += r.acc.size()
		}
	}
	return size, nil
}

func (r *chunkReader) readRanges(step []rowset.Range) error {
	for _, w := range step {
		if err := r.advance(int64(w.Start)); err != nil {
			return err
		}
		if err := r.read(int(w.Len())); err != nil {
			return err
		}
	}
	return nil
}

// guard turns panics and unclassified errors of decoding into corrupt faults and names file and column.
func (d *decoder) guard(col int, leaf *node, work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New(fault.Corrupt, "", "%s", fmt.Sprint("decoding broke off: ", p))
		}
		if fault.Is(err, fault.Unclassified) && err != nil { // a decoder of the library
			err = fault.Wrap(fault.Corrupt, "", err)
		}
		if err != nil {
			name := d.b.cols[col].path.Name()
			if leaf != nil {
				name = leaf.path()
			}
			err = fault.About(d.b.file.name, fault.About("column "+name, err))
		}
	}()
	return work()
}

// finish makes the batch of what was gathered and emits it.
func (d *decoder) finish(base uint32, taken []rowset.Range, rows int) error {
	batch := &column.Batch{Start: base + taken[0].Start, Rows: rows}
	if last := taken[len(taken)-1]; int(last.End-taken[0].Start) != rows {
		d.pos = d.pos[:0]
		for _, r := range taken {
			for at := r.Start; at < r.End; at++ {
				d.pos = append(d.pos, base+at)
			}
		}
		batch.Pos = d.pos
	}
	for i, c := range d.b.cols {
		err := d.guard(i, nil, func() error {
			v, err := c.vector(d.accs[i], rows)
			batch.Cols = append(batch.Cols, v)
			return err
		})
		if err != nil {
			return err
		}
	}
	return d.emit(batch)
}
