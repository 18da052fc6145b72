package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/storetest"
)

func plan(t *testing.T, size, gap int64, spans ...store.Span) store.Plan {
	t.Helper()
	p, err := store.PlanRead(store.Read{Key: "o", Spans: spans}, size, gap)
	require.NoError(t, err)
	return p
}

func TestPlanUnitesWithinTheGap(t *testing.T) {
	a, b, c := store.Span{Off: 0, Len: 10}, store.Span{Off: 15, Len: 5}, store.Span{Off: 26, Len: 4}
	for gap, want := range map[int64][]store.Span{
		4: {a, b, c},
		5: {{Off: 0, Len: 20}, c},
		6: {{Off: 0, Len: 30}},
	} {
		require.Equal(t, want, plan(t, 100, gap, c, a, b).Requests, "gap %d", gap)
		require.Equal(t, want, plan(t, -1, gap, c, a, b).Requests, "gap %d", gap)
		narrowed, err := store.PlanRead(store.Read{Key: "o", Spans: []store.Span{c, a, b}, Gap: gap}, 100, 50)
		require.NoError(t, err)
		require.Equal(t, want, narrowed.Requests, "a read's own gap %d", gap)
	}
	require.Equal(t, []store.Span{{Off: 10, Len: 20}}, plan(t, 100, 0, store.Span{Off: 10, Len: 20}, store.Span{Off: 12, Len: 3}, store.Span{Off: 30}).Requests, "spans within spans")
	require.Empty(t, plan(t, 100, 0, store.Span{Off: 3}).Requests, "no bytes, no request")
	require.Equal(t, []store.Span{{Off: 70, Len: 30}}, plan(t, 100, 10, store.Span{Off: 70, Len: 20}, store.Suffix(10)).Requests, "a suffix of a known object is a range")
}

func TestPlanOfUnknownSize(t *testing.T) {
	require.Equal(t, []store.Span{{Off: 0, Len: store.ToEnd}}, plan(t, -1, 10).Requests, "the whole object")
	p := plan(t, -1, 10, store.Suffix(3), store.Span{Off: 2, Len: 2}, store.Suffix(5), store.Span{Off: 9, Len: 1})
	require.Equal(t, []store.Span{{Off: 2, Len: 8}, {Off: -5}}, p.Requests, "suffixes share one request")
	data, err := p.Cut([]store.Body{{Off: 2, Data: []byte("23456789")}, {Off: 5, Data: []byte("56789")}})
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("789"), []byte("23"), []byte("56789"), []byte("9")}, data)
	data, err = p.Cut([]store.Body{{Off: 2, Data: []byte("23456789")}, {Off: 8, Data: []byte("89")}})
	require.NoError(t, err)
	require.Equal(t, "89", string(data[0]), "an object shorter than the suffix")
	_, err = p.Cut([]store.Body{{Off: 2, Data: []byte("2345678")}, {Off: 8, Data: []byte("8")}})
	require.Equal(t, fault.Corrupt, fault.ClassOf(err), "the object ended before a span did")
}

// TestPlanProperties checks on random spans that requests cover every byte asked for, are apart by more than the gap,
// fetch nothing but spans and gaps, and that cutting gives back each span, with a known and an unknown size.
func TestPlanProperties(t *testing.T) {
	rnd := storetest.Rand(t)
	for range 2000 {
		object := make([]byte, 1+rnd.IntN(300))
		for i := range object {
			object[i] = byte(i)
		}
		gap := int64(rnd.IntN(20))
		spans := make([]store.Span, 1+rnd.IntN(8))
		for i := range spans {
			off := rnd.IntN(len(object) + 1)
			spans[i] = store.Span{Off: int64(off), Len: int64(rnd.IntN(min(len(object)-off, 40) + 1))}
			if rnd.IntN(5) == 0 {
				spans[i] = store.Suffix(1 + int64(rnd.IntN(len(object)+50)))
			}
		}
		for _, size := range []int64{int64(len(object)), -1} {
			checkPlan(t, object, size, gap, spans)
		}
	}
}

func checkPlan(t *testing.T, object []byte, size, gap int64, spans []store.Span) {
	t.Helper()
	p := plan(t, size, gap, spans...)
	var bodies []store.Body
	end := int64(-1)
	for _, q := range p.Requests {
		if q.Off < 0 {
			require.EqualValues(t, -1, size, "a suffix stays only when the size is unknown")
			from := max(0, int64(len(object))+q.Off)
			bodies = append(bodies, store.Body{Off: from, Data: object[from:]})
			continue
		}
		if end >= 0 {
			require.Greater(t, q.Off-end, gap, "requests that should be one")
		}
		end = q.End()
		bodies = append(bodies, store.Body{Off: q.Off, Data: object[q.Off:q.End()]})
	}
	data, err := p.Cut(bodies)
	require.NoError(t, err)
	for i, s := range spans {
		want := object
		if s.Off < 0 {
			want = want[max(0, int64(len(object))+s.Off):]
		} else {
			want = want[s.Off:s.End()]
		}
		require.Equal(t, string(want), string(data[i]), "span %v size %d gap %d", s, size, gap)
	}
}
