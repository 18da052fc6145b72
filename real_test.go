package skomer_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/realdata"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// openVersion opens one metadata file of a real table, "" for what a user of its folder gets, with its stated locations mapped
// to where it lies.
func openVersion(t *testing.T, rel, metadata string) *skomer.Table {
	t.Helper()
	ctx := context.Background()
	root := realdata.Root(t)
	dir := filepath.Join(root, rel)
	name := dir
	if metadata != "" {
		name = filepath.Join(dir, "metadata", metadata)
	}
	c, err := skomer.New(skomer.Config{
		OverlayRoot: t.TempDir(), MaxStaleness: time.Nanosecond, MinPlannedFiles: -1, MinPlannedScanBytes: -1,
	})
	require.NoError(t, err)
	first, err := c.Open(ctx, name, skomer.TableOptions{})
	require.NoError(t, err)
	location := first.Location()
	first.Close()
	mapping := []skomer.Mapping{
		{From: location, To: dir},
		{From: filepath.Base(dir), To: dir},
		{From: "data/persistent", To: filepath.Join(root, "duckdb-iceberg")},
		{From: "/test-warehouse/iceberg_test", To: filepath.Join(root, "impala/iceberg")},
		{From: "hdfs://localhost:20500/test-warehouse/iceberg_test", To: filepath.Join(root, "impala/iceberg")},
	}
	if _, path, ok := strings.Cut(location, "://"); ok && strings.Contains(path, "/") {
		mapping = append(mapping, skomer.Mapping{From: path[strings.IndexByte(path, '/'):], To: dir})
	}
	table, err := c.Open(ctx, name, skomer.TableOptions{Map: mapping})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	return table
}

// text is a value as the tables' documentation writes it; null is -.
func text(v *skomer.Vector, i int) string {
	if v.Null(i) {
		return "-"
	}
	switch v.Type.Kind {
	case column.Struct:
		var parts []string
		for _, k := range v.Kids {
			parts = append(parts, text(k, i))
		}
		return "{" + strings.Join(parts, ";") + "}"
	case column.List, column.Map:
		var parts []string
		for e := int(v.Off[i]); e < int(v.Off[i+1]); e++ {
			var kids []string
			for _, k := range v.Kids {
				kids = append(kids, text(k, e))
			}
			parts = append(parts, strings.Join(kids, "="))
		}
		return "[" + strings.Join(parts, ";") + "]"
	}
	x, _ := v.Value(i)
	switch v.Type.Kind {
	case column.Bool:
		return strconv.FormatBool(x.Lo != 0)
	case column.Float, column.Double:
		return fmt.Sprint(x.Float64())
	case column.String:
		return x.S
	case column.Binary, column.Fixed, column.UUID, column.Variant:
		return hex.EncodeToString([]byte(x.S))
	case column.Date, column.Time, column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ, column.Decimal:
		literal := tabletest.Literal(v.Type, x)
		if _, quoted, ok := strings.Cut(literal, "'"); ok {
			literal = quoted
		}
		return strings.ReplaceAll(strings.TrimRight(literal, "'."), " ", "T")
	default:
		return fmt.Sprint(x.Int64())
	}
}

