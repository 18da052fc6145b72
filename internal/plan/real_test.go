package plan_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/realdata"
)

// realTables is every real table folder.
func realTables(t *testing.T) []string {
	var dirs []string
	for _, pattern := range []string{
		"duckdb-iceberg/*/metadata", "duckdb-iceberg/*/*/metadata", "duckdb-iceberg/*/*/*/metadata", "duckdb-iceberg/*/*/*/*/metadata",
		"icebird/hyperparam-iceberg/*/*/metadata",
		"impala/iceberg/*/metadata", "impala/iceberg/*/*/metadata", "impala/iceberg/*/*/*/metadata", "impala/iceberg/*/*/*/*/metadata",
	} {
		for _, hit := range realdata.Glob(t, pattern) {
			dirs = append(dirs, filepath.Dir(hit))
		}
	}
	return dirs
}

// openTable opens a real table folder with the paths of its writer's machine brought home.
func openTable(t *testing.T, dir string) (*lake.Table, error) {
	name := dir
	if final := filepath.Join(dir, "metadata", "vfinal.metadata.json"); exists(final) {
		name = final
	}
	first, err := lake.New(lake.Options{}).Open(context.Background(), name)
	if err != nil {
		return nil, err
	}
	location, root := first.Location(), realdata.Root(t)
	m := lake.Mapping{
		{From: location, To: dir},
		{From: filepath.Base(dir), To: dir},
		{From: "data/persistent", To: filepath.Join(root, "duckdb-iceberg")},
		{From: "/test-warehouse/iceberg_test", To: filepath.Join(root, "impala/iceberg")},
		{From: "hdfs://localhost:20500/test-warehouse/iceberg_test", To: filepath.Join(root, "impala/iceberg")},
	}
	if _, path, ok := strings.Cut(location, "://"); ok && strings.Contains(path, "/") {
		m = append(m, lake.Rule{From: path[strings.IndexByte(path, '/'):], To: dir})
	}
	return lake.New(lake.Options{Mapping: m}).Open(context.Background(), name)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func current(t *testing.T, rel string) *facts.Snapshot {
	t.Helper()
	table, err := openTable(t, realdata.Path(t, rel))
	require.NoError(t, err)
	s, err := table.Snapshot(context.Background(), lake.Current())
	require.NoError(t, err)
	return s
}

// datum is a value of a row.
type datum struct {
	v    column.Value
	null bool
}

// fileColumn reads a column that is not repeated with a Parquet library, by field ids. ok is false for what this reader leaves
// out: files that are not here, files without ids, INT96.
func fileColumn(s *facts.Snapshot, i int, p column.Path) (data []datum, ok bool) {
	if s.Files.Format[i] != facts.Parquet || s.Files.Encrypted[i] || !exists(s.Files.Path[i]) {
		return nil, false
	}
	f, err := os.Open(s.Files.Path[i])
	if err != nil {
		return nil, false
	}
	defer f.Close()
	file, err := parquet.OpenFile(f, s.Files.Size[i])
	if err != nil {
		return nil, false
	}
	col := file.Root()
	for _, field := range p {
		if col = childByID(col, field.ID); col == nil {
			break
		}
	}
	if col == nil {
		if !hasIDs(file.Root()) || len(p) > 1 {
			return nil, false
		}
		return absent(s, i, p[0], file.NumRows()), true
	}
	return readLeaf(file, col, p.Leaf().Type)
}

func childByID(col *parquet.Column, id int) *parquet.Column {
	for _, c := range col.Columns() {
		if c.ID() == id {
			return c
		}
	}
	return nil
}

func hasIDs(root *parquet.Column) bool {
	for _, c := range root.Columns() {
		if c.ID() > 0 {
			return true
		}
	}
	return false
}

// absent is the column in a file without it: the identity partition value, the initial default, or null (spec, "Column
// Projection").
func absent(s *facts.Snapshot, i int, field column.Field, rows int64) []datum {
	d := datum{null: true}
	if field.Initial != nil {
		d = datum{v: *field.Initial}
	}
	for _, pf := range s.Specs[int(s.Files.SpecID[i])].Fields {
		if pc := s.Files.Partition[pf.ID]; pf.SourceID == field.ID && pf.Transform == "identity" && pc.Known[i] {
			d = datum{pc.Value[i], pc.Null[i]}
		}
	}
	data := make([]datum, rows)
	for k := range data {
		data[k] = d
	}
	return data
}

func readLeaf(file *parquet.File, col *parquet.Column, t column.Type) (data []datum, ok bool) {
	if !col.Leaf() || col.Type().Kind() == parquet.Int96 {
		return nil, false
	}
	for _, rg := range file.RowGroups() {
		pages := rg.ColumnChunks()[col.Index()].Pages()
		defer pages.Close()
		for {
			page, err := pages.ReadPage()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, false
			}
			values := make([]parquet.Value, page.NumValues())
			n, err := page.Values().ReadValues(values)
			if err != nil && !errors.Is(err, io.EOF) {
				return nil, false
			}
			for _, v := range values[:n] {
				if v.IsNull() {
					data = append(data, datum{null: true})
				} else {
					data = append(data, datum{v: convert(v, t, col.Type())})
				}
			}
		}
	}
	return data, true
}

