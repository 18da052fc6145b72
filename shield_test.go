package skomer_test

import (
	"context"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/store"
)

// pausing is a store that does something after an object was written and before its writer goes on.
type pausing struct {
	store.Store
	after func(key string)
}

func (s *pausing) PutNew(ctx context.Context, key string, r io.ReadSeeker) (store.Tag, error) {
	tag, err := s.Store.PutNew(ctx, key, r)
	if err == nil {
		s.after(key)
	}
	return tag, err
}

// TestVacuumBesidePausedWriters: a vacuum without any grace runs between the upload of every object of a sync, of whatever sort, and the commit
// that names it, and deletes none of them: their writers declared themselves.
func TestVacuumBesidePausedWriters(t *testing.T) {
	ctx := context.Background()
	s := newOfEveryKind(t)
	other := s.open(t)
	sorts := map[string]int{}
	var vacuuming atomic.Bool
	files := lake.LocalFiles()
	c, err := skomer.New(skomer.Config{OverlayRoot: s.overlays(), Workers: 1}.WithStores(files, func(location string) (store.Store, string, error) {
		st, key, err := files(location)
		return &pausing{st, func(key string) {
			ours := slices.Contains([]string{"chunks", "inflight", "versions"}, folderOf(key)) || strings.HasPrefix(filepath.Base(key), "clock-")
			if ours || !vacuuming.CompareAndSwap(false, true) {
				return
			}
			defer vacuuming.Store(false)
			sorts[objectSort(key)]++
			_, err := other.Vacuum(ctx, skomer.VacuumOptions{Retain: 1, Grace: -1})
			require.NoError(t, err, key)
			require.FileExists(t, key)
		}}, key, err
	}).WithSelectFrom(1))
	require.NoError(t, err)
	table, err := c.Open(ctx, s.Location(), skomer.TableOptions{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	for range 7 { // more lists of refusals than an overlay keeps
		s.add(t, s.values[:400]...)
		s.values = append(s.values, s.values[:400]...)
		synced(t, table, skomer.SyncOptions{})
	}
	require.Empty(t, scrubbed(t, s.open(t)).Findings)
	require.Equal(t, []string{"bundle", "facts", "file map", "refused", "stats"}, slices.Sorted(maps.Keys(sorts)))
	require.Greater(t, sorts["refused"], 7, "lists were merged")
	s.requireRight(t, "at the end")
}