// realAnswers is the rows of real tables as the engines that wrote them, or a second one, state them; where is a filter.
var realAnswers = []struct {
	dir, version, at string
	columns          string
	where            string
	rows             string // of cells apart by spaces, rows apart by commas
}{
	// Columns that files lack: initial defaults, and their absence before they were added.
	{dir: v3 + "iceberg_v3_default_value", columns: "i j", rows: "1 -1, 2 2"},
	{dir: v3 + "iceberg_v3_default_value", columns: "i", where: "j = -1", rows: "1"},
	{dir: v3 + "iceberg_v3_default_value", columns: "i", where: "j IS NULL"},
	{dir: v3 + "iceberg_v3_default_value", at: "7752776210164022855", rows: "1"},
	{dir: v3 + "iceberg_v3_default_value_avro", columns: "i j", rows: "1 -1, 2 2"},
	{dir: v3 + "iceberg_v3_default_value_avro", columns: "i", where: "j = -1", rows: "1"},
	{dir: v3 + "iceberg_v3_default_value_avro", columns: "i", where: "j IS NULL"},
	{dir: v3 + "test_default_part", columns: "i j", rows: "1 -1, 2 -1, 3 5, 4 10, 5 -"},
	{dir: v3 + "test_default_part", columns: "i", where: "j = -1", rows: "1, 2"},
	{dir: v3 + "test_default_part", columns: "i", where: "j IS NULL", rows: "5"},
	{dir: v3 + "test_complex_default", columns: "i j.f2 ts_tz", rows: "1 - 2024-01-15T10:30:45.123456Z, 2 hello 2024-12-26T02:30:45.123456Z"},
	{dir: v3 + "test_complex_default", columns: "i", where: "j.f2 = 'hello'", rows: "2"},
	{dir: v3 + "test_complex_default", columns: "i", where: "ts_tz = '2024-01-15T10:30:45.123456Z'", rows: "1"},
	{
		dir: v3 + "iceberg_v3_all_types",
		columns: "id col_boolean col_int col_bigint col_float col_double col_decimal col_string col_date col_timestamp col_binary " +
			"col_timestamp_epoch col_timestamp_iso",
		rows: "1 false -1 -1 1.5 2.5 123.45 initial_default 2024-01-01 1969-12-31T23:59:59.123456 0102030405060708 " +
			"1970-01-01T00:00:00.000000 2024-01-15T10:30:45.123456, " +
			"2 true 42 9999999999 3.140000104904175 2.71828 999.99 explicit 2024-12-25 2024-12-25T10:30:45.123456 deadbeef " +
			"1970-01-01T00:00:00.000000 2024-01-15T10:30:45.123456",
	},
	{dir: v3 + "iceberg_v3_all_types", columns: "id", where: "col_decimal = 123.45 AND col_timestamp < TIMESTAMP '1970-01-01 00:00:00'", rows: "1"},
	{dir: duck + "add_columns_with_defaults/default.db/add_columns_with_defaults", columns: "col1 col_boolean col_integer col_decimal col_date col_time col_timestamptz col_uuid col_fixed", rows: "" +
		"click true 342342 12345.00 2003-10-20 00:00:00.012345 1970-01-01T00:00:00.012345Z f79c3e09677c4bbda4793f349cb785e7 010203ff03, " +
		"purchase true 342342 12345.00 2003-10-20 00:00:00.012345 1970-01-01T00:00:00.012345Z f79c3e09677c4bbda4793f349cb785e7 010203ff03, " +
		"test false 453243 3423434.23 0011-03-05 12:06:45.000000 2023-05-15T14:30:45.000000Z 020d4fc7acd645acb2167873f4038e1f 8000800080"},
	{dir: duck + "add_columns_with_defaults/default.db/add_columns_with_defaults", columns: "col1", where: "col_string = 'HELLO'", rows: "click, purchase"},
	{dir: duck + "add_columns_with_defaults_in_struct/default.db/add_columns_with_defaults_in_struct", columns: "a.col_integer a.col_string a.col_uuid", rows: "453243 World -, 342342 HELLO f79c3e09677c4bbda4793f349cb785e7"},
	{dir: duck + "add_columns_with_defaults_in_struct/default.db/add_columns_with_defaults_in_struct", columns: "a.col_integer", where: "a.col_string = 'HELLO'", rows: "342342"},

	// Variants are opaque; a null differs from a variant null.
	{dir: v3 + "trino_variant", columns: "id", where: "v IS NULL", rows: "0"},
	{dir: v3 + "trino_variant", columns: "id v", where: "id = 1", rows: "1 01000000"},
	{dir: v3 + "trino_nested_variant", columns: "id struct_v.b", rows: "1 5, 2 9"},

	// Row lineage: stored, and inherited from the file.
	{dir: v3 + "iceberg_v3_row_lineage", columns: "i _row_id _last_updated_sequence_number", rows: "1 0 1, 2 1 2, 3 2 3"},
	{dir: v3 + "iceberg_v3_row_lineage", columns: "_row_id", where: "i = 2", rows: "1"},
	{dir: v3 + "iceberg_v3_deletion_vectors", columns: "i _row_id", rows: "1 0, 3 2, 5 4"},

	// Names and where columns lie.
	{dir: "impala/iceberg/iceberg_with_puffin_stats", columns: "i d", rows: "1 1, 2 2"},
	{dir: "impala/iceberg/iceberg_column_case_sensitivity_issue", columns: "ID OWNERID", rows: "1 impala, 2 hive"},
	{dir: "impala/iceberg/iceberg_migrated_alter_test", columns: "int_col string_col double_col", rows: "0 A 0.5, 1 B 1.5, 2 C 2.5"},
	{dir: duck + "column_mapping/warehouse/default.db/my_table", columns: "id name age attributes scores profile", rows: "" +
		"1 Alice 25 [height=5.5;weight=130] [85;90] {alice@example.com;true}, 2 Bob 30 [height=6.0;weight=180] [78;82;88] {bob@example.com;false}, " +
		"3 Charlie 35 [height=5.8;weight=160] [92] {charlie@example.com;true}"},
	{dir: duck + "case_sensitive_names/default.db/case_sensitive_names", columns: "user_id uSeR_Id", rows: "1 user_1, 2 user_2, 3 user_3"},
	{dir: duck + "case_sensitive_names/default.db/case_sensitive_names", columns: "user_id", where: "uSeR_Id = 'user_2'", rows: "2"},
	{dir: "icebird/hyperparam-iceberg/spark/rename_column", columns: "id event_date price active", rows: "1 2022-01-01 9.99 true, 2 2022-01-01 -5.00 false, 3 - 0.00 true, 4 2022-01-02 99999999.99 false"},
	{dir: "icebird/hyperparam-iceberg/spark/rename_column", columns: "name", where: "id = 2", rows: "Mopsy–Naïve"},
	{dir: "icebird/hyperparam-iceberg/athena/example", columns: "id name", rows: "1 Alice, 2 Bob"},

	// Nulls.
	{dir: duck + "null_stats/default/test_nulls", columns: "id", where: "flag IS NULL", rows: "4, 5, 7, 8, 9"},
	{dir: duck + "null_stats/default/test_nulls", columns: "id", where: "flag IS NOT NULL", rows: "1, 2, 3, 6"},
	{dir: duck + "is_null_is_not_null", columns: "id", where: "value IS NULL", rows: "1, 2, 3, 7"},
	{dir: duck + "is_null_is_not_null", columns: "id", where: "value IS NOT NULL", rows: "4, 5, 6, 8"},
	{dir: duck + "is_null_is_not_null", columns: "id", where: "value = 'blah'", rows: "8"},
	{dir: duck + "map_stats/default.db/map_stats", columns: "input metadata", where: "timestamp >= '2026-01-02T00:00:00Z' AND metadata IS NOT NULL", rows: "hello [key=value1]"},

	// Format versions.
	{dir: duck + "iceberg_v1_repro/repro/merch_v1", columns: "id", rows: "2, 3, 4, 6"},
	{dir: duck + "iceberg_v1_repro/repro/merch_v1", version: "00003-8d01e4aa-d143-49c9-898e-b5e477577b70.metadata.json", columns: "id", rows: "2, 3, 4, 6"},
	{dir: duck + "iceberg_v1_repro/repro/merch_v1", version: "00004-v3-upgraded-v1-null-counts.metadata.json", columns: "id", rows: "2, 3, 4, 6"},
	{dir: duck + "iceberg_v1_deprecated/default/legacy_v1", columns: "id category amount", rows: "1 alpha 10, 2 beta 20, 3 alpha -"},
	{dir: duck + "iceberg_v1_deprecated/default/legacy_v1", columns: "id", where: "category = 'alpha' AND amount IS NULL", rows: "3"},
	{dir: duck + "uuid", columns: "uuid", where: "uuid = '1571effb-facd-42a3-90e9-0af522e9b6c2'", rows: "1571effbfacd42a390e90af522e9b6c2"},

	// Values of identity partitions that the files do not hold.
	{dir: impalaIce + "iceberg_alltypes_part", columns: "i p_bool p_int p_bigint p_double p_decimal p_date p_string", rows: "1 true 1 11 2.222 123.321 2022-02-22 impala, 2 true 1 11 2.222 123.321 2022-02-22 impala"},
	{dir: impalaIce + "iceberg_alltypes_part", columns: "i", where: "p_string = 'impala' AND i = 2 AND p_decimal > 1", rows: "2"},
	{dir: impalaIce + "iceberg_alltypes_part", columns: "i", where: "p_date IS NULL OR p_int <> 1"},
	{dir: impalaIce + "iceberg_legacy_partition_schema_evolution", columns: "i p_int_long p_dec_dec", rows: "1 1 3.141, 2 1 2.718"},
	{dir: impalaIce + "iceberg_timestamp_part", columns: "i ts", rows: "" +
		"-2 1969-01-01T01:00:00.000000, -1 1969-01-01T01:15:00.000000, 1 2021-10-31T02:15:00.000000, 2 2021-01-10T12:00:00.000000, " +
		"3 2022-04-11T00:04:00.000000, 4 2022-04-11T12:04:55.000000"},
	{dir: impalaIce + "iceberg_timestamptz_part", columns: "i", where: "ts < '2021-10-31T01:00:00Z'", rows: "-2, -1, 0, 2"},
	{dir: duck + "partition_bigint", columns: "partition_col user_id event_type", rows: "-9223372036854775808 67890 purchase, 9223372036854775807 12345 click"},
	{dir: duck + "partition_binary", columns: "partition_col user_id", rows: "010203 12345, aabbcc 67890"},
	{dir: duck + "partition_bool", columns: "partition_col user_id", rows: "true 12345, false 67890"},
	{dir: duck + "partition_bool", columns: "user_id", where: "partition_col = false", rows: "67890"},
	{dir: duck + "partition_decimal_integer", columns: "partition_col user_id", rows: "1.2300 67890, 1234.5432 111213, 42.5630 12345"},
	{dir: duck + "partition_decimal_smallint", columns: "partition_col user_id", rows: "1.23 12345, 4.56 67890"},
	{dir: duck + "partition_decimal_bigint", columns: "user_id", where: "partition_col = 0", rows: "987654"},
	{dir: duck + "partition_decimal_hugeint", columns: "user_id", where: "partition_col = -0.12345678901234567890123", rows: "888999"},
	{dir: duck + "partition_double", columns: "partition_col user_id", rows: "2.7182817459106445 67890, 3.1415927410125732 12345"},
	{dir: duck + "partition_float", columns: "partition_col user_id", rows: "1.2300000190734863 12345, 4.559999942779541 67890"},
	{dir: duck + "partition_integer", columns: "partition_col user_id", rows: "1337 67890, 42 12345"},
	{dir: duck + "partition_fixed_length_binary/default.db/partition_fixed_length_binary", columns: "partition_col user_id", rows: "66697865642076616c7565 67890, 68656c6c6f20776f726c64 12345"},
	{dir: duck + "partition_time/default.db/partition_time", columns: "partition_col user_id", rows: "08:21:09.000000 67890, 12:34:56.000000 12345"},
	{dir: duck + "partition_time/default.db/partition_time", columns: "user_id", where: "partition_col > TIME '10:00:00'", rows: "12345"},
	{dir: duck + "partition_timestamp/default.db/partition_timestamp", columns: "user_id", where: "partition_col = TIMESTAMP '2023-05-15 14:30:45'", rows: "12345"},
	{dir: duck + "partition_timestamptz/default.db/partition_timestamptz", columns: "user_id", where: "partition_col IS NULL"},
	{dir: duck + "expression_filter", columns: "id value", rows: "1 foo, 2 bar, 3 baz"},
	{dir: duck + "custom_write_paths", columns: "id name"},
	{dir: duck + "timestamptz_ns", columns: "id val"},
	{dir: duck + "big_query_error", columns: "id name created_at", rows: "1 Alice 2024-01-01T10:00:00.000000, 2 Bob 2024-02-01T11:30:00.000000"},
}

