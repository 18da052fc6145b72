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
// reads just these columns would record. Nothing that was kept of the file is used.
func (b *Builder) Rehash(ctx context.Context, s *facts.Snapshot, f File, columns []column.Path) (lineage.File, error) {
	u := Unit{Snapshot: s, Files: []File{f}}
	for _, c := range columns {
		u.Indexes = append(u.Indexes, Index{Columns: []column.Path{c}})
	}
	b.Footers.Forget(f.Path)
	opened, errs := parquetio.Open(ctx, b.Store, b.Footers, []string{f.Path}, []store.Tag{""})
	if err := ctx.Err(); err != nil {
		return lineage.File{}, err
	}
	if errs[0] != nil {
		return lineage.File{}, errs[0]
	}
	src, err := bind(u, f, opened[0])
	if err != nil {
		return lineage.File{}, err
	}
	if err := b.pageIndexes(ctx, []*source{src}, false); err != nil {
		return lineage.File{}, err
	}
	if _, err := b.hash(ctx, src); err != nil {
		return lineage.File{}, err
	}
	return src.lineage(), nil
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
