package skomer_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/realdata"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

const impalaIce = "impala/iceberg/hadoop_catalog/ice/"

// deletedTables is the real tables with deletes and their rows as the engines that wrote them state them.
var deletedTables = []struct {
	dir, at string
	columns string // of the rows, the first an integer that filters are tried on
	rows    string
}{
	{impalaIce + "iceberg_v2_no_deletes", "", "i s", "1 x, 2 y, 3 z"},
	{impalaIce + "iceberg_v2_delete_positional", "6816997371555012807", "id data", "1 a, 2 b, 3 c"},
	{impalaIce + "iceberg_v2_delete_positional", "", "id data", "1 a, 3 c"},
	{impalaIce + "iceberg_v2_positional_delete_all_rows", "", "i s", ""},
	{impalaIce + "iceberg_v2_positional_update_all_rows", "", "i s", "1 A, 2 B, 3 C"},
	{impalaIce + "iceberg_v2_null_delete_record", "", "i j", "1 1, 2 2, 3 3, 3 3, 4 4, 4 4"},
	{impalaIce + "iceberg_spark_compaction_with_dangling_delete", "", "id", "1, 2, 3, 5"},
	{impalaIce + "iceberg_v2_delete_equality", "", "id data", "1 test_1_base, 2 test_2_updated"},
	{impalaIce + "iceberg_v2_delete_equality_nulls", "4346796256488077976", "i s", "- str2, 1 str1, 3 str3"},
	{impalaIce + "iceberg_v2_delete_equality_nulls", "", "i s", "- str5, 1 str1, 4 str4"},
	{impalaIce + "iceberg_v2_delete_equality_multi_eq_ids", "8127619959873391049", "i s", "1 str1, 2 str2, 3 str3_updated"},
	{impalaIce + "iceberg_v2_delete_equality_multi_eq_ids", "", "i s", "1 str1, 2222 str2, 33 str3_updated_twice, 4 str4_updated, 5 str5"},
	{impalaIce + "iceberg_v2_delete_equality_partitioned", "", "i d", "1 2023-12-24, 2 2023-12-24, 222 2023-12-25, 333333 2023-12-24, 4 2023-12-24, 1 2023-12-25"},
	{impalaIce + "iceberg_v2_delete_equality_partition_evolution", "", "i s", "111 str1, 2 str2"},
	{impalaIce + "iceberg_v2_delete_both_eq_and_pos", "", "i s d", "2 str2_updated 2023-12-13, 3 str3 2023-12-23"},
	{impalaIce + "iceberg_v2_delete_pos_and_multi_eq_ids", "", "i s d", "1 str1 2020-12-01, 333333 str3 2024-01-25, 4 str4 2024-01-26, 5 str5 2024-01-27"},
	{impalaIce + "iceberg_v2_equality_delete_schema_evolution", "3986738438831924669", "i", "1, 4, 5"},
	{impalaIce + "iceberg_v2_equality_delete_schema_evolution", "", "i d str j", "1 2024-03-20 str1 -, 44 2024-03-21 str4 4444, 5 2024-03-22 str5 -"},
	{"impala/iceberg/iceberg_v3/iceberg_v3_deletion_vectors", "", "i", "1, 3, 5"},
	{"duckdb-iceberg/equality_deletes/warehouse/mydb/mytable", "", "id name bir", "4 d 2025-01-04, 5 e 2025-01-05"},
	{"duckdb-iceberg/equality_deletes/warehouse/mydb/mytable_partitioned", "", "id", "1, 4, 5"},
	{"duckdb-iceberg/equality_delete_cross_partition/warehouse/ns/t", "", "key part val", "100 1 p1-k100, 888 1 p1-k888, 999 0 p0-k999"},
	{"duckdb-iceberg/equality_delete_extra_column/warehouse/ns/t", "", "id val", "1 a, 3 c"},
}

