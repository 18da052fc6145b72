package parquetio_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding"
)

type inner struct {
	A *string `parquet:"a,optional"`
	C []int32 `parquet:"c"`
}

// record has a column for every shape that parquet-go writes and arrow-go does not: bare repeated fields, delta and split
// encodings beside each other, dictionaries in some columns only.
type record struct {
	B  bool             `parquet:"b"`
	I  int32            `parquet:"i,delta"`
	J  *int64           `parquet:"j,optional"`
	D  int64            `parquet:"d,dict"`
	S  string           `parquet:"s,dict"`
	SD string           `parquet:"sd,delta"`
	F  float64          `parquet:"f,split"`
	G  *float32         `parquet:"g,optional"`
	L  []int64          `parquet:"l"`
	LL []string         `parquet:"ll,list"`
	M  map[string]int32 `parquet:"m"`
	U  [16]byte         `parquet:"u,uuid"`
	N  *inner           `parquet:"n,optional"`
	NN []inner          `parquet:"nn,list"`
	T  time.Time        `parquet:"t,timestamp(microsecond)"`
}

func (g generator) record() record {
	r := record{
		B: g.IntN(2) == 0, I: int32(g.integer(32)), D: g.integer(64), S: g.word(), SD: g.word(), F: float64(g.IntN(9)),
		T: time.UnixMicro(g.integer(50)).UTC(), M: map[string]int32{},
	}
	if g.IntN(3) > 0 {
		v := g.integer(64)
		r.J = &v
	}
	if g.IntN(3) > 0 {
		v := float32(g.IntN(5))
		r.G = &v
	}
	for range g.IntN(4) {
		r.L, r.LL = append(r.L, g.integer(64)), append(r.LL, g.word())
	}
	if g.IntN(2) == 0 {
		r.M[g.word()] = int32(g.IntN(5))
	}
	for i := range r.U {
		r.U[i] = byte(g.IntN(256))
	}
	if g.IntN(3) > 0 {
		v := g.inner()
		r.N = &v
	}
	for range g.IntN(3) {
		r.NN = append(r.NN, g.inner())
	}
	return r
}

func (g generator) inner() (v inner) {
	if g.IntN(3) > 0 {
		s := g.word()
		v.A = &s
	}
	for range g.IntN(3) {
		v.C = append(v.C, int32(g.integer(32)))
	}
	return v
}

func anys[T any](s []T, f func(T) any) any {
	out := []any{}
	for _, x := range s {
		out = append(out, f(x))
	}
	return out
}

func (v inner) rendered() any {
	var a any
	if v.A != nil {
		a = *v.A
	}
	return []any{a, anys(v.C, func(x int32) any { return int64(x) })}
}

func (r record) rendered() []any {
	var j, gg, n any
	if r.J != nil {
		j = *r.J
	}
	if r.G != nil {
		gg = *r.G
	}
	if r.N != nil {
		n = r.N.rendered()
	}
	m := []pair{}
	for k, v := range r.M {
		m = append(m, pair{k, int64(v)})
	}
	return []any{
		r.B, int64(r.I), j, r.D, r.S, r.SD, r.F, gg, anys(r.L, func(x int64) any { return x }),
		anys(r.LL, func(x string) any { return x }), m, string(r.U[:]), n, anys(r.NN, func(x inner) any { return x.rendered() }), r.T.UnixMicro(),
	}
}

func TestRandomRecords(t *testing.T) {
	codecs := []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Brotli, &parquet.Zstd, &parquet.Lz4Raw}
	seeds(t, 10, func(t *testing.T, g generator) {
		codec, version := codecs[g.IntN(len(codecs))], 1+g.IntN(2)
		options := []parquet.WriterOption{
			parquet.Compression(codec), parquet.DataPageVersion(version), parquet.PageBufferSize(32 << g.IntN(9)),
			parquet.MaxRowsPerRowGroup(int64(20 + g.IntN(400))), parquet.DataPageStatistics(g.IntN(2) == 0),
		}
		if g.IntN(2) == 0 {
			options = append(options, parquet.DefaultEncodingFor(parquet.Boolean, encoding.Encoding(&parquet.RLE)))
		}
		var buf bytes.Buffer
		w := parquet.NewGenericWriter[record](&buf, options...)
		n := g.IntN(700)
		tab := table{values: make([][]any, 15), note: fmt.Sprintf("%s V%d %d rows", codec, version, n)}
		for range n {
			r := g.record()
			if _, err := w.Write([]record{r}); err != nil {
				t.Fatal(err)
			}
			for c, v := range r.rendered() {
				tab.values[c] = append(tab.values[c], v)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		tab.data = buf.Bytes()
		f, err := tab.data.open("records")
		if err != nil {
			t.Fatal(err)
		}
		checkTable(t, g, tab, f)
	})
}
