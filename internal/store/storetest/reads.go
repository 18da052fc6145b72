package storetest

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

func testSpans(t *testing.T, k *kit) {
	tag := k.put("o", []byte("0123456789"))
	r := k.read("o", "")
	require.NoError(t, r.Err)
	require.Equal(t, [][]byte{[]byte("0123456789")}, r.Data, "no spans: the whole object")
	require.EqualValues(t, 10, r.Size)
	require.Equal(t, tag, r.Tag)

	r = k.read("o", tag, store.Span{Off: 7, Len: 2}, store.Span{Off: 0, Len: 1}, store.Span{Off: 0, Len: 10}, store.Span{Off: 7, Len: 2},
		store.Span{Off: 8, Len: 2}, store.Suffix(3), store.Suffix(1), store.Suffix(10), store.Suffix(1000),
		store.Span{Off: 10, Len: 0}, store.Span{Off: 3, Len: 0}, store.Suffix(0), store.Span{Off: -2, Len: 99}, store.Suffix(math.MinInt64))
	require.NoError(t, r.Err)
	require.Equal(t, []string{"78", "0", "0123456789", "78", "89", "789", "9", "0123456789", "0123456789", "", "", "", "89", "0123456789"}, texts(r.Data))
	require.EqualValues(t, 10, r.Size)
	require.Equal(t, tag, r.Tag)

	for _, alone := range []store.Span{{Off: 3, Len: 4}, store.Suffix(7), store.Suffix(11), {Off: 10, Len: 0}} {
		r := k.read("o", "", alone)
		require.NoError(t, r.Err, alone)
		require.Equal(t, oracle([]byte("0123456789"), alone), string(r.Data[0]), alone)
		require.NotNil(t, r.Data[0], "empty data is not nil")
	}
}

func texts(data [][]byte) []string {
	out := make([]string, len(data))
	for i, b := range data {
		out[i] = string(b)
	}
	return out
}

// oracle is what a span of b holds, by the text of the contract.
func oracle(b []byte, s store.Span) string {
	if s.Off < 0 {
		return string(b[max(0, len(b)+int(s.Off)):])
	}
	return string(b[s.Off : s.Off+s.Len])
}

func testRandomSpans(t *testing.T, k *kit) {
	for round := range 30 {
		name := fmt.Sprintf("o%d", round)
		b := k.bytesOf(1 + k.rnd.IntN(200_000))
		tag := k.put(name, b)
		spans := make([]store.Span, 1+k.rnd.IntN(40))
		for i := range spans {
			off := k.rnd.IntN(len(b) + 1)
			spans[i] = store.Span{Off: int64(off), Len: int64(k.rnd.IntN(min(len(b)-off, 5_000) + 1))}
			if k.rnd.IntN(8) == 0 {
				spans[i] = store.Suffix(int64(k.rnd.IntN(len(b) * 5 / 4)))
			}
		}
		for _, want := range []store.Tag{"", tag, tag} { // the third time perhaps from a cache
			r := k.read(name, want, spans...)
			require.NoError(t, r.Err)
			require.Len(t, r.Data, len(spans))
			for i, s := range spans {
				require.Equal(t, oracle(b, s), string(r.Data[i]), "span %v of %d bytes", s, len(b))
				require.Equal(t, len(r.Data[i]), cap(r.Data[i]), "appending to data cannot reach a neighbour")
			}
		}
	}
}

func testPastTheEnd(t *testing.T, k *kit) {
	tag := k.put("o", []byte("0123456789"))
	for _, s := range []store.Span{
		{Off: 9, Len: 2},
		{Off: 10, Len: 1},
		{Off: 11, Len: 0},
		{Off: 1 << 40, Len: 1},
		{Off: 0, Len: 11},
		{Off: 5, Len: math.MaxInt64},
		{Off: 0, Len: math.MaxInt64},
		{Off: math.MaxInt64, Len: 1},
		{Off: 2, Len: -1},
	} {
		for _, want := range []store.Tag{"", tag} {
			r := k.read("o", want, store.Span{Off: 0, Len: 4}, s)
			require.Equal(t, fault.Corrupt, fault.ClassOf(r.Err), "span %v: %v", s, r.Err)
			require.Contains(t, r.Err.Error(), k.key("o"))
			require.Nil(t, r.Data, "never a short slice")
		}
	}
	require.Equal(t, "0123456789", k.whole("o"))
}

func testEmptyObject(t *testing.T, k *kit) {
	tag := k.put("empty", nil)
	require.Equal(t, "", k.whole("empty"))
	for range 2 {
		r := k.read("empty", tag, store.Suffix(100), store.Span{}, store.Suffix(0))
		require.NoError(t, r.Err)
		require.Equal(t, []string{"", "", ""}, texts(r.Data))
		require.Zero(t, r.Size)
	}
	require.Equal(t, fault.Corrupt, fault.ClassOf(k.read("empty", "", store.Span{Len: 1}).Err))
	i := k.stat("empty")
	require.NoError(t, i.Err)
	require.Zero(t, i.Size)
}