const (
	v3   = "impala/iceberg/iceberg_v3/"
	duck = "duckdb-iceberg/"
)

// realCounts is the real tables that are stated by their number of rows.
var realCounts = []struct {
	dir, version, at, where string
	rows                    int64
}{
	{dir: v3 + "trino_variant", rows: 55},
	{dir: v3 + "trino_nested_variant", rows: 2},
	{dir: "impala/iceberg/iceberg_partitioned", rows: 20},
	{dir: "impala/iceberg/iceberg_non_partitioned", rows: 20},
	{dir: "impala/iceberg/hadoop_catalog/hadoop_catalog_test/functional_parquet/hadoop_catalog_test", rows: 20},
	{dir: "impala/iceberg/hadoop_catalog/iceberg_resolution_test/functional_parquet/iceberg_resolution_test", rows: 20},
	{dir: impalaIce + "airports_parquet", rows: 3376},
	{dir: impalaIce + "iceberg_multiple_storage_locations", version: "v2.metadata.json", rows: 3},
	{dir: impalaIce + "iceberg_multiple_storage_locations", version: "v4.metadata.json", rows: 6},
	{dir: impalaIce + "iceberg_multiple_storage_locations", rows: 9},
	{dir: impalaIce + "iceberg_uppercase_col", rows: 0},
	{dir: impalaIce + "iceberg_timestamptz_part", rows: 7},
	{dir: duck + "null_stats/default/test_nulls", rows: 9},
	{dir: duck + "uuid", rows: 10},
	{dir: duck + "partition_decimal_bigint", rows: 10},
	{dir: duck + "partition_decimal_hugeint", rows: 15},
	{dir: duck + "hive_partitioned_table", rows: 6},
	{dir: duck + "iceberg/lineitem_iceberg", version: "v1.metadata.json", rows: 60175},
	{dir: duck + "iceberg/lineitem_iceberg", rows: 51793},
	{dir: duck + "iceberg/lineitem_iceberg_gz", rows: 111968},
	{dir: duck + "name_mapping/warehouse_1/mydb/t1", version: "v3.metadata.json", where: "b IS NULL", rows: 0},
	{dir: duck + "name_mapping/warehouse_1/mydb/t1", version: "v3.1.metadata.json", where: "b IS NULL", rows: 10000},
	{dir: duck + "name_mapping/warehouse_1/mydb/t1", version: "v3.2.metadata.json", where: "a IS NULL AND b IS NULL", rows: 10000},
	{dir: duck + "name_mapping/warehouse_1/mydb/t1", version: "v4.metadata.json", at: "6597550917742534971", where: "b IS NOT NULL", rows: 10000},
	{dir: duck + "name_mapping/warehouse_1/mydb/t1", version: "v4.1.metadata.json", at: "6597550917742534971", where: "b IS NULL", rows: 10000},
	{dir: duck + "name_mapping/warehouse_1/mydb/t1", version: "v7.metadata.json", at: "2651609110244230974", where: "b IS NULL", rows: 10000},
	{dir: "icebird/hyperparam-iceberg/java/bunnies", version: "v2.metadata.json", rows: 21},
	{dir: "icebird/hyperparam-iceberg/java/bunnies", version: "v3.metadata.json", rows: 21},
	{dir: "icebird/hyperparam-iceberg/java/bunnies", version: "v4.metadata.json", rows: 15},
	{dir: "icebird/hyperparam-iceberg/spark/bunnies", version: "v1.metadata.json", rows: 21},
	{dir: "icebird/hyperparam-iceberg/spark/bunnies", version: "v2.metadata.json", rows: 21},
	{dir: "icebird/hyperparam-iceberg/spark/bunnies", version: "v3.metadata.json", rows: 20},
	{dir: "icebird/hyperparam-iceberg/spark/bunnies", version: "v4.metadata.json", rows: 20},
}

