package skomer_test

import (
	"context"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/realdata"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
	"github.com/skomerdb/skomer/internal/tabletest/judge"
)

// TestInteropDuckDBOnRandomTables: on generated tables DuckDB, its own pruning off, finds the rows that we find.
func TestInteropDuckDBOnRandomTables(t *testing.T) {
	duck := judge.Start(t)
	rng, _ := seeded(t)
	asked, nonEmpty := 0, 0
	for range rounds(t, 15) {
		dir := t.TempDir()
		made := tabletest.Create(t, rng, filepath.Join(dir, "table"))
		made.Append(t, 1+rng.IntN(5), 300)
		table := open(t, made.Dir, filepath.Join(dir, "overlays"))
		var files []string
		for _, f := range made.Files {
			if len(f.Rows) > 0 {
				files = append(files, f.Path)
			}
		}
		for range 40 {
			e := made.Expr(rng.IntN(3))
			sql, ok := tabletest.DuckDB(e)
			if !ok || len(files) == 0 {
				continue
			}
			said := duck.Where(t, files, sql)
			if said.Error != "" {
				t.Fatalf("%s\n%s", sql, said.Error)
			}
			got, _ := positions(t, table, skomer.Query{Where: e.SQL()})
			if describe(got) != describe(said.Positions) {
				t.Fatalf("%s\nDuckDB: %s\n%s", e.SQL(), sql, difference(made, got, said.Positions))
			}
			asked++
			if len(got) > 0 {
				nonEmpty++
			}
		}
	}
	t.Logf("%d predicates, %d with rows", asked, nonEmpty)
	if nonEmpty < 50 {
		t.Error("too few answers hold rows")
	}
}

// disputed is files of the inventory whose values DuckDB and we read differently, with the reason why ours stands.
var disputed = map[string]string{
	"duckdb/bigdecimal.parquet":                                           "decimals above 38 digits have no Iceberg type and are read as their bytes; DuckDB rounds them to doubles",
	"duckdb/negative-timetz.parquet":                                      "times before midnight are no times; DuckDB wraps them into the day",
	"impala/parquet/dateless_timestamps.parq":                             "INT96 without a Julian day lies 4713 years before the first one that DuckDB's 64-bit nanoseconds reach",
	"parquet-testing/bad_data/ARROW-GH-45185.parquet":                     "a column chunk that starts inside of a row is refused",
	"parquet-testing/data/datapage_v1-corrupt-checksum.parquet":           "DuckDB checks no page checksums",
	"parquet-testing/data/rle-dict-uncompressed-corrupt-checksum.parquet": "DuckDB checks no page checksums",
	"parquet-testing/data/int96_from_spark.parquet":                       "DuckDB's 64-bit nanoseconds overflow in the year 290000",
	"impala/parquet/out_of_range_time_of_day.parquet":                     "INT96 nanoseconds below zero round down; DuckDB rounds towards zero",
}