// deletedCounts is the tables that are stated by their number of rows.
var deletedCounts = []struct {
	dir, at, where string
	rows           int64
}{
	{impalaIce + "iceberg_v2_positional_delete_all_rows", "8593920101374128463", "", 3},
	{impalaIce + "iceberg_v2_positional_not_all_data_files_have_delete_files", "7490459762454857930", "", 10},
	{impalaIce + "iceberg_v2_positional_not_all_data_files_have_delete_files", "752781918366351945", "", 9},
	{impalaIce + "iceberg_v2_positional_not_all_data_files_have_delete_files", "", "", 6},
	{impalaIce + "iceberg_v2_positional_update_all_rows", "3877007445826010687", "", 3},
	{impalaIce + "iceberg_v2_partitioned_position_deletes", "2057976186205897384", "", 20},
	{impalaIce + "iceberg_v2_partitioned_position_deletes", "", "", 10},
	{impalaIce + "iceberg_lineitem_multiblock", "", "", 17886},
	{impalaIce + "iceberg_lineitem_multiblock", "", "l_linenumber % 5 = 0", 0},
	{impalaIce + "iceberg_lineitem_multiblock", "", "l_linenumber = 5", 0},
	{impalaIce + "iceberg_v2_delete_positional", "", "id = 2", 0},
	{impalaIce + "iceberg_v2_null_delete_record", "", "j < 3", 2},
	{"icebird/hyperparam-iceberg/java/bunnies", "", "", 15},
	{"icebird/hyperparam-iceberg/spark/bunnies", "", "", 20},
}

// openReal opens a real table whose stated locations are mapped to where it lies.
func openReal(t *testing.T, rel string) *skomer.Table {
	t.Helper()
	if strings.Contains(rel, "equality_delete_extra_column") { // its last version has a name outside every rule
		return openVersion(t, rel, "vfinal.metadata.json")
	}
	return openVersion(t, rel, "")
}

// index mounts a table with every index that its columns allow.
func index(t *testing.T, table *skomer.Table) {
	t.Helper()
	ctx := context.Background()
	require.NoError(t, table.Mount(ctx))
	d, err := table.Describe(ctx, "")
	require.NoError(t, err)
	n := 0
	for _, col := range d.Columns {
		for _, k := range kinds.All() {
			if _, err := table.AddIndex(ctx, fmt.Sprintf("%s(%q)", k.Name, col.Name)); err == nil {
				n++
			}
		}
	}
	require.Positive(t, n)
	_, err = table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)
}

// answer is the rows of a query as sorted text: columns apart by spaces, null as -.
func answer(t *testing.T, table *skomer.Table, q skomer.Query) []string {
	t.Helper()
	q.Limit = -1
	rows, err := table.Query(context.Background(), q)
	require.NoError(t, err)
	out := []string{}
	require.NoError(t, rows.Each(context.Background(), func(b *skomer.Batch) error {
		for i := range b.Rows {
			var cells []string
			for _, v := range b.Cols {
				cells = append(cells, shown(v, i))
			}
			out = append(out, strings.Join(cells, " "))
		}
		return nil
	}))
	slices.Sort(out)
	n, err := rows.Count(context.Background())
	require.NoError(t, err)
	require.EqualValues(t, len(out), n, "counted")
	return out
}

func shown(v *skomer.Vector, i int) string {
	x, ok := v.Value(i)
	switch {
	case !ok:
		return "-"
	case x.Kind == column.Date:
		return time.Unix(x.Int64()*86400, 0).UTC().Format(time.DateOnly)
	case x.Kind == column.String:
		return x.S
	default:
		return fmt.Sprint(x.Int64())
	}
}

// ways is how a query can be answered.
var ways = []skomer.Query{{}, {NoIndex: true}, {NoPrune: true}, {Strict: true}}