// everyColumn mounts a table and builds every index that its columns allow, of the first five columns of each kind.
func everyColumn(t *testing.T, table *skomer.Table) {
	t.Helper()
	ctx := context.Background()
	require.NoError(t, table.Mount(ctx))
	d, err := table.Describe(ctx, "")
	require.NoError(t, err)
	for _, k := range kinds.All() {
		n := 0
		for _, col := range d.Columns {
			if _, err := table.AddIndex(ctx, fmt.Sprintf("%s(%q)", k.Name, col.Name)); err == nil {
				n++
			}
			if n == 5 {
				break
			}
		}
	}
	_, err = table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)
}

// cells is the rows of a query as sorted text.
func cells(t *testing.T, table *skomer.Table, q skomer.Query) []string {
	t.Helper()
	q.Limit = -1
	rows, err := table.Query(context.Background(), q)
	require.NoError(t, err)
	out := []string{}
	require.NoError(t, rows.Each(context.Background(), func(b *skomer.Batch) error {
		for i := range b.Rows {
			var row []string
			for _, v := range b.Cols {
				row = append(row, text(v, i))
			}
			out = append(out, strings.Join(row, " "))
		}
		return nil
	}))
	slices.Sort(out)
	n, err := rows.Count(context.Background())
	require.NoError(t, err)
	require.EqualValues(t, len(out), n, "counted")
	return out
}

