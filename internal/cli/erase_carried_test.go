package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// TestEraseFindsWhatWasCarriedByRowIDs: a compaction of a v3 table leaves a deleted row out. What a sync carries of the indexes names the new
// file alone, and its bounds are of the row that is gone.
func TestEraseFindsWhatWasCarriedByRowIDs(t *testing.T) {
	for _, consolidated := range []bool{false, true} {
		p := plant(t)
		p.dir += "3"
		var err error
		p.writer, err = lakewrite.Create(t.Context(), local.New(), p.dir, lakewrite.Spec{Schema: p.schema, FormatVersion: 3})
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(p.dir, "data"), 0o755))
		// written writes rows from a number on, with their ids where a compaction keeps them; the planted one is the greatest of its file.
		written := func(first, rows int, planted, kept bool) lakewrite.File {
			var cells []tabletest.Row
			var versions []tabletest.RowVersion
			for k := range rows {
				row := p.row(int64(first+k), fmt.Sprintf("before-%d", first+k))
				if planted && k == rows-1 {
					row = p.row(hiddenID, hiddenName)
				}
				id, changed := int64(first+k), int64(1)
				cells, versions = append(cells, row), append(versions, tabletest.RowVersion{ID: &id, Changed: &changed})
			}
			schema := p.schema
			if kept {
				schema, cells = tabletest.WithRowLineage(schema, cells, versions)
			}
			p.files = append(p.files, filepath.Join(p.dir, "data", fmt.Sprint(len(p.files), ".parquet")))
			return p.write(p.files[len(p.files)-1], schema, cells)
		}
		_, err = p.writer.Append(t.Context(), written(0, 300, true, false))
		require.NoError(t, err)
		old := p.files[len(p.files)-1]
		s := p.shell()
		where := filepath.Join(filepath.Dir(p.dir), "over")
		s.run("mount", "TABLE", "--overlay", "over")
		s.run(append([]string{"index", "add", "TABLE", "--overlay", "over"}, everyKind...)...)
		s.run("sync", "TABLE", "--overlay", "over")

		_, err = p.writer.Commit(t.Context(), lakewrite.Change{Remove: []string{old}, Add: []lakewrite.File{written(0, 299, false, true)}, Operation: "replace"})
		require.NoError(t, err)
		require.Contains(t, s.run("sync", "TABLE", "--overlay", "over"), "carried")
		require.NoError(t, p.writer.Expire(t.Context(), p.writer.Snapshots[0].ID))
		for n := 0; consolidated && n < 15; n++ { // with artifacts that have hashes
			_, err = p.writer.Append(t.Context(), written(1000*(n+1), 10, false, false))
			require.NoError(t, err)
			s.run("sync", "TABLE", "--overlay", "over")
		}
		s.run("vacuum", "TABLE", "--overlay", "over", "--grace", "0s", "--retain", "1")
		s.run("vacuum", "TABLE", "--overlay", "over", "--grace", "0s", "--retain", "1")
		require.NotEmpty(t, p.found(where), "bounds of the row that is gone")
		bundles, err := filepath.Glob(filepath.Join(where, "data", "????????-????-????-????-????????????.puffin"))
		require.NoError(t, err)
		require.Less(t, len(bundles), 4, "consolidated")
		before := asked(s, 0)

		r := eraseReport(t, s.run("erase", "TABLE", "--where", "name = '"+hiddenName+"'", "--overlay", "over", "-o", "json"))
		require.True(t, r.Complete)
		require.Empty(t, p.found(where))
		require.Equal(t, before, asked(s, 0))
		s.run("sync", "TABLE", "--overlay", "over")
		require.Empty(t, p.found(where))
		require.Equal(t, before, asked(s, 0))
		require.Equal(t, exitOK, s.try("status", "TABLE", "--overlay", "over", "--fail-on", "coverage<100,rejected>0").code, "built anew, since no row of its file was erased")
		again := eraseReport(t, s.run("erase", "TABLE", "--where", "name = '"+hiddenName+"'", "--overlay", "over", "-o", "json"))
		require.Zero(t, again.Retired, "what was built has hashes")
	}
}