func TestRealDeletes(t *testing.T) {
	for _, want := range deletedTables {
		t.Run(filepath.Base(want.dir)+"_"+want.at, func(t *testing.T) {
			table := openReal(t, want.dir)
			columns := strings.Fields(want.columns)
			rows := []string{}
			if want.rows != "" {
				rows = strings.Split(want.rows, ", ")
			}
			slices.Sort(rows)
			for _, indexed := range []bool{false, true} {
				if indexed {
					index(t, table)
				}
				for _, q := range ways {
					q.At, q.Select = want.at, columns
					require.Equal(t, rows, answer(t, table, q), "%+v", q)
					for n := -1; n < 13; n++ {
						q.Where = fmt.Sprintf("%s = %d", columns[0], n)
						hits := slices.DeleteFunc(slices.Clone(rows), func(r string) bool { return strings.Fields(r)[0] != fmt.Sprint(n) })
						require.Equal(t, hits, answer(t, table, q), "%+v", q)
					}
				}
			}
		})
	}
}

func TestRealDeleteCounts(t *testing.T) {
	for _, want := range deletedCounts {
		t.Run(filepath.Base(want.dir)+"_"+want.at+"_"+want.where, func(t *testing.T) {
			table := openReal(t, want.dir)
			where := want.where
			if strings.Contains(where, "%") {
				where = "l_linenumber IN (0, 5, 10, 15)"
			}
			for _, indexed := range []bool{false, true} {
				if indexed {
					index(t, table)
				}
				for _, q := range ways {
					q.At, q.Where, q.Select = want.at, where, []string{"_pos"}
					require.Len(t, answer(t, table, q), int(want.rows), "%+v", q)
				}
			}
		})
	}
}

// TestNullPathsAreToldOf: rows without a file path in delete files are ignored, and the answer says so.
func TestNullPathsAreToldOf(t *testing.T) {
	table := openReal(t, impalaIce+"iceberg_v2_null_delete_record")
	for range 2 { // the second time from memory
		rows, err := table.Query(context.Background(), skomer.Query{Limit: -1})
		require.NoError(t, err)
		_, err = rows.Count(context.Background())
		require.NoError(t, err)
		require.NotEmpty(t, rows.Stats().Warnings)
		require.Contains(t, rows.Stats().Warnings[0], "without a file path are ignored")
	}
}

// TestBareVectorRefused: a deletion vector outside of a Puffin file is no vector that a specification knows.
func TestBareVectorRefused(t *testing.T) {
	table := openReal(t, "duckdb-iceberg/legacy_bare_deletion_vector/warehouse/default/legacy_bare_deletion_vector")
	rows, err := table.Query(context.Background(), skomer.Query{Limit: -1})
	require.NoError(t, err)
	_, err = rows.Count(context.Background())
	require.True(t, fault.Is(err, fault.Corrupt), "%v", err)
	require.Contains(t, err.Error(), "must lie in a Puffin file")
	require.Contains(t, err.Error(), ".puffin")
}

// TestExplainTellsOfDeletes: how many rows deletes hide stands in the explanation, and delete files in the costs.
func TestExplainTellsOfDeletes(t *testing.T) {
	table := openReal(t, impalaIce+"iceberg_lineitem_multiblock")
	e, err := table.Explain(context.Background(), skomer.Query{}, true)
	require.NoError(t, err)
	require.EqualValues(t, 2114, e.RowsDeleted)
	require.EqualValues(t, 2114, e.Files[0].Deleted)
	require.EqualValues(t, 17886, e.RowsMay)
	require.EqualValues(t, 17886, e.Stats.Rows)
	require.Equal(t, 1, e.Stats.DeleteFiles)
	_, err = os.Stat(e.Files[0].Path)
	require.NoError(t, err)
}

// numbers is a table of one Long column "id" in one data file of row groups of 100, ids from 4 on.
func numbers(t *testing.T, n int) *tabletest.Table {
	t.Helper()
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64(4 + i)
	}
	return tableOf(t, ids, 100)
}

