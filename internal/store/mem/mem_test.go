package mem_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/mem"
	"github.com/skomerdb/skomer/internal/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Subject { return storetest.Subject{Store: mem.New(), Root: "root/"} })
}

func TestClockStampsObjects(t *testing.T) {
	now := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	s := mem.New(mem.WithClock(func() time.Time { return now }))
	s.Overwrite("a", nil)
	now = now.Add(time.Hour)
	s.Overwrite("b", nil)
	infos := s.Stat(t.Context(), []string{"a", "b"})
	require.Equal(t, time.Hour, infos[1].Modified.Sub(infos[0].Modified))
	require.Equal(t, now, infos[1].Modified)
}

func TestOverwriteMakesReadsStale(t *testing.T) {
	s := mem.New()
	old := s.Overwrite("a", []byte("1"))
	tag := s.Overwrite("a", []byte("2"))
	require.NotEqual(t, old, tag)
	out := s.Fetch(t.Context(), []store.Read{{Key: "a", Tag: old}, {Key: "a", Tag: tag}})
	require.Error(t, out[0].Err)
	require.NoError(t, out[1].Err)
	require.Equal(t, "2", string(out[1].Data[0]))
}
