package skomer_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
)

// TestEraseForgetsThePathsOfRefusedFiles: the path of a data file holds a value of its partition, and all that the overlay has of the file is
// that an index of it was not worth keeping. After an erasure nothing names the file, and answers and later syncs are as before.
func TestEraseForgetsThePathsOfRefusedFiles(t *testing.T) {
	ctx := context.Background()
	const value = "name=jo.doe"
	names := func(root string) (out []string) {
		for path, raw := range contents(t, root) {
			if strings.Contains(raw, value) {
				out = append(out, path)
			}
		}
		return out
	}
	for name, o := range map[string]skomer.EraseOptions{
		"that no snapshot has": {GoneOnly: true},
		"with the rows":        {Where: "v = 20"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSmall(t)
			file := func(dir, name string, v ...int64) string {
				path := filepath.Join(s.dir, "table", "data", dir, name)
				_, err := s.Append(ctx, plain(t, path, longs(v...)))
				require.NoError(t, err)
				return path
			}
			gone := file(value, "a.parquet", 10, 20, 30, 40)
			file("name=other", "b.parquet", 1, 2, 3, 4)
			file("name=other", "c.parquet", 5, 5, 5, 5)
			table := s.mount(t, "valueset(v) cap=2")
			require.NotEmpty(t, synced(t, table, skomer.SyncOptions{}).Declined)
			require.NotEmpty(t, names(s.overlays()))
			_, err := s.Remove(ctx, gone)
			require.NoError(t, err)
			if o.GoneOnly {
				var old []int64
				for _, x := range s.Snapshots[:len(s.Snapshots)-1] {
					old = append(old, x.ID)
				}
				require.NoError(t, s.Expire(ctx, old...))
			}
			synced(t, s.open(t), skomer.SyncOptions{})
			r, err := s.open(t).Erase(ctx, o)
			require.NoError(t, err)
			require.True(t, r.Complete)
			require.Empty(t, names(s.overlays()))
			require.True(t, hasKind(r, "refusals"), r.Objects)
			table = s.open(t)
			synced(t, table, skomer.SyncOptions{})
			require.Empty(t, names(s.overlays()))
			for where, want := range map[string]int{"v = 5": 4, "v = 3": 1, "v = 20": 0} {
				got, _ := count(t, table, skomer.Query{Where: where})
				require.Equal(t, want, got, where)
			}
			require.Zero(t, synced(t, s.open(t), skomer.SyncOptions{}).FilesIndexed, "what is not worth keeping is known again")
		})
	}
}

func hasKind(r *skomer.EraseReport, kind string) bool {
	for i := range r.Objects {
		if r.Objects[i].Kind == kind {
			return true
		}
	}
	return false
}