func convert(v parquet.Value, t column.Type, from parquet.Type) column.Value {
	number := func() int64 {
		if v.Kind() == parquet.Int32 {
			return int64(v.Int32())
		}
		return v.Int64()
	}
	switch t.Kind {
	case column.Bool:
		return column.BoolValue(v.Boolean())
	case column.Float:
		return column.FloatValue(v.Float())
	case column.Double:
		if v.Kind() == parquet.Float {
			return column.DoubleValue(float64(v.Float()))
		}
		return column.DoubleValue(v.Double())
	case column.Decimal:
		x := big.NewInt(0)
		if v.Kind() == parquet.Int32 || v.Kind() == parquet.Int64 {
			x.SetInt64(number())
		} else if b := v.ByteArray(); len(b) > 0 {
			x.SetBytes(b)
			if b[0] >= 0x80 {
				x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
			}
		}
		lo := new(big.Int).And(x, new(big.Int).SetUint64(1<<64-1)).Uint64()
		return column.DecimalValue(new(big.Int).Rsh(x, 64).Int64(), lo, t.Scale)
	case column.String, column.Binary, column.Fixed, column.UUID:
		return column.BytesValue(t.Kind, v.ByteArray())
	case column.Time, column.Timestamp, column.TimestampTZ:
		return column.IntValue(t.Kind, number()*microsPer(from))
	default:
		return column.IntValue(t.Kind, number())
	}
}

func microsPer(t parquet.Type) int64 {
	if text := t.String(); strings.Contains(text, "MILLIS") {
		return 1000
	}
	return 1
}

// No snapshot of any real table may lose a matching row, for any operator and any value near those of its files.
func TestRealTablesNeverLoseAMatch(t *testing.T) {
	files, ruledOut, without := 0, 0, 0
	for _, dir := range realTables(t) {
		table, err := openTable(t, dir)
		if err != nil {
			continue // refused by name; the lake's own tests say which and why
		}
		for _, info := range table.Snapshots() {
			s, err := table.Snapshot(context.Background(), lake.Selector{ID: info.ID})
			if err != nil {
				continue
			}
			s.Schema.Walk(func(p column.Path) bool {
				if p.Repeated() || p.Leaf().Type.Kind.Nested() || p.Leaf().Type.Kind > column.Binary {
					return true
				}
				p = append(column.Path(nil), p...)
				c := checkColumn(t, dir, s, p)
				files, ruledOut, without = files+c.files, ruledOut+c.ruledOut, without+c.without
				return true
			})
		}
	}
	t.Logf("%d columns of files; of %d questions without a match %d were ruled out", files, without, ruledOut)
	require.Greater(t, files, 700)
	require.Greater(t, ruledOut, without*30/100)
}

type checked struct{ files, ruledOut, without int }

