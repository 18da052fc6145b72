package lake

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
)

// TestSinceIsTheDifference compares what manifest lists tell of two snapshots of a random history with the difference of their whole facts.
func TestSinceIsTheDifference(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("SKOMER_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 3))
	w := create(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "id", column.Int)), FormatVersion: 1 + rng.IntN(3)})
	var live []string
	ids := []int64{}
	for step := range 25 {
		change := lakewrite.Change{}
		for k := range rng.IntN(4) {
			f := data(w, fmt.Sprintf("f%d-%d", step, k))
			if len(live) > 0 && rng.IntN(12) == 0 {
				f.Path = live[rng.IntN(len(live))] // again, or listed twice
				f.Size += rng.Int64N(2)
			}
			change.Add = append(change.Add, f)
		}
		if len(live) > 3 && rng.IntN(3) == 0 {
			i := rng.IntN(len(live))
			change.Remove = []string{live[i]}
		}
		id, err := w.Commit(t.Context(), change)
		require.NoError(t, err)
		ids = append(ids, id)
		live = nil
		seen := map[string]bool{}
		for _, path := range at(t, w, Selector{ID: id}).Files.Stated {
			if !seen[path] {
				live = append(live, path)
			}
			seen[path] = true
		}
	}
	table := w.open(t)
	for range 60 {
		from, to := ids[rng.IntN(len(ids))], ids[rng.IntN(len(ids))]
		compareSince(t, table, at(t, w, Selector{ID: from}), at(t, w, Selector{ID: to}))
	}
}

func compareSince(t *testing.T, table *Table, from, to *facts.Snapshot) {
	t.Helper()
	old, err := table.View(Selector{ID: from.ID})
	require.NoError(t, err)
	now, err := table.View(Selector{ID: to.ID})
	require.NoError(t, err)
	got, err := now.Since(t.Context(), nil, old)
	require.NoError(t, err)
	require.False(t, got.Deletes)
	had, has := map[same]int{}, map[same]int{}
	for i, path := range from.Files.Stated {
		had[same{path, from.Files.Size[i], from.Files.Records[i]}]++
	}
	for i, path := range to.Files.Stated {
		has[same{path, to.Files.Size[i], to.Files.Records[i]}]++
	}
	left, came := false, map[same]int{}
	for k, n := range had {
		left = left || has[k] < n
	}
	for k, n := range has {
		if n > had[k] {
			came[k] = n - had[k]
		}
	}
	require.Equal(t, left, got.Left, "from %d to %d", from.ID, to.ID)
	f := &got.Snapshot.Files
	listed := map[same]int{}
	for i, path := range f.Stated {
		listed[same{path, f.Size[i], f.Records[i]}]++
	}
	for k, n := range came {
		require.GreaterOrEqual(t, listed[k], n, "from %d to %d: %s", from.ID, to.ID, k.path)
		require.False(t, got.Old[k.path], "from %d to %d: %s", from.ID, to.ID, k.path)
	}
	for path := range got.Old {
		found := false
		for k := range had {
			found = found || k.path == path
		}
		require.True(t, found, "%s is not old", path)
	}
	require.Equal(t, to.Sources, got.Snapshot.Sources)
	require.Equal(t, to.ID, got.Snapshot.ID)
}
