package lake

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/mem"
)

// watched counts reads and listings. The first failures reads fail; after a listing it calls listed.
type watched struct {
	store.Store
	mu       sync.Mutex
	reads    map[string]int
	lists    int
	failures int
	listed   func()
}

func (w *watched) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.Store.Fetch(ctx, reads)
	for i, r := range reads {
		w.reads[r.Key[strings.LastIndexByte(r.Key, '/')+1:]]++
		if w.failures > 0 {
			w.failures--
			out[i] = store.Result{Err: fault.New(fault.Unclassified, r.Key, "the connection broke")}
		}
	}
	return out
}

func (w *watched) List(ctx context.Context, prefix, after string, most int) ([]store.Info, error) {
	out, err := w.Store.List(ctx, prefix, after, most)
	w.lists++
	if w.listed != nil {
		w.listed()
	}
	return out, err
}

func watch(t *testing.T) (made, *watched) {
	t.Helper()
	s := &watched{Store: mem.New(), reads: map[string]int{}}
	w, err := lakewrite.Create(context.Background(), s, "warehouse/table", lakewrite.Spec{Schema: schemaOf(0, field(1, "id", column.Int))})
	require.NoError(t, err)
	return made{w, func(location string) (store.Store, string, error) { return s, location, nil }}, s
}

// TestAhead: what is read ahead is not read again, once; what could not be read ahead is read when it is asked for; what it cost counts
// for the one who asks.
func TestAhead(t *testing.T) {
	w, s := watch(t)
	appendFiles(t, w, data(w, "a.parquet"))
	sources := current(t, w).Sources
	require.Len(t, sources, 2)
	for name, failures := range map[string]int{"as expected": 0, "failing": 3} {
		table := w.open(t)
		s.reads, s.failures = map[string]int{}, failures
		all := append(sources, sources[0], "warehouse/table/metadata/nothing") //nolint:gocritic // a longer copy
		table.lake.Ahead(t.Context(), all)
		var early []*early
		for _, path := range []string{all[0], all[1], all[3]} {
			early = append(early, table.lake.ahead.read[path])
		}
		for _, e := range early {
			<-e.done
		}
		var used store.Counter
		got, err := table.Snapshot(store.WithCounter(t.Context(), &used), Current())
		require.NoError(t, err, name)
		require.Equal(t, []string{w.Location() + "/data/a.parquet"}, got.Files.Path)
		require.Equal(t, sources, got.Sources)
		require.Equal(t, int64(2+failures*2/3), used.Usage().Gets, name)
		for _, path := range sources {
			require.Equal(t, 1+failures/3, s.reads[path[strings.LastIndexByte(path, '/')+1:]], name)
			require.Nil(t, table.lake.ahead.read[path])
		}
	}
}

// TestHintIsReadWhereItMatters: versions without a gap are newest by their number, whatever a hint says.
func TestHintIsReadWhereItMatters(t *testing.T) {
	for _, c := range []struct {
		hint, files string
		reads       int
		want        string
	}{
		{"2", "v1.metadata.json v2.metadata.json", 0, "v2.metadata.json"},
		{"v1", "v1.metadata.json v2.metadata.json", 0, "v2.metadata.json"},
		{"", "v1.metadata.json v3.metadata.json", 0, "v3.metadata.json"},
		{"1", "v1.metadata.json v3.metadata.json", 1, "v1.metadata.json"},
		{"v1.gz", "v1.gz.metadata.json v2.metadata.json", 1, "v1.gz.metadata.json"},
		{"v1.metadata.json", "v1.metadata.json v2.metadata.json", 1, "v1.metadata.json"},
		{"a", "v1.metadata.json a.metadata.json", 1, "a.metadata.json"},
	} {
		s := &watched{Store: mem.New(), reads: map[string]int{}}
		for _, name := range strings.Fields(c.files) {
			put(t, s, name, "{}")
		}
		if c.hint != "" {
			put(t, s, hintName, c.hint)
		}
		l := New(Options{Resolve: func(location string) (store.Store, string, error) { return s, location, nil }})
		got, err := l.newestMetadata(t.Context(), "t")
		require.NoError(t, err, c)
		require.Equal(t, "t/metadata/"+c.want, got, c)
		require.Equal(t, c.reads, s.reads[hintName], c)
	}
}

// TestHintWrittenAfterTheListing: a hint may lead to a file that was not there when the folder was listed.
func TestHintWrittenAfterTheListing(t *testing.T) {
	s := &watched{Store: mem.New(), reads: map[string]int{}}
	put(t, s, "v1.metadata.json", "{}")
	put(t, s, "v9.metadata.json", "{}") // of a writer that failed
	put(t, s, hintName, "1")
	s.listed = func() {
		if s.lists == 1 {
			put(t, s, "v2.metadata.json", "{}")
			require.NoError(t, s.Delete(t.Context(), []string{"t/metadata/" + hintName}))
			put(t, s, hintName, "2")
		}
	}
	l := New(Options{Resolve: func(location string) (store.Store, string, error) { return s, location, nil }})
	got, err := l.newestMetadata(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, "t/metadata/v2.metadata.json", got)
	require.Equal(t, 2, s.lists)
}

func put(t *testing.T, s store.Store, name, content string) {
	t.Helper()
	_, err := s.PutNew(t.Context(), "t/metadata/"+name, strings.NewReader(content))
	require.NoError(t, err)
}
