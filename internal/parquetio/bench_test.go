package parquetio_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/rowset"
)

type benchRow struct {
	Plain    int64   `parquet:"plain,plain"`
	Optional *int64  `parquet:"optional,optional,plain"`
	Text     string  `parquet:"text,plain"`
	Word     string  `parquet:"word,dict"`
	Delta    int64   `parquet:"delta,delta"`
	Split    float64 `parquet:"split,split"`
	List     []int64 `parquet:"list,list"`
}

func benchFile(b *testing.B) object {
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[benchRow](&buf, parquet.PageBufferSize(256<<10))
	rows := make([]benchRow, 0, 1000)
	for i := range 500_000 {
		v := int64(i) * 7919
		r := benchRow{Plain: v, Text: fmt.Sprintf("text number %d", i), Word: fmt.Sprint("word ", i%100), Delta: v, Split: float64(i), List: []int64{v, v + 1}}
		if i%10 > 0 {
			r.Optional = &v
		}
		if rows = append(rows, r); len(rows) == cap(rows) {
			if _, err := w.Write(rows); err != nil {
				b.Fatal(err)
			}
			rows = rows[:0]
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return buf.Bytes()
}

func BenchmarkDecode(b *testing.B) {
	o := benchFile(b)
	f, err := o.open("bench")
	if err != nil {
		b.Fatal(err)
	}
	var sparse []uint32
	for r := uint32(0); r < uint32(f.Rows()); r += 10 {
		sparse = append(sparse, r)
	}
	for _, field := range f.Schema().Fields {
		for name, rows := range map[string]*rowset.Set{"all": nil, "tenth": rowset.FromRows(uint32(f.Rows()), sparse)} {
			b.Run(field.Name+"/"+name, func(b *testing.B) {
				binding, err := f.Bind([]column.Path{{field}}, nil)
				if err != nil {
					b.Fatal(err)
				}
				var data [][]byte
				for _, s := range binding.Spans(rows) {
					data = append(data, o[s.Off:s.End()])
				}
				b.SetBytes(f.Rows() * 8)
				b.ReportAllocs()
				for b.Loop() {
					if err := binding.Decode(context.Background(), data, rows, 0, func(*column.Batch) error { return nil }); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