func tableOf(t *testing.T, ids []int64, rowsPerGroup int64) *tabletest.Table {
	t.Helper()
	n := len(ids)
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "table")
	schema := &column.Schema{Fields: []column.Field{{ID: 1, Name: "id", Type: column.Of(column.Long), Required: true}}}
	w, err := lakewrite.Create(ctx, local.New(), dir, lakewrite.Spec{Schema: schema})
	require.NoError(t, err)
	var rows []tabletest.Row
	for i := range n {
		rows = append(rows, tabletest.Row{{Val: column.IntValue(column.Long, ids[i])}})
	}
	path := filepath.Join(dir, "data", "a.parquet")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	layout := tabletest.Layout{RowsPerGroup: rowsPerGroup, PageBytes: 256 + int(rowsPerGroup), PageVersion: 1, PageIndex: true, Codec: tabletest.Uncompressed}
	require.NoError(t, tabletest.WriteParquet(path, schema, rows, layout))
	info, err := os.Stat(path)
	require.NoError(t, err)
	_, err = w.Append(ctx, lakewrite.File{Path: path, Format: facts.Parquet, Records: int64(n), Size: info.Size()})
	require.NoError(t, err)
	return &tabletest.Table{Dir: dir, Schema: schema, Writer: w, Files: []tabletest.DataFile{{Path: path, Rows: rows}}}
}

// deletePositions commits a position delete file over the only data file.
func deletePositions(t *testing.T, table *tabletest.Table, positions ...int) {
	t.Helper()
	schema := &column.Schema{Fields: []column.Field{
		{ID: 2147483546, Name: "file_path", Type: column.Of(column.String), Required: true},
		{ID: 2147483545, Name: "pos", Type: column.Of(column.Long), Required: true},
	}}
	var rows []tabletest.Row
	for _, p := range positions {
		rows = append(rows, tabletest.Row{{Val: column.StringValue(table.Files[0].Path)}, {Val: column.IntValue(column.Long, int64(p))}})
	}
	path := filepath.Join(table.Dir, "data", fmt.Sprintf("delete-%d.parquet", table.Writer.LastSequence))
	require.NoError(t, tabletest.WriteParquet(path, schema, rows, tabletest.Layout{RowsPerGroup: 1000, PageBytes: 1 << 16, PageVersion: 1, Codec: tabletest.Uncompressed}))
	info, err := os.Stat(path)
	require.NoError(t, err)
	_, err = table.Writer.Append(context.Background(), lakewrite.File{
		Path: path, Format: facts.Parquet, Content: lakewrite.PositionDeletes, Records: int64(len(rows)), Size: info.Size(),
	})
	require.NoError(t, err)
}

// everyWay requires the positions of a filter's answer however it is asked, with and without indexes.
func everyWay(t *testing.T, made *tabletest.Table, where string, want ...string) {
	t.Helper()
	table := open(t, made.Dir, t.TempDir())
	for _, indexed := range []bool{false, true} {
		if indexed {
			index(t, table)
		}
		for _, q := range ways {
			q.Where, q.Select = where, []string{"_pos", "id"}
			require.Equal(t, want, answer(t, table, q), "%+v", q)
		}
	}
}

// TestO30PositionsAreOfTheFile: positions count the rows of the file, not those that pass the filter.
func TestO30PositionsAreOfTheFile(t *testing.T) {
	made := numbers(t, 3)
	deletePositions(t, made, 1)
	everyWay(t, made, "id IN (4, 6)", "0 4", "2 6")
	everyWay(t, made, "id = 5", []string{}...)
}

// TestO31PositionsOverRowGroups: row groups that are skipped still count.
func TestO31PositionsOverRowGroups(t *testing.T) {
	made := numbers(t, 200)
	deletePositions(t, made, 150)
	table := open(t, made.Dir, t.TempDir())
	for _, indexed := range []bool{false, true} {
		if indexed {
			index(t, table)
		}
		for _, q := range ways {
			q.Where, q.Select = "id >= 104", []string{"_pos"}
			got := answer(t, table, q)
			require.Len(t, got, 99)
			require.NotContains(t, got, "150")
			require.Contains(t, got, "149")
			require.Contains(t, got, "151")
		}
	}
}

