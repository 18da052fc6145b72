package scan

import (
	"context"
	"math/bits"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/mask"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
)

// file is a data file being read.
type file struct {
	run     *run
	plan    *File
	path    string
	tag     store.Tag
	opened  *parquetio.Opened
	laid    bool               // by the file's layout
	check   *parquetio.Binding // the predicate's columns; nil if nothing is unsure
	project *parquetio.Binding // the projection; nil when only counting
	mask    *mask.Mask
	verdict rowset.Verdict // without deleted rows once the file is bound
}

// unit is some neighbouring row groups of a file: what one goroutine decodes.
type unit struct {
	file   *file
	may    *rowset.Set // rows of the file that may match, in these row groups
	must   *rowset.Set
	bytes  int64 // estimate of the bytes to hold
	held   parquetio.Held
	spans  []store.Span // of the step at hand; computed by one goroutine for all units
	wide   *rowset.Set  // the rows that the step decodes: those it is about, and small gaps between them
	answer *rowset.Set
}

// units cuts the file into units of about unitRows rows that may match.
func (f *file) units() []*unit {
	if f.avro() {
		return f.wholeUnit()
	}
	var out []*unit
	groups := f.opened.File.RowGroups()
	for i := 0; i < len(groups); {
		first := i
		var rows uint32
		for ; i < len(groups) && (i == first || rows+groups[i].Len() <= unitRows); i++ {
			if f.verdict.May.Intersects(groups[i]) {
				f.run.counters.RowGroups++
				rows += groups[i].Len()
			}
		}
		if rows == 0 {
			continue
		}
		span := rowset.FromRanges(f.verdict.May.Size(), []rowset.Range{{Start: groups[first].Start, End: groups[i-1].End}})
		u := &unit{file: f, may: rowset.And(f.verdict.May, span), must: rowset.And(f.verdict.Must, span)}
		u.bytes = f.opened.Size/max(f.opened.File.Rows(), 1)*int64(rows) + 4096
		if f.laid {
			u.bytes = u.laidSize() + 4096
		}
		u.held = f.opened.Tail.Clone()
		out = append(out, u)
	}
	return out
}

func (u *unit) unsure() *rowset.Set { return rowset.AndNot(u.may, u.must) }

func (u *unit) recheckSpans() []store.Span {
	rows := u.unsure()
	switch {
	case rows.Empty():
		return nil
	case u.file.avro():
		u.wide = rows
		return u.file.whole()
	default:
		u.wide = rowset.Bridge(rows, bridgedGap)
		return u.file.check.Spans(u.wide)
	}
}

// bridgedGap is the rows of a gap that is read and thrown away: skipping many small gaps, as deleted rows leave them, costs more.
const bridgedGap = 48

func (u *unit) projectSpans() []store.Span {
	switch {
	case u.answer.Empty():
		return nil
	case u.file.avro():
		u.wide = u.answer
		return u.file.whole()
	default:
		u.wide = rowset.Bridge(u.answer, bridgedGap)
		return u.file.project.Spans(u.wide)
	}
}

// recheck evaluates the predicate on the unsure rows and settles the answer.
func (u *unit) recheck(ctx context.Context) error {
	u.answer = u.must
	rows := u.unsure()
	if rows.Empty() {
		return nil
	}
	var hits []rowset.Range
	err := u.read(ctx, u.file.check, u.file.run.eval.Reads(), u.wide, func() *rowset.Set { hits = nil; return u.wide }, func(b *column.Batch) error {
		hits = appendHits(hits, b, u.file.run.eval)
		return nil
	})
	if err != nil {
		return err
	}
	u.answer = rowset.Or(u.must, rowset.And(rows, rowset.FromRanges(u.may.Size(), hits)))
	return nil
}