// TestInteropDuckDBOnTheInventory: every Parquet file that DuckDB reads, it reads as the scan does, value by value.
func TestInteropDuckDBOnTheInventory(t *testing.T) {
	duck := judge.Start(t)
	f, err := os.Open(realdata.Path(t, "parquet-inventory.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = '\t', true, -1
	lines, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	files, values, refused := 0, 0, 0
	for _, line := range lines[1:] {
		if len(line) < 5 || line[4] != "ok" {
			continue
		}
		n, why := sameValues(t, duck, realdata.Path(t, line[0]), line[0])
		switch {
		case why == "":
			files++
			values += n
		case disputed[line[0]] != "":
		default:
			refused++
			t.Errorf("%s: %s", line[0], why)
		}
	}
	t.Logf("%d files, %d values equal, %d not", files, values, refused)
	if files < 300 {
		t.Errorf("only %d files compared", files)
	}
}

// sameValues reads the judged columns of a Parquet file, wrapped as a table of one file, and compares with DuckDB. why is
// empty when all are equal.
func sameValues(t *testing.T, duck *judge.DuckDB, path, name string) (n int, why string) {
	t.Helper()
	ctx := context.Background()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pf, need, err := parquetio.ParseFooter(name, b, int64(len(b)), "tag")
	if err != nil || need > 0 {
		return 0, fmt.Sprintf("footer: %v", err)
	}
	schema := pf.Schema()
	flat := &column.Schema{}
	var columns []judge.Column
	var names []string
	for _, field := range schema.Fields {
		if judged(field.Type) && !twice(schema, field.Name) {
			columns = append(columns, judge.Column{Name: field.Name, Kind: field.Type.Kind.String()})
			names = append(names, field.Name)
			flat.Fields = append(flat.Fields, field)
		}
	}
	if len(columns) == 0 {
		return 0, ""
	}
	said := duck.Values(t, path, columns)
	if said.Error != "" {
		return 0, ""
	}
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(t.TempDir(), "table"), lakewrite.Spec{Schema: flat, FormatVersion: 3})
	if err != nil {
		return 0, err.Error()
	}
	if _, err := w.Append(ctx, lakewrite.File{Path: path, Format: facts.Parquet, Records: pf.Rows(), Size: int64(len(b))}); err != nil {
		return 0, err.Error()
	}
	rows, err := open(t, w.Location(), filepath.Join(t.TempDir(), "overlays")).Query(ctx, skomer.Query{Select: names, Limit: -1})
	if err != nil {
		return 0, err.Error()
	}
	at := 0
	err = rows.Each(ctx, func(batch *skomer.Batch) error {
		for i := range batch.Rows {
			for k, c := range batch.Cols {
				if at >= len(said.Rows) {
					return fmt.Errorf("DuckDB has only %d rows", len(said.Rows))
				}
				if got, want := rendered(c, i), said.Rows[at][k]; !alike(got, want) {
					return fmt.Errorf("row %d, column %s (%s): ours %s, DuckDB %s", at, names[k], c.Type, got, want)
				}
				n++
			}
			at++
		}
		return nil
	})
	switch {
	case err != nil:
		return n, err.Error()
	case at != len(said.Rows):
		return n, fmt.Sprintf("ours %d rows, DuckDB %d", at, len(said.Rows))
	}
	return n, ""
}

// alike forgives what only the judge's types say: unsigned 64-bit numbers, which are decimals here, and texts that it holds as
// blobs.
func alike(got, want string) bool {
	return got == want || got == want+"e0" || strings.HasPrefix(got, "s") && want == "b"+got[1:]
}

// twice tells names that differ by case only, which DuckDB cannot tell apart.
func twice(s *column.Schema, name string) bool {
	n := 0
	for _, f := range s.Fields {
		if strings.EqualFold(f.Name, name) {
			n++
		}
	}
	return n > 1
}

func judged(t column.Type) bool {
	switch t.Kind {
	case column.List:
		return judged(t.Fields[0].Type) && t.Fields[0].Type.Kind < column.Date
	case column.Struct, column.Map, column.Unknown, column.Variant, column.Geometry, column.Geography, column.TimestampNZ:
		return false // DuckDB has no zoned nanoseconds
	default:
		return true
	}
}

// rendered is a value as the judge renders it.
func rendered(v *column.Vector, i int) string {
	if v.Type.Kind == column.List {
		if v.Null(i) {
			return "null"
		}
		var parts []string
		for k := v.Off[i]; k < v.Off[i+1]; k++ {
			parts = append(parts, rendered(v.Kids[0], int(k)))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	x, ok := v.Value(i)
	if !ok {
		return "null"
	}
	switch x.Kind {
	case column.Bool:
		return strconv.FormatBool(x.Lo != 0)
	case column.Float, column.Double:
		return hexFloat(x.Float64())
	case column.Decimal:
		return tabletest.Unscaled(x).String() + "e" + strconv.Itoa(-int(x.Scale))
	case column.String:
		return "s" + hex.EncodeToString([]byte(x.S))
	case column.UUID, column.Fixed, column.Binary:
		return "b" + hex.EncodeToString([]byte(x.S))
	default:
		return strconv.FormatInt(x.Int64(), 10)
	}
}

// hexFloat is Python's float.hex.
func hexFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(f, 'f', -1, 64), "+"))
	case f == 0:
		if math.Signbit(f) {
			return "-0x0.0p+0"
		}
		return "0x0.0p+0"
	}
	bits := math.Float64bits(f)
	sign := ""
	if bits>>63 == 1 {
		sign = "-"
	}
	exponent, mantissa := int(bits>>52&0x7ff), bits&(1<<52-1)
	if exponent == 0 {
		return fmt.Sprintf("%s0x0.%013xp-1022", sign, mantissa)
	}
	return fmt.Sprintf("%s0x1.%013xp%+d", sign, mantissa, exponent-1023)
}