// TestLimitCountsLiveRows: deleted rows do not use up a limit, and statistics that prove a whole row group prove nothing of them.
func TestLimitCountsLiveRows(t *testing.T) {
	made := numbers(t, 200)
	deletePositions(t, made, 0, 1, 2, 4)
	table := open(t, made.Dir, t.TempDir())
	rows, err := table.Query(context.Background(), skomer.Query{Where: "id > 0", Select: []string{"_pos"}, Limit: 3})
	require.NoError(t, err)
	var got []string
	require.NoError(t, rows.Each(context.Background(), func(b *skomer.Batch) error {
		for i := range b.Rows {
			got = append(got, shown(b.Cols[0], i))
		}
		return nil
	}))
	require.Equal(t, []string{"3", "5", "6"}, got)
	e, err := table.Explain(context.Background(), skomer.Query{Where: "id > 0"}, false)
	require.NoError(t, err)
	require.EqualValues(t, 4, e.RowsDeleted)
	require.EqualValues(t, 196, e.RowsMay)
}

// TestO48CompactionDoesNotRevive: an index of the file that a compaction rewrote says nothing about the rewritten one.
func TestO48CompactionDoesNotRevive(t *testing.T) {
	made := numbers(t, 3)
	deletePositions(t, made, 1)
	table := open(t, made.Dir, t.TempDir())
	index(t, table)
	require.Equal(t, []string{"0 4", "2 6"}, answer(t, table, skomer.Query{Where: "id > 0", Select: []string{"_pos", "id"}}))
	again := numbers(t, 4)
	info, err := os.Stat(again.Files[0].Path)
	require.NoError(t, err)
	_, err = made.Writer.Replace(context.Background(), []string{made.Files[0].Path}, lakewrite.File{
		Path: again.Files[0].Path, Format: facts.Parquet, Records: 4, Size: info.Size(),
	})
	require.NoError(t, err)
	require.Equal(t, []string{"0 4", "1 5", "2 6", "3 7"}, answer(t, table, skomer.Query{Where: "id > 0", Select: []string{"_pos", "id"}}))
}

// TestMasksOutliveTheProcess: what a sync learnt about deletes another process reads from the overlay instead of the delete files.
func TestMasksOutliveTheProcess(t *testing.T) {
	const dirEnv, overlayEnv = "SKOMER_TEST_MASKS_TABLE", "SKOMER_TEST_MASKS_OVERLAY"
	ask := func(dir, overlays string, q skomer.Query) int {
		table := open(t, dir, overlays)
		q.Where, q.Limit = "id > 0", -1
		rows, err := table.Query(context.Background(), q)
		require.NoError(t, err)
		n, err := rows.Count(context.Background())
		require.NoError(t, err)
		require.EqualValues(t, 196, n)
		return rows.Stats().DeleteFiles
	}
	if dir := os.Getenv(dirEnv); dir != "" {
		require.Zero(t, ask(dir, os.Getenv(overlayEnv), skomer.Query{}))
		require.Equal(t, 2, ask(dir, os.Getenv(overlayEnv), skomer.Query{Strict: true}))
		require.Equal(t, 2, ask(dir, os.Getenv(overlayEnv), skomer.Query{NoIndex: true}))
		return
	}
	made, overlays := numbers(t, 200), t.TempDir()
	deletePositions(t, made, 0, 1, 2)
	deletePositions(t, made, 2, 4)
	table := open(t, made.Dir, overlays)
	require.NoError(t, table.Mount(context.Background()))
	require.Equal(t, 2, ask(made.Dir, overlays, skomer.Query{}))
	report, err := table.Sync(context.Background(), skomer.SyncOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, report.Masks)
	report, err = table.Sync(context.Background(), skomer.SyncOptions{})
	require.NoError(t, err)
	require.Zero(t, report.Masks)
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.count=1")
	child.Env = append(os.Environ(), dirEnv+"="+made.Dir, overlayEnv+"="+overlays)
	out, err := child.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "PASS")
}

