package wave_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/wave"
)

// body is an artifact's body as a store of one object.
type body struct {
	store.Store
	data *indextest.Body
	read int64
}

func (b *body) Fetch(_ context.Context, reads []store.Read) []store.Result {
	out := make([]store.Result, len(reads))
	for i, r := range reads {
		for _, s := range r.Spans {
			out[i].Data = append(out[i].Data, b.data.Bytes()[s.Off:s.Off+s.Len])
			b.read += s.Len
		}
	}
	return out
}

// TestBroadProbesAreStopped: a probe that would take more rows one by one than it may reads nothing more and knows nothing; any other answers
// as it does without a bound.
func TestBroadProbesAreStopped(t *testing.T) {
	rng := indextest.Rand(t)
	const rows = 60_000
	values := make([]int64, rows)
	for i := range values {
		values[i] = rng.Int64N(rows)
	}
	path := column.Path{{ID: 1, Name: "x", Type: column.Of(column.Long)}}
	for _, name := range []string{"ordered", "bitmap"} {
		k, _ := kinds.ByName(name)
		v := &column.Vector{Type: column.Of(column.Long), Len: rows, Fixed: column.BytesOf(values)}
		if name == "bitmap" {
			few := make([]int64, rows)
			for i := range few {
				few[i] = values[i] % 50 * (rows / 50)
			}
			v.Fixed = column.BytesOf(few)
		}
		b, err := k.Kind.NewBuilder(index.Spec{Columns: []column.Path{path}, Rows: rows}, index.Budget{TempDir: t.TempDir()})
		require.NoError(t, err)
		require.NoError(t, b.Add([]*column.Vector{v}))
		data := &indextest.Body{}
		root, _, err := b.Finish(data)
		require.NoError(t, err)
		require.NoError(t, b.Close())
		stopped, answered := 0, 0
		for range 60 {
			low := rng.Int64N(rows)
			leaf := &predicate.Leaf{
				Column: predicate.Column{Path: path}, Op: []predicate.Op{predicate.Less, predicate.GreaterEqual, predicate.Equal}[rng.IntN(3)],
				Values: []column.Value{column.IntValue(column.Long, low)},
			}
			ask := func(most int64) (rowset.Verdict, *wave.Probe, int64) {
				st := &body{data: data}
				p := wave.NewProbe("b", wave.Artifact{
					Kind: k.Kind, Rows: rows, RootCRC: bytescan.CRC32C(root), RootData: root, Body: store.Span{Len: data.Offset()},
				}, leaf, noReaders{})
				p.Most = most
				require.NoError(t, p.Prepare())
				require.NoError(t, wave.Run(context.Background(), st, []*wave.Task{{Key: "b", Steps: p}}))
				return p.Verdict(), p, st.read
			}
			want, _, all := ask(0)
			most := 1 + rng.Int64N(rows/2)
			got, p, read := ask(most)
			if n := p.Stopped(); n > 0 {
				stopped++
				require.Greater(t, n, most)
				require.True(t, got.May.Full() && got.Must.Empty(), "%s %s", name, leaf)
				require.Less(t, read, all, "%s %s", name, leaf)
				continue
			}
			answered++
			require.True(t, got.May.Equal(want.May) && got.Must.Equal(want.Must), "%s %s", name, leaf)
		}
		require.Positive(t, stopped, name)
		require.Positive(t, answered, name)
	}
}
