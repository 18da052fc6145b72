package build

import (
	"context"
	"math"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/store"
)

// Rehash reads a data file as it is now, its footer and the chunks of some columns, and returns the identity that a build which
// reads just these columns would record. Nothing that was kept of the file is used. The snapshot need not have
// the file any more.
func (b *Builder) Rehash(ctx context.Context, s *facts.Snapshot, f File, columns []column.Path) (lineage.File, error) {
	out, _, err := b.rehash(ctx, s, f, columns)
	return out, err
}

// rehash is Rehash that tells how many bytes of columns it read.
func (b *Builder) rehash(ctx context.Context, s *facts.Snapshot, f File, columns []column.Path) (out lineage.File, read int64, err error) {
	var u Unit
	for _, c := range columns {
		u.Indexes = append(u.Indexes, Index{Columns: []column.Path{c}})
	}
	b.Footers.Forget(f.Path)
	opened, errs := parquetio.Open(ctx, b.Store, b.Footers, []string{f.Path}, []store.Tag{""})
	if err := ctx.Err(); err != nil {
		return out, 0, err
	}
	if errs[0] != nil {
		return out, 0, errs[0]
	}
	src, err := bindTo(f, opened[0], u.reads(), s.NameMapping)
	if err != nil {
		return out, 0, err
	}
	if err := b.pageIndexes(ctx, []*source{src}, false); err != nil {
		return out, 0, err
	}
	if read, err = b.hash(ctx, src); err != nil {
		return out, read, err
	}
	return src.lineage(), read, nil
}

// hash reads the chunks of a file's bound columns for their hash alone, and returns how many bytes those are.
func (b *Builder) hash(ctx context.Context, s *source) (read int64, err error) {
	err = b.each(ctx, s, func(p part, data [][]byte) error {
		read += p.bytes
		for _, d := range data {
			s.read.Write(d)
		}
		return nil
	})
	return read, err
}

// each reads the parts of a file one after the other, many in a wave.
func (b *Builder) each(ctx context.Context, s *source, visit func(part, [][]byte) error) error {
	for parts := s.parts(); len(parts) > 0; {
		n, bytes := 0, int64(0)
		read := store.Read{Key: s.Path, Tag: s.opened.Tag, Max: math.MaxInt64}
		for n < len(parts) && (n == 0 || bytes+parts[n].bytes <= waveBytes) {
			read.Spans = append(read.Spans, parts[n].spans...)
			bytes += parts[n].bytes
			n++
		}
		var data [][]byte
		if len(read.Spans) > 0 {
			res := b.Store.Fetch(ctx, []store.Read{read})[0]
			if res.Err != nil {
				return fault.About(s.Path, res.Err)
			}
			data = res.Data
		}
		for _, p := range parts[:n] {
			if err := visit(p, data[:len(p.spans)]); err != nil {
				return err
			}
			data = data[len(p.spans):]
		}
		parts = parts[n:]
	}
	return nil
}