func testReadLimit(t *testing.T, k *kit) {
	spans := []store.Span{{Off: 0, Len: 600}, store.Suffix(400)}
	for limit, want := range map[int64]fault.Class{1000: fault.Unclassified, 999: fault.Exhausted, 1: fault.Exhausted, 0: fault.Unclassified} {
		name := fmt.Sprintf("limit %d", limit)
		tag := k.put(name, k.bytesOf(1000))
		out := k.Fetch(k.ctx, []store.Read{{Key: k.key(name), Max: limit}, {Key: k.key(name), Tag: tag, Spans: spans, Max: limit}})
		for _, r := range out {
			require.Equal(t, want, fault.ClassOf(r.Err), "limit %d: %v", limit, r.Err)
			require.Equal(t, want != fault.Unclassified, r.Data == nil)
		}
	}
}

func testLargeObject(t *testing.T, k *kit) {
	b := k.bytesOf(9 << 20)
	tag := k.put("large", b)
	r := k.read("large", tag, store.Span{Off: 1, Len: 8<<20 + 5}, store.Suffix(5))
	require.NoError(t, r.Err)
	require.True(t, string(b[1:][:8<<20+5]) == string(r.Data[0]))
	require.True(t, string(b[len(b)-5:]) == string(r.Data[1]))
	require.True(t, string(b) == k.whole("large"))
}

func testManyReads(t *testing.T, k *kit) {
	var reads []store.Read
	for i := range 300 {
		name := fmt.Sprintf("d%d/o%d", i%7, i)
		if i%10 != 0 {
			k.put(name, fmt.Appendf(nil, "content of %d", i))
		}
		reads = append(reads, store.Read{Key: k.key(name), Spans: []store.Span{{Off: 8, Len: 3}, {Off: 0, Len: 7}}})
	}
	out := k.Fetch(k.ctx, reads)
	require.Len(t, out, len(reads), "results run parallel to reads")
	for i, r := range out {
		if i%10 == 0 {
			require.Equal(t, fault.NotFound, fault.ClassOf(r.Err), "read %d", i)
			continue
		}
		require.NoError(t, r.Err)
		require.Equal(t, []string{"of ", "content"}, texts(r.Data))
	}
	require.Empty(t, k.Fetch(k.ctx, nil))
}

func testTags(t *testing.T, k *kit) {
	first := k.put("o", []byte("same size 1"))
	seen := map[store.Tag]bool{first: true}
	tag := first
	for i := range 40 { // faster than a kernel clock ticks
		content := fmt.Appendf(nil, "same size %d", i%10)
		if k.contentTags {
			content = fmt.Appendf(nil, "same size %02d", i)
		}
		tag = k.replace("o", tag, content)
		require.False(t, seen[tag], "a tag came back after %d writes", i)
		seen[tag] = true
		require.Equal(t, tag, k.stat("o").Tag)
		require.Equal(t, tag, k.read("o", "").Tag)
	}
}

func testStale(t *testing.T, k *kit) {
	old := k.put("o", []byte("before"))
	k.put("other", []byte("other"))
	tag := k.replace("o", old, []byte("after!"))
	out := k.Fetch(k.ctx, []store.Read{
		{Key: k.key("o"), Tag: old, Spans: []store.Span{{Off: 0, Len: 6}}},
		{Key: k.key("other")},
		{Key: k.key("o"), Tag: tag, Spans: []store.Span{{Off: 0, Len: 6}}},
		{Key: k.key("o"), Tag: "no such tag"},
	})
	require.Equal(t, fault.Stale, fault.ClassOf(out[0].Err), "%v", out[0].Err)
	require.Nil(t, out[0].Data)
	require.NoError(t, out[1].Err, "one stale read leaves the others alone")
	require.NoError(t, out[2].Err)
	require.Equal(t, []string{"after!"}, texts(out[2].Data))
	require.Equal(t, fault.Stale, fault.ClassOf(out[3].Err))
}

func testMissing(t *testing.T, k *kit) {
	k.put("dir/o", []byte("x"))
	for _, name := range []string{"nothing", "dir", "dir/o/below", "no/such/dir/o"} {
		r := k.read(name, "", store.Span{Len: 1})
		require.Equal(t, fault.NotFound, fault.ClassOf(r.Err), "%s: %v", name, r.Err)
		require.Contains(t, r.Err.Error(), k.key(name), "an error names the object")
		require.Equal(t, fault.NotFound, fault.ClassOf(k.stat(name).Err), name)
	}
}

func testDataIndependence(t *testing.T, k *kit) {
	b := []byte("before")
	tag := k.put("o", b)
	r := k.read("o", tag, store.Span{Off: 0, Len: 6}, store.Suffix(3))
	copy(b, "xxxxxx")
	next := []byte("after!")
	k.replace("o", tag, next)
	copy(next, "yyyyyy")
	require.Equal(t, []string{"before", "ore"}, texts(r.Data), "data that was read does not change")
	require.Equal(t, "after!", k.whole("o"), "the store keeps its own copy")
}
