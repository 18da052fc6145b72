package mask

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// meddling is a store of which somebody overwrites files after some of its waves.
type meddling struct {
	store.Store
	waves int
	at    []int
	write func()
}

func (s *meddling) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	out := s.Store.Fetch(ctx, reads)
	if s.waves++; slices.Contains(s.at, s.waves) {
		s.write()
	}
	return out
}

// TestOverwrittenDeleteFiles: delete files that change between their footers and their pages count as they are then. What changes
// twice is told with the way out, and the next query reads it.
func TestOverwrittenDeleteFiles(t *testing.T) {
	const deleted = 40_000 // a file of which is more than the read of a footer brings
	long := schema(field(1, "id", column.Long))
	for _, kind := range []facts.DeleteKind{facts.PositionDeletes, facts.EqualityDeletes} {
		f := newFixture(t, long)
		var ids []any
		for id := range 4 * deleted {
			ids = append(ids, id)
		}
		f.rowsOf(1, long, ids...)
		from := 0
		write := func(k int) string { // every second row from here on
			if kind == facts.EqualityDeletes {
				var keys []any
				for id := from + k; id < from+deleted; id += 2 {
					keys = append(keys, id)
				}
				return f.write(long, rows(long, keys...))
			}
			var pairs []any
			for row := from + k; row < from+deleted; row += 2 {
				pairs = append(pairs, f.s.Files.Path[0], row)
			}
			return f.write(positionFile, rows(positionFile, pairs...))
		}
		for k := range 2 {
			if i := f.deletes(kind, 2, write(k)); kind == facts.EqualityDeletes {
				f.s.Deletes.FieldIDs[i] = []int{1}
			}
		}
		s := &meddling{Store: f.masker.Store, write: func() {
			from += deleted
			for k := range 2 {
				require.NoError(t, os.Rename(write(k), f.s.Deletes.Path[k]))
			}
		}}
		f.masker.Store = s
		gone := func() {
			masks, _, err := f.masks(Options{})
			require.NoError(t, err)
			set := masks[0].Set(4 * deleted)
			require.EqualValues(t, deleted, set.Count())
			require.True(t, set.Contains(uint32(from)) && set.Contains(uint32(from+deleted-1)))
		}
		s.at = []int{1}
		gone()

		f.masker.Cache, s.waves = NewCache(1<<20), 0
		for k := range 2 {
			f.masker.Footers.Forget(f.s.Deletes.Path[k])
		}
		s.at = []int{1, 3}
		_, _, err := f.masks(Options{})
		require.True(t, fault.Is(err, fault.Stale) && fault.Retryable(err), "%v", err)
		require.Contains(t, err.Error(), f.s.Deletes.Path[0])
		require.Equal(t, "run the query again", fault.FixOf(err))
		s.at = nil
		gone()
	}
}
