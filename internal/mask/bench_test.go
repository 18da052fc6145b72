package mask

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/parquetio"
)

// bench measures masks of all data files of a fixture, with nothing in memory.
func bench(b *testing.B, f *fixture) {
	files := make([]File, f.s.Files.Len())
	for i := range files {
		files[i].Ordinal = i
	}
	b.ReportAllocs()
	for b.Loop() {
		f.masker.Footers, f.masker.Cache = parquetio.NewFooters(1<<20), NewCache(64<<20)
		_, _, err := f.masker.Masks(context.Background(), f.s, files, Options{})
		require.NoError(b, err)
	}
}

// BenchmarkPositions reads a million position deletes over 100 data files, from 10 delete files.
func BenchmarkPositions(b *testing.B) {
	f := newFixture(b, schema(field(1, "id", column.Long)))
	f.layout.RowsPerGroup, f.layout.Dictionary = 1<<20, true
	for i := range 100 {
		f.data(1, fmt.Sprintf("s3://bucket/warehouse/table/data/part-%05d-of-a-job-with-a-long-name.parquet", i), 100_000)
	}
	for d := range 10 {
		var pairs []any
		for i := range 100 {
			for p := range 1000 {
				pairs = append(pairs, f.s.Files.Stated[i], p*100+d)
			}
		}
		f.positions(2, pairs...)
	}
	bench(b, f)
}

// BenchmarkEquality looks a thousand keys up in a million rows.
func BenchmarkEquality(b *testing.B) {
	s := schema(field(1, "id", column.Long), field(2, "name", column.String))
	f := newFixture(b, s)
	f.layout.RowsPerGroup = 100_000
	var values, keys []any
	for i := range 1_000_000 {
		values = append(values, (i*7919)%1_000_003, "n")
	}
	for i := range 1000 {
		keys = append(keys, i*1000+1)
	}
	f.rowsOf(1, s, values...)
	f.keys(2, schema(s.Fields[0]), keys...)
	bench(b, f)
}
