package scan

import (
	"context"
	"errors"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/avrorows"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
)

// avro tells that the file is an Avro file: a sequence of whole rows without statistics, which is read from end to end.
func (f *file) avro() bool { return f.run.plan.Snapshot.Files.Format[f.plan.Ordinal] == facts.Avro }

// whole is all of the file's bytes.
func (f *file) whole() []store.Span { return []store.Span{{Off: 0, Len: f.plan.Size}} }

// wholeUnit is the file as one unit, nil if no row of it may match.
func (f *file) wholeUnit() []*unit {
	if f.verdict.May.Empty() {
		return nil
	}
	return []*unit{{file: f, may: f.verdict.May, must: f.verdict.Must, bytes: f.plan.Size + 4096}}
}

// errEnough ends the reading of a file whose rows were all seen.
var errEnough = errors.New("no more rows are wanted")

// readAvro decodes rows of an Avro file from the bytes that were fetched.
func (u *unit) readAvro(ctx context.Context, paths []column.Path, rows *rowset.Set, take func(*column.Batch) error) error {
	data, ok := u.held.All(u.spans)
	if !ok || len(data) != 1 {
		return fault.New(fault.Corrupt, u.file.path, "the bytes to decode were not fetched")
	}
	s := u.file.run.plan.Snapshot
	f, err := avrorows.Open(u.file.path, data[0], s.NameMapping)
	if err != nil {
		return err
	}
	switch n, err := f.Rows(); {
	case err != nil:
		return err
	case n != int64(rows.Size()):
		return fault.New(fault.Corrupt, u.file.path, "the manifest counts %d rows and the file %d", rows.Size(), n)
	}
	left, words := rows.Count(), rows.Words()
	var live []uint64
	err = f.Each(s.In(u.file.plan.Ordinal, paths), batchRows, func(b *column.Batch) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !rows.Full() {
			live = liveOf(live[:0], words, b)
			b = b.Keep(live)
		}
		left -= int64(b.Rows)
		if err := take(b); err != nil || left > 0 {
			return err
		}
		return errEnough
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