// bothWays calls check without and with indexes, and for every way to ask.
func bothWays(t *testing.T, table *skomer.Table, check func(q skomer.Query)) {
	t.Helper()
	for _, indexed := range []bool{false, true} {
		if indexed {
			everyColumn(t, table)
		}
		for _, q := range ways {
			check(q)
		}
	}
}

func TestRealAnswers(t *testing.T) {
	for _, want := range realAnswers {
		t.Run(filepath.Base(want.dir)+"_"+want.version+want.at+"_"+want.where, func(t *testing.T) {
			rows := []string{}
			if want.rows != "" {
				rows = strings.Split(want.rows, ", ")
			}
			slices.Sort(rows)
			table := openVersion(t, want.dir, want.version)
			bothWays(t, table, func(q skomer.Query) {
				q.At, q.Where, q.Select = want.at, want.where, strings.Fields(want.columns)
				require.Equal(t, rows, cells(t, table, q), "%+v", q)
			})
		})
	}
}

func TestRealCounts(t *testing.T) {
	for _, want := range realCounts {
		t.Run(filepath.Base(want.dir)+"_"+want.version+want.at+"_"+want.where, func(t *testing.T) {
			table := openVersion(t, want.dir, want.version)
			bothWays(t, table, func(q skomer.Query) {
				q.At, q.Where, q.Limit = want.at, want.where, -1
				rows, err := table.Query(context.Background(), q)
				require.NoError(t, err)
				n, err := rows.Count(context.Background())
				require.NoError(t, err)
				require.EqualValues(t, want.rows, n, "%+v", q)
			})
		})
	}
}