// appendHits adds the file positions of the rows of b that pass.
func appendHits(hits []rowset.Range, b *column.Batch, eval *predicate.Evaluator) []rowset.Range {
	add := func(start, end uint32) {
		if n := len(hits); n > 0 && hits[n-1].End == start {
			hits[n-1].End = end
			return
		}
		hits = append(hits, rowset.Range{Start: start, End: end})
	}
	for w, word := range eval.Rows(b) {
		for word != 0 {
			from := bits.TrailingZeros64(word)
			n := bits.TrailingZeros64(^(word >> from))
			first := w*64 + from
			if b.Pos == nil {
				add(b.Start+uint32(first), b.Start+uint32(first+n))
			} else {
				for _, p := range b.Pos[first : first+n] {
					add(p, p+1)
				}
			}
			if from+n == 64 {
				break
			}
			word &= ^uint64(0) << (from + n)
		}
	}
	return hits
}

// decode reads the projection at the answer and puts it into line i of the queue.
func (u *unit) decode(ctx context.Context, q *queue, i int) error {
	if u.answer.Empty() || ctx.Err() != nil {
		return ctx.Err()
	}
	if err := q.room(ctx, i); err != nil {
		return err
	}
	next := uint32(0) // row to go on at
	left := func() *rowset.Set {
		return rowset.And(u.answer, rowset.FromRanges(u.answer.Size(), []rowset.Range{{Start: next, End: u.answer.Size()}}))
	}
	keep := keeper(u.answer, u.wide)
	return u.read(ctx, u.file.project, u.file.run.project, u.wide, left, func(b *column.Batch) error {
		if b.Rows == 0 {
			return nil
		}
		next = b.Position(b.Rows-1) + 1
		if b = keep(b); b.Rows == 0 {
			return nil
		}
		q.put(i, b)
		return q.room(ctx, i)
	})
}

// keeper copies those rows of a batch that are in answer; decoded is the rows that batches hold.
func keeper(answer, decoded *rowset.Set) func(*column.Batch) *column.Batch {
	if decoded.Count() == answer.Count() {
		return (*column.Batch).Clone
	}
	words := answer.Words()
	var live []uint64
	return func(b *column.Batch) *column.Batch {
		live = liveOf(live[:0], words, b)
		return b.Keep(live)
	}
}

// liveOf appends a bit for every row of a batch: whether its position is in a set.
func liveOf(dst, set []uint64, b *column.Batch) []uint64 {
	for i := 0; i < b.Rows; i += 64 {
		n := min(64, b.Rows-i)
		var word uint64
		if b.Pos == nil {
			at := b.Start + uint32(i)
			word = set[at>>6] >> (at & 63)
			if int(at&63)+n > 64 {
				word |= set[at>>6+1] << (64 - at&63)
			}
			word &= ^uint64(0) >> (64 - n)
		} else {
			for k, p := range b.Pos[i : i+n] {
				word |= set[p>>6] >> (p & 63) & 1 << k
			}
		}
		dst = append(dst, word)
	}
	return dst
}

// read decodes rows of bound paths from the bytes that were fetched. Where the pages are not those of the file's layout, it goes on at the
// rows that are left by the footer, and where they are not those of the page index, with whole chunks; the file's page index is then
// forgotten.
func (u *unit) read(ctx context.Context, b *parquetio.Binding, paths []column.Path, rows *rowset.Set, left func() *rowset.Set, take func(*column.Batch) error) error {
	if u.file.avro() {
		return u.readAvro(ctx, paths, rows, take)
	}
	data, ok := u.held.All(u.spans)
	if !ok {
		return fault.New(fault.Corrupt, u.file.path, "the bytes to decode were not fetched")
	}
	s := u.file.run.plan.Snapshot
	pf := u.file.opened.File
	bind := func() (*parquetio.Binding, error) { return pf.Bind(s.In(u.file.plan.Ordinal, paths), s.NameMapping) }
	err := b.Decode(ctx, data, rows, batchRows, take)
	if u.file.laid && misplaced(err) {
		if pf, err = u.file.footer(ctx); err != nil {
			return err
		}
		if b, err = bind(); err != nil {
			return err
		}
		err = u.again(ctx, b, left(), take)
	}
	if !parquetio.PageIndexWrong(err) {
		return err
	}
	whole, err := bind() // other units decode with b
	if err != nil {
		return err
	}
	whole.DropPageIndex()
	return u.again(ctx, whole, left(), take)
}
