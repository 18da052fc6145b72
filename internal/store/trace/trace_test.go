package trace_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/mem"
	"github.com/skomerdb/skomer/internal/store/trace"
)

func TestWavesAreLoggedAndStillCounted(t *testing.T) {
	ctx := context.Background()
	inner := mem.New()
	_, err := inner.PutNew(ctx, "a", strings.NewReader("hello"))
	require.NoError(t, err)
	log := trace.NewLog()
	s := trace.New(inner, log, "table")
	var c store.Counter
	ctx = store.WithCounter(ctx, &c)
	out := s.Fetch(ctx, []store.Read{{Key: "a"}, {Key: "b"}})
	require.Equal(t, "hello", string(out[0].Data[0]))
	require.Error(t, out[1].Err)
	require.Empty(t, s.Fetch(ctx, nil))
	waves := log.Waves()
	require.Len(t, waves, 1)
	w := waves[0]
	require.Equal(t, "table", w.Of)
	require.Equal(t, "a", w.First)
	require.Equal(t, 2, w.Objects)
	require.Equal(t, 1, w.Failed)
	require.EqualValues(t, 5, w.Bytes)
	require.Equal(t, c.Usage().Requests(), w.Requests)
	require.LessOrEqual(t, w.Start, w.End)
	s.Forget("a")
}