func checkColumn(t *testing.T, dir string, s *facts.Snapshot, p column.Path) (sum checked) {
	rows := make([][]datum, s.Files.Len())
	known := make([]bool, s.Files.Len())
	seen := map[column.Value]bool{}
	var literals []column.Value
	for i := range rows {
		if rows[i], known[i] = fileColumn(s, i, p); !known[i] {
			continue
		}
		sum.files++
		require.Len(t, rows[i], int(s.Files.Records[i]), "%s %s", s.Files.Path[i], p.Name())
		rows[i] = distinct(rows[i])
		for _, d := range rows[i] {
			if !d.null && !seen[d.v] && len(literals) < 20_000/len(rows[i]) && len(literals) < 20 {
				seen[d.v] = true
				literals = append(literals, d.v, near(d.v))
			}
		}
	}
	for _, l := range leavesOf(p, literals) {
		answers := plan.Prune(s, &predicate.Tree{Kind: predicate.Test, Leaf: l}).Answers
		for i, a := range answers {
			if !known[i] {
				continue
			}
			matches := 0
			for _, d := range rows[i] {
				if l.Matches(d.v, d.null) {
					matches++
				}
			}
			if a == plan.Out && matches > 0 || a == plan.Whole && matches < len(rows[i]) {
				t.Errorf("%s: snapshot %d, file %s is %q, but %d of %d distinct values match op %d negated %v dialect %d values %v of %s",
					dir, s.ID, s.Files.Path[i], a, matches, len(rows[i]), l.Op, l.Negated, l.Dialect, l.Values, p.Name())
			}
			if matches == 0 {
				sum.without++
				if a == plan.Out {
					sum.ruledOut++
				}
			}
		}
	}
	return sum
}

func distinct(data []datum) []datum {
	seen := map[datum]bool{}
	return slices.DeleteFunc(data, func(d datum) bool {
		was := seen[d]
		seen[d] = true
		return was
	})
}

// near is another value of the kind, close by.
func near(v column.Value) column.Value {
	switch v.Kind {
	case column.Float:
		return column.FloatValue(float32(v.Float64() + 0.5))
	case column.Double:
		return column.DoubleValue(v.Float64() + 0.5)
	case column.Bool:
		return column.BoolValue(v.Lo == 0)
	case column.String, column.Binary:
		v.S += "a"
	case column.UUID, column.Fixed:
		b := []byte(v.S)
		b[len(b)-1]++
		v.S = string(b)
	default:
		v.Lo++
	}
	return v
}

func leavesOf(p column.Path, literals []column.Value) (out []*predicate.Leaf) {
	add := func(l predicate.Leaf) {
		for _, dialect := range []predicate.Dialect{predicate.SQL, predicate.Iceberg} {
			for _, negated := range []bool{false, true} {
				l.Column, l.Dialect, l.Negated = predicate.Column{Path: p}, dialect, negated
				out = append(out, predicate.Of(l).Leaf)
			}
		}
	}
	add(predicate.Leaf{Op: predicate.IsNull})
	if p.Leaf().Type.Kind.Floating() {
		add(predicate.Leaf{Op: predicate.IsNaN})
	}
	for i, v := range literals {
		for _, op := range []predicate.Op{predicate.Equal, predicate.Less, predicate.LessEqual, predicate.Greater, predicate.GreaterEqual} {
			add(predicate.Leaf{Op: op, Values: []column.Value{v}})
		}
		add(predicate.Leaf{Op: predicate.In, Values: literals[i/2 : i+1]})
		if v.Kind == column.String {
			add(predicate.Leaf{Op: predicate.StartsWith, Values: []column.Value{column.StringValue(strings.ToValidUTF8(v.S[:len(v.S)/2], ""))}})
		}
	}
	return out
}

// Each value of a partition source is found in its own files only: identity partitions of every type.
func TestRealIdentityPartitionsAreExact(t *testing.T) {
	for _, rel := range []string{
		"partition_bigint", "partition_binary", "partition_bool", "partition_decimal_bigint", "partition_decimal_hugeint", "partition_decimal_integer",
		"partition_decimal_smallint", "partition_double", "partition_float", "partition_integer", "partition_fixed_length_binary/default.db/partition_fixed_length_binary",
		"partition_time/default.db/partition_time", "partition_timestamp/default.db/partition_timestamp", "partition_timestamptz/default.db/partition_timestamptz",
	} {
		t.Run(filepath.Base(rel), func(t *testing.T) {
			s := current(t, "duckdb-iceberg/"+rel)
			tried := 0
			for _, spec := range s.Specs {
				for _, pf := range spec.Fields {
					require.Equal(t, "identity", pf.Transform)
					p := s.Schema.ByID(pf.SourceID)
					for i := range s.Files.Len() {
						v := s.Files.Partition[pf.ID].Value[i]
						answers := plan.Prune(s, equal(p, v)).Answers
						for k, a := range answers {
							want := plan.Out
							if column.Compare(s.Files.Partition[pf.ID].Value[k], v) == 0 {
								want = plan.Whole
							}
							require.Equal(t, want, a, "%s = %v in %s", p.Name(), v, s.Files.Path[k])
							tried++
						}
					}
				}
			}
			require.Greater(t, tried, 3)
		})
	}
}