// deleteKeys commits an equality delete file over the ids.
func deleteKeys(t *testing.T, table *tabletest.Table, ids ...int64) {
	t.Helper()
	var rows []tabletest.Row
	for _, id := range ids {
		rows = append(rows, tabletest.Row{{Val: column.IntValue(column.Long, id)}})
	}
	path := filepath.Join(table.Dir, "data", fmt.Sprintf("keys-%d.parquet", table.Writer.LastSequence))
	layout := tabletest.Layout{RowsPerGroup: 1000, PageBytes: 1 << 16, PageVersion: 1, Codec: tabletest.Uncompressed}
	require.NoError(t, tabletest.WriteParquet(path, table.Schema, rows, layout))
	info, err := os.Stat(path)
	require.NoError(t, err)
	_, err = table.Writer.Append(context.Background(), lakewrite.File{
		Path: path, Format: facts.Parquet, Content: lakewrite.EqualityDeletes, EqualityID: []int{1}, Records: int64(len(rows)), Size: info.Size(),
	})
	require.NoError(t, err)
}

// TestIndexesHelpEqualityDeletes: where an index on the key says that no key is there, the key column is not read; a key that is
// there still deletes.
func TestIndexesHelpEqualityDeletes(t *testing.T) {
	rng, _ := seeded(t)
	ids := make([]int64, 100_000)
	for i := range ids {
		ids[i] = rng.Int64N(1<<40) * 2
	}
	for _, kind := range []string{"bloom", "ordered"} {
		made, overlays := tableOf(t, ids, 20_000), t.TempDir()
		table := open(t, made.Dir, overlays)
		require.NoError(t, table.Mount(context.Background()))
		_, err := table.AddIndex(context.Background(), kind+"(id)")
		require.NoError(t, err)
		_, err = table.Sync(context.Background(), skomer.SyncOptions{})
		require.NoError(t, err)
		count := func(q skomer.Query) (int64, int64) {
			fresh := open(t, made.Dir, overlays)
			q.Limit = -1
			rows, err := fresh.Query(context.Background(), q)
			require.NoError(t, err)
			n, err := rows.Count(context.Background())
			require.NoError(t, err)
			return n, rows.Stats().Bytes
		}
		deleteKeys(t, made, 1<<39+1, 1<<38+1) // odd: nowhere
		n, with := count(skomer.Query{})
		require.EqualValues(t, len(ids), n)
		_, without := count(skomer.Query{NoIndex: true})
		require.Less(t, with*2, without, kind)
		deleteKeys(t, made, ids[77_777], 1<<37+1)
		live := 0
		for _, id := range ids {
			if id != ids[77_777] {
				live++
			}
		}
		for _, q := range ways {
			n, _ := count(q)
			require.EqualValues(t, live, n, "%s %+v", kind, q)
		}
	}
}

// TestAuthorityOfDeletePaths: manifests say /test-warehouse/…, delete files hdfs://localhost:20500/test-warehouse/…; a mapping of
// what the manifests say is enough for both.
func TestAuthorityOfDeletePaths(t *testing.T) {
	ctx := context.Background()
	root := realdata.Root(t)
	c, err := skomer.New(skomer.Config{OverlayRoot: t.TempDir()})
	require.NoError(t, err)
	for name, want := range map[string]int64{
		"iceberg_v2_delete_positional": 2, "iceberg_v2_partitioned_position_deletes": 10, "iceberg_lineitem_multiblock": 17886,
	} {
		table, err := c.Open(ctx, filepath.Join(root, impalaIce, name), skomer.TableOptions{Map: []skomer.Mapping{
			{From: "/test-warehouse/iceberg_test", To: filepath.Join(root, "impala/iceberg")},
		}})
		require.NoError(t, err)
		t.Cleanup(table.Close)
		rows, err := table.Query(ctx, skomer.Query{Limit: -1})
		require.NoError(t, err)
		n, err := rows.Count(ctx)
		require.NoError(t, err)
		require.Equal(t, want, n, name)
	}
}