// TestRealPruning: a point lookup opens only the file that can hold it; of a table of manifests alone none.
func TestRealPruning(t *testing.T) {
	none := openVersion(t, duck+"generated_bounds", "")
	require.Empty(t, cells(t, none, skomer.Query{Where: "block_number BETWEEN 5000000 AND 5000100"}))
	for dir, where := range map[string]string{
		duck + "uuid":             "uuid = '1571effb-facd-42a3-90e9-0af522e9b6c2'",
		duck + "partition_bigint": "partition_col = 9223372036854775807",
		duck + "partition_bool":   "partition_col = true",
	} {
		rows, err := openVersion(t, dir, "").Query(context.Background(), skomer.Query{Where: where, Limit: -1})
		require.NoError(t, err)
		require.NoError(t, rows.Each(context.Background(), func(*skomer.Batch) error { return nil }))
		require.EqualValues(t, 1, rows.Stats().Rows, dir)
		require.Equal(t, 1, rows.Stats().FilesOpened, dir)
	}
}

// TestRealRefusals: what cannot be read is refused by the name of the file, with the reason.
func TestRealRefusals(t *testing.T) {
	for dir, reason := range map[string]string{
		"impala/iceberg/iceberg_mixed_file_format_test":                                    "is an ORC file",
		impalaIce + "iceberg_with_key_metadata":                                            "is encrypted",
		"impala/iceberg/iceberg_migrated_complex_test":                                     "cannot be read as the table's list<int>", // its name mapping gives ids that its schema does not
		duck + "legacy_bare_deletion_vector/warehouse/default/legacy_bare_deletion_vector": "must lie in a Puffin file",
	} {
		table := openVersion(t, dir, "")
		bothWays(t, table, func(q skomer.Query) {
			q.Limit = -1
			rows, err := table.Query(context.Background(), q)
			require.NoError(t, err)
			err = rows.Each(context.Background(), func(*skomer.Batch) error { return nil })
			require.ErrorContains(t, err, reason)
			require.ErrorContains(t, err, dir[strings.LastIndexByte(dir, '/'):])
		})
	}
}