func equal(p column.Path, v column.Value) *predicate.Tree {
	return predicate.Of(predicate.Leaf{Column: predicate.Column{Path: p}, Op: predicate.Equal, Values: []column.Value{v}})
}

func kept(p *plan.Pruning) (n int) {
	for _, a := range p.Answers {
		if a != plan.Out {
			n++
		}
	}
	return n
}

func named(t *testing.T, s *facts.Snapshot, name string) column.Path {
	t.Helper()
	p, _ := s.Schema.ByName(name)
	require.NotNil(t, p, name)
	return p
}

func TestRealGeneratedBounds(t *testing.T) {
	s := current(t, "duckdb-iceberg/generated_bounds")
	p := named(t, s, "block_number")
	between := func(lo, hi int64) *predicate.Tree {
		c := predicate.Column{Path: p}
		kind := p.Leaf().Type.Kind
		return predicate.All(
			predicate.Of(predicate.Leaf{Column: c, Op: predicate.GreaterEqual, Values: []column.Value{column.IntValue(kind, lo)}}),
			predicate.Of(predicate.Leaf{Column: c, Op: predicate.LessEqual, Values: []column.Value{column.IntValue(kind, hi)}}))
	}
	require.Equal(t, 5000, s.Files.Len())
	require.Equal(t, 0, kept(plan.Prune(s, between(5000000, 5000100))))
	require.Equal(t, 1, kept(plan.Prune(s, between(1001, 1010))), "a file holds 100 numbers")
	require.Equal(t, 2, kept(plan.Prune(s, between(1000, 1010))))
	require.Equal(t, 5000, kept(plan.Prune(s, between(0, 5000000))))
}

func TestRealNullTables(t *testing.T) {
	isNull := func(p column.Path, negated bool) *predicate.Tree {
		return predicate.Of(predicate.Leaf{Column: predicate.Column{Path: p}, Op: predicate.IsNull, Negated: negated})
	}
	s := current(t, "duckdb-iceberg/null_stats/default/test_nulls")
	p := named(t, s, "flag")
	require.Equal(t, 3, s.Files.Len())
	require.Equal(t, 3, kept(plan.Prune(s, isNull(p, false))), "no counts are stated")
	require.Equal(t, 3, kept(plan.Prune(s, isNull(p, true))), "absent bounds do not mean all null")
	s = current(t, "duckdb-iceberg/is_null_is_not_null")
	for _, f := range s.Schema.Fields {
		require.Equal(t, 3, s.Files.Len(), f.Name)
	}
	value := column.Path{s.Schema.Fields[len(s.Schema.Fields)-1]}
	require.Equal(t, 2, kept(plan.Prune(s, isNull(value, false))))
	require.Equal(t, 2, kept(plan.Prune(s, isNull(value, true))))
	require.Equal(t, 2, kept(plan.Prune(s, equal(value, column.StringValue("blah")))), "blah; bar to foo; all null")
}

func TestRealUUIDs(t *testing.T) {
	s := current(t, "duckdb-iceberg/uuid")
	p := column.Path{s.Schema.Fields[0]}
	b := []byte{}
	_, err := fmt.Sscanf("1571effbfacd42a390e90af522e9b6c2", "%x", &b)
	require.NoError(t, err)
	require.Equal(t, 2, s.Files.Len())
	pr := plan.Prune(s, equal(p, column.BytesValue(column.UUID, b)))
	require.LessOrEqual(t, kept(pr), 1, "%s; %s", pr.Reason(0), pr.Reason(1))
}
