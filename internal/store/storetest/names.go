package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

func testStat(t *testing.T, k *kit) {
	tag := k.put("a", []byte("12345"))
	k.put("b", nil)
	out := k.Store.Stat(k.ctx, []string{k.key("b"), k.key("missing"), k.key("a")})
	require.Len(t, out, 3)
	for i, name := range []string{"b", "missing", "a"} {
		require.Equal(t, k.key(name), out[i].Key, "in the order of keys")
	}
	require.NoError(t, out[0].Err)
	require.Equal(t, fault.NotFound, fault.ClassOf(out[1].Err))
	require.NoError(t, out[2].Err)
	require.EqualValues(t, 5, out[2].Size)
	require.Equal(t, tag, out[2].Tag)
	require.WithinDuration(t, time.Now(), out[2].Modified, time.Hour)
	listed, err := k.List(k.ctx, k.root, "", 10)
	require.NoError(t, err)
	require.Equal(t, []store.Info{out[2], out[0]}, listed, "a listing describes objects as Stat does")
}

// sortedNames are in ascending byte order; '-' and '.' sort before '/', digits and letters behind it.
var sortedNames = []string{"a-b", "a-b.c", "a.b/x", "a.b0", "a/x", "a/y/z", "a/y0", "a0", "ab/c", "b", "é", "日本/語"}

func testListOrder(t *testing.T, k *kit) {
	require.True(t, slices.IsSorted(sortedNames))
	for _, i := range k.rnd.Perm(len(sortedNames)) {
		k.put(sortedNames[i], []byte(sortedNames[i]))
	}
	require.Equal(t, sortedNames, k.list("", "", 100))
	prefixes := []string{"", "a", "a/", "a.", "a/y", "a/y/", "ab", "b", "b/", "c", "日", "a-b", "a/x/"}
	afters := append([]string{"", "a", "a/", "a/y/", "a/zz", "zz", "a/x/q", "a.b/x0", "\xff"}, sortedNames...)
	for _, prefix := range prefixes {
		for _, after := range afters {
			for _, most := range []int{0, 1, 2, 100} {
				want := []string{}
				for _, n := range sortedNames {
					if strings.HasPrefix(n, prefix) && n > after && len(want) < most {
						want = append(want, n)
					}
				}
				require.Equal(t, want, k.list(prefix, after, most), "prefix %q after %q max %d", prefix, after, most)
			}
		}
	}
}

func testListPaging(t *testing.T, k *kit) {
	var want []string
	for i := range 150 {
		name := fmt.Sprintf("v/%020d", 1_000_000-i) // newest first, as overlay versions are named
		if i%3 == 0 {
			name = fmt.Sprintf("v/%020d/part-%d", 1_000_000-i, i)
		}
		k.put(name, nil)
		want = append(want, name)
	}
	slices.Sort(want)
	require.Equal(t, want[:1], k.list("v/", "", 1))
	for _, page := range []int{1, 7, 150} {
		got, after := []string{}, ""
		for {
			names := k.list("v/", after, page)
			require.LessOrEqual(t, len(names), page)
			if len(names) == 0 {
				break
			}
			got, after = append(got, names...), names[len(names)-1]
		}
		require.Equal(t, want, got, "pages of %d", page)
	}
	require.Empty(t, k.list("none/", "", 10), "listing nothing is no error")
}

func testOddNames(t *testing.T, k *kit) {
	k.odd([]string{
		"%20", "a b", "+", "#", "=", "é", "e\u0301", "%", "%2F", "?x=1&y", "*", "[a]", "\"q\"", "'", ";", ":",
		"~", "$HOME", "..a", "...", "-rf", " lead", "trail ", "a\nb", "日本", strings.Repeat("n", 200),
	})
}

// testBackslash is apart, because some servers take a backslash for a slash.
func testBackslash(_ *testing.T, k *kit) { k.odd([]string{"\\"}) }

// odd writes, reads, lists and deletes objects whose names hold odd parts.
func (k *kit) odd(parts []string) {
	t := k.T
	var names []string
	for _, part := range parts {
		names = append(names, "dir"+part+"/f"+part+".parquet", part)
	}
	for _, n := range names {
		k.put(n, []byte(n))
	}
	for _, n := range names {
		require.Equal(t, n, k.whole(n), "opened verbatim")
		require.NoError(t, k.stat(n).Err)
		require.Equal(t, []string{n}, k.list(n, "", 1))
	}
	slices.Sort(names)
	require.Equal(t, names, k.list("", "", 1000))
	for _, n := range names {
		require.NoError(t, k.Delete(k.ctx, []string{k.key(n)}))
	}
	require.Empty(t, k.list("", "", 10))
}

func testCancelled(t *testing.T, k *kit) {
	tag := k.put("o", []byte("x"))
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	for _, r := range k.Fetch(ctx, []store.Read{{Key: k.key("o")}, {Key: k.key("missing")}}) {
		require.ErrorIs(t, r.Err, context.Canceled)
		require.Nil(t, r.Data)
	}
	for _, i := range k.Store.Stat(ctx, []string{k.key("o")}) {
		require.ErrorIs(t, i.Err, context.Canceled)
	}
	_, err := k.List(ctx, k.root, "", 10)
	require.ErrorIs(t, err, context.Canceled)
	_, err = k.PutNew(ctx, k.key("new"), strings.NewReader("new"))
	require.ErrorIs(t, err, context.Canceled)
	_, err = k.PutIf(ctx, k.key("o"), tag, []byte("y"))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, k.Delete(ctx, []string{k.key("o")}), context.Canceled)
	require.Equal(t, []string{"o"}, k.list("", "", 10))
	require.Equal(t, "x", k.whole("o"))

	late, stop := context.WithDeadline(k.ctx, time.Now().Add(-time.Second))
	defer stop()
	r := k.Fetch(late, []store.Read{{Key: k.key("o")}})[0]
	require.ErrorIs(t, r.Err, context.DeadlineExceeded)
}

func testUsage(t *testing.T, k *kit) {
	var outer, inner store.Counter
	ctx := store.WithCounter(store.WithCounter(k.ctx, &outer), &inner)
	k.ctx = ctx
	b := k.bytesOf(4 << 20)
	k.put("o", b)
	require.Equal(t, store.Usage{Puts: 1, BytesWritten: 4 << 20}, inner.Usage())
	before := inner.Usage()
	far := int64(3 << 20) // farther than any gap
	k.Fetch(ctx, []store.Read{{Key: k.key("o"), Spans: []store.Span{{Off: 0, Len: 10}, {Off: 5, Len: 10}, {Off: far, Len: 7}}}})
	require.Equal(t, store.Usage{Waves: 1, Gets: 2, BytesRead: 22}, inner.Usage().Sub(before))
	before = inner.Usage()
	k.stat("o")
	k.list("", "", 10)
	require.NoError(t, k.Delete(ctx, []string{k.key("o")}))
	used := inner.Usage().Sub(before)
	require.Equal(t, store.Usage{Heads: 1, Lists: 1, Deletes: 1}, used)
	require.EqualValues(t, 3, used.Requests())
	require.Equal(t, outer.Usage(), inner.Usage(), "every counter of a context counts")
	require.Zero(t, inner.Usage().Sub(inner.Usage()))
	k.Fetch(k.T.Context(), []store.Read{{Key: k.key("o")}})
	require.Equal(t, outer.Usage(), inner.Usage(), "other contexts are not counted")
}
