package predicate_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/predicate/icebergjson"
	"github.com/skomerdb/skomer/internal/predicate/sqltext"
)

// oneColumn is a schema with a column x (id 1), and its vector; a nil value is null.
func oneColumn(t column.Type, values ...any) (*column.Schema, *column.Vector) {
	b := column.NewBuilder(t)
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			b.AppendNull()
		case bool:
			b.Append(column.BoolValue(v))
		case int:
			b.Append(column.IntValue(t.Kind, int64(v)))
		case float64:
			if t.Kind == column.Float {
				b.Append(column.FloatValue(float32(v)))
			} else {
				b.Append(column.DoubleValue(v))
			}
		case string:
			b.Append(column.BytesValue(t.Kind, []byte(v)))
		}
	}
	return &column.Schema{Fields: []column.Field{{ID: 1, Name: "x", Type: t}}}, b.Finish()
}

// requireRows evaluates a tree over one vector and wants these row numbers.
func requireRows(t *testing.T, tree *predicate.Tree, v *column.Vector, want ...int) {
	t.Helper()
	b := &column.Batch{Rows: v.Len, Cols: []*column.Vector{v}}
	bits := predicate.Compile(tree).Rows(b)
	got := []int{}
	for i := range v.Len {
		if bits[i/64]>>(i%64)&1 == 1 {
			got = append(got, i)
		}
	}
	require.Equal(t, append([]int{}, want...), got, "%s", tree)
}

func sql(t *testing.T, s *column.Schema, text string) *predicate.Tree {
	t.Helper()
	tree, err := sqltext.Parse(text, s)
	require.NoError(t, err, text)
	return tree
}

func iceberg(t *testing.T, s *column.Schema, text string) *predicate.Tree {
	t.Helper()
	tree, err := icebergjson.Parse([]byte(text), s, true)
	require.NoError(t, err, text)
	return tree
}

// TestO01NaNRowsPassNegations is also user issue 64: x != 3 keeps the NaN row, and so does NOT (x < 10).
func TestO01NaNRowsPassNegations(t *testing.T) {
	for _, kind := range []column.Kind{column.Double, column.Float} {
		s, v := oneColumn(column.Of(kind), 3.0, math.NaN(), 3.0, nil)
		requireRows(t, sql(t, s, "x != 3"), v, 1)
		requireRows(t, sql(t, s, "NOT (x < 10)"), v, 1)
		requireRows(t, sql(t, s, "x NOT IN (3, 4)"), v, 1)
		requireRows(t, sql(t, s, "x >= 10"), v)
		requireRows(t, sql(t, s, "x IS NAN"), v, 1)
		requireRows(t, sql(t, s, "x IS NOT NAN"), v, 0, 2)
		requireRows(t, sql(t, s, "x = 'NaN'"), v)
		requireRows(t, sql(t, s, "x <> 'NaN'"), v, 0, 1, 2)
		requireRows(t, iceberg(t, s, `{"type":"lt","term":"x","value":1}`), v, 1)
		requireRows(t, iceberg(t, s, `{"type":"not","child":{"type":"lt","term":"x","value":10}}`), v, 1, 3)
		requireRows(t, iceberg(t, s, `{"type":"not-nan","term":"x"}`), v, 0, 2, 3)
	}
}

func TestO03ZerosAreEqual(t *testing.T) {
	negative := math.Copysign(0, -1)
	for _, kind := range []column.Kind{column.Double, column.Float} {
		s, v := oneColumn(column.Of(kind), negative, 0.0, 1.0, -1.0)
		for _, zero := range []string{"0.0", "-0.0", "0", "-0e3"} {
			requireRows(t, sql(t, s, "x = "+zero), v, 0, 1)
			requireRows(t, sql(t, s, "x IN (7, "+zero+", 8)"), v, 0, 1)
			requireRows(t, sql(t, s, "x IN (2, 3, 4, 5, 6, 7, 8, "+zero+")"), v, 0, 1)
			requireRows(t, sql(t, s, "x < "+zero), v, 3)
			requireRows(t, sql(t, s, "x >= "+zero), v, 0, 1, 2)
		}
		require.Equal(t, "x = 0", sql(t, s, "x IN (-0.0, 0.0, 0)").String())
	}
}

func TestO10StartsWithAndNull(t *testing.T) {
	s, v := oneColumn(column.Of(column.String), "abc", "abd", nil)
	requireRows(t, iceberg(t, s, `{"type":"not-starts-with","term":"x","value":"ab"}`), v, 2)
	requireRows(t, iceberg(t, s, `{"type":"not","child":{"type":"starts-with","term":"x","value":"ab"}}`), v, 2)
	requireRows(t, sql(t, s, "x NOT LIKE 'ab%'"), v)
	requireRows(t, sql(t, s, "NOT x LIKE 'ab%'"), v)
	requireRows(t, sql(t, s, "x LIKE 'ab%'"), v, 0, 1)
}

func TestO11LiteralsInTheUnitOfTheColumn(t *testing.T) {
	for kind, perMicro := range map[column.Kind]int{column.Timestamp: 1, column.TimestampTZ: 1, column.TimestampNS: 1000, column.TimestampNZ: 1000} {
		s, v := oneColumn(column.Of(kind), 1577836800000000*perMicro)
		requireRows(t, sql(t, s, "x > '1990-01-01'"), v, 0)
		requireRows(t, sql(t, s, "x < '1990-01-01'"), v)
		requireRows(t, sql(t, s, "x = TIMESTAMP '2020-01-01 00:00:00'"), v, 0)
		requireRows(t, iceberg(t, s, `{"type":"gt","term":"x","value":631152000000000}`), v, 0)
		requireRows(t, iceberg(t, s, `{"type":"lt","term":"x","value":631152000000000}`), v)
		requireRows(t, iceberg(t, s, `{"type":"eq","term":"x","value":1577836800000000}`), v, 0)
	}
}

// TestO14LiteralsOfPromotedColumns: a literal has the width of the column as it is now.
func TestO14LiteralsOfPromotedColumns(t *testing.T) {
	for _, kind := range []column.Kind{column.Int, column.Long} {
		s, v := oneColumn(column.Of(kind), 5, 7, 9)
		tree := sql(t, s, "x = 7")
		require.Equal(t, []column.Value{column.IntValue(kind, 7)}, tree.Leaf.Values)
		requireRows(t, tree, v, 1)
		requireRows(t, sql(t, s, "x > 100"), v)
		requireRows(t, sql(t, s, "x < 3000000000"), v, 0, 1, 2)
	}
	for _, kind := range []column.Kind{column.Float, column.Double} {
		s, v := oneColumn(column.Of(kind), 0.5, 0.75)
		tree := sql(t, s, "x = 0.5")
		require.Equal(t, kind, tree.Leaf.Values[0].Kind)
		requireRows(t, tree, v, 0)
	}
}

func TestO15UnknownBranchesDecideNothing(t *testing.T) {
	s := &column.Schema{Fields: []column.Field{
		{ID: 1, Name: "id", Type: column.Of(column.Int)},
		{ID: 2, Name: "attrs", Type: column.Type{Kind: column.Map, Fields: []column.Field{
			{ID: 3, Name: "key", Type: column.Of(column.String)}, {ID: 4, Name: "value", Type: column.Of(column.String)},
		}}},
	}}
	_, ids := oneColumn(column.Of(column.Int), 1, 2)
	_, keys := oneColumn(column.Of(column.String), "color", "color")
	_, values := oneColumn(column.Of(column.String), "red", "blue")
	attrs := &column.Vector{Type: s.Fields[1].Type, Len: 2, Off: []uint32{0, 1, 2}, Kids: []*column.Vector{keys, values}}
	rows := func(text string) uint64 {
		e := predicate.Compile(sql(t, s, text))
		b := &column.Batch{Rows: 2}
		for _, p := range e.Reads() {
			b.Cols = append(b.Cols, map[int]*column.Vector{1: ids, 2: attrs}[p.Leaf().ID])
		}
		return e.Rows(b)[0]
	}
	require.EqualValues(t, 0b01, rows("id = 1 AND contains(attrs.value, 'red')"))
	require.EqualValues(t, 0b10, rows("id = 9 OR contains(attrs.value, 'blue')"))
	require.EqualValues(t, 0b11, rows("id < 9 AND 'color' = ANY(attrs.key)"))
	require.EqualValues(t, 0b10, rows("NOT (id = 1 OR contains(attrs.value, 'red'))"))
}

func TestO35NotLeavesOutNulls(t *testing.T) {
	s, v := oneColumn(column.Of(column.Bool), true, false, nil)
	requireRows(t, sql(t, s, "NOT x"), v, 1)
	requireRows(t, sql(t, s, "x"), v, 0)
	requireRows(t, sql(t, s, "NOT NOT x"), v, 0)
	requireRows(t, iceberg(t, s, `{"type":"not","child":{"type":"eq","term":"x","value":true}}`), v, 1, 2)
	s, v = oneColumn(column.Of(column.Int), 1, 5, nil)
	requireRows(t, sql(t, s, "NOT (x < 2)"), v, 1)
	requireRows(t, sql(t, s, "NOT (x < 2 AND x > 0)"), v, 1)
	requireRows(t, sql(t, s, "NOT (x IS NULL)"), v, 0, 1)
	s, v = oneColumn(column.Of(column.Double), 1.0, 5.0, nil) // NOT (x < 2) of floats is not x >= 2
	requireRows(t, sql(t, s, "NOT (x < 2)"), v, 1)
	requireRows(t, iceberg(t, s, `{"type":"not","child":{"type":"lt","term":"x","value":2}}`), v, 1, 2)
}

func TestO46BackslashIsLiteral(t *testing.T) {
	s, v := oneColumn(column.Of(column.String), `foo a\b bar`, "foo ab bar")
	requireRows(t, sql(t, s, `x LIKE '% a\b %'`), v, 0)
	requireRows(t, sql(t, s, `x LIKE '% a\\b %' ESCAPE '\'`), v, 0)
	requireRows(t, sql(t, s, `x LIKE '% a\b %' ESCAPE '\'`), v, 1)
}

// TestU14UnderscoreIsAWildcard is user issue 14: LIKE 'foo_bar' is not an equality.
func TestU14UnderscoreIsAWildcard(t *testing.T) {
	s, v := oneColumn(column.Of(column.String), "foo_bar", "fooxbar", "fooébar", "foobar", "fooxxbar")
	tree := sql(t, s, "x LIKE 'foo_bar'")
	require.Equal(t, predicate.Like, tree.Leaf.Op)
	requireRows(t, tree, v, 0, 1, 2)
	requireRows(t, sql(t, s, "x LIKE 'foo!_bar' ESCAPE '!'"), v, 0)
}

// TestU62NotMatchLeavesOutNulls is user issue 62: a negated text test does not return null rows.
func TestU62NotMatchLeavesOutNulls(t *testing.T) {
	s, v := oneColumn(column.Of(column.String), "abc", nil, "x")
	requireRows(t, sql(t, s, "x NOT LIKE '%b%'"), v, 2)
	requireRows(t, sql(t, s, "NOT (x LIKE '%b%' OR x IS NULL)"), v, 2)
}

func TestNullLiterals(t *testing.T) {
	s, v := oneColumn(column.Of(column.Int), 1, 2, nil)
	for _, text := range []string{
		"x = NULL", "NOT x = NULL", "x <> NULL", "NULL < x", "x NOT IN (1, NULL)", "NOT (NOT x NOT IN (3, NULL))", "x BETWEEN NULL AND NULL",
		"NOT (x IN (NULL))", "x IN (NULL, NULL)",
	} {
		requireRows(t, sql(t, s, text), v)
	}
	requireRows(t, sql(t, s, "x IN (1, NULL)"), v, 0)
	requireRows(t, sql(t, s, "NOT (x NOT IN (1, NULL))"), v, 0)
	requireRows(t, sql(t, s, "x NOT BETWEEN 2 AND NULL"), v, 0)
	requireRows(t, sql(t, s, "x = NULL OR x = 2"), v, 1)
	_, err := icebergjson.Parse([]byte(`{"type":"eq","term":"x","value":null}`), s, true)
	require.ErrorContains(t, err, "null is not a literal")
}

// TestImpossibleLiterals: what no value equals is false of every value and unknown of null.
func TestImpossibleLiterals(t *testing.T) {
	s, v := oneColumn(column.Of(column.Int), 3, 4, nil, math.MaxInt32, math.MinInt32)
	for text, want := range map[string][]int{
		"x = 3.5": {}, "x <> 3.5": {0, 1, 3, 4}, "NOT x = 3.5": {0, 1, 3, 4}, "x < 3.5": {0, 4}, "x > 3.5": {1, 3}, "x <= -1e30": {},
		"x < 1e30": {0, 1, 3, 4}, "NOT x < 1e30": {}, "x IN (3.5, 1e99)": {}, "x NOT IN (3.5, 1e99)": {0, 1, 3, 4}, "x IN (3.5, 4.0)": {1},
		"x BETWEEN 3.5 AND 4.5": {1}, "x = 30e-1": {0}, "x >= 2147483647.5": {}, "x > 2147483646.5": {3}, "x < -2147483647.5": {4},
	} {
		requireRows(t, sql(t, s, text), v, want...)
	}
	tree := sql(t, s, "x < 1e30")
	require.Equal(t, predicate.LessEqual, tree.Leaf.Op)
	require.Equal(t, column.IntValue(column.Int, math.MaxInt32), tree.Leaf.Values[0])
	tree = sql(t, s, "x = 3.5")
	require.Equal(t, predicate.In, tree.Leaf.Op)
	require.Empty(t, tree.Leaf.Values)
	requireRows(t, iceberg(t, s, `{"type":"not-eq","term":"x","value":3.5}`), v, 0, 1, 2, 3, 4)
	requireRows(t, iceberg(t, s, `{"type":"in","term":"x","values":[]}`), v)
	requireRows(t, iceberg(t, s, `{"type":"not-in","term":"x","values":[]}`), v, 0, 1, 2, 3, 4)
}

func TestNormalForm(t *testing.T) {
	cols, s := testColumns()
	_ = cols
	for text, want := range map[string]string{
		`"c int" = 1 AND ("c int" = 1 AND "c long" = 2)`:              `"c int" = 1 AND "c long" = 2`,
		`"c int" = 1 OR ("c int" IN (1, 1.0) OR FALSE)`:               `"c int" = 1`,
		`TRUE AND NOT FALSE`:                                          `TRUE`,
		`"c int" = 1 OR NOT FALSE`:                                    `TRUE`,
		`"c int" = 1 AND NOT TRUE`:                                    `FALSE`,
		`NOT ("c int" < 1 OR "c double" < 1)`:                         `"c int" >= 1 AND NOT "c double" < 1`,
		`NOT "c boolean"`:                                             `"c boolean" = FALSE`,
		`"c string" LIKE 'abc%'`:                                      `"c string" LIKE 'abc%'`,
		`"c string" LIKE 'abc%%' OR "c string" LIKE 'abc%'`:           `"c string" LIKE 'abc%'`,
		`"c string" LIKE 'abc'`:                                       `"c string" = 'abc'`,
		`"c string" LIKE ''`:                                          `"c string" = ''`,
		`"c string" LIKE '%'`:                                         `"c string" LIKE '%'`,
		`"c date" < '2020-01-02 12:00'`:                               `"c date" <= DATE '2020-01-02'`,
		`"c timestamptz" = '2020-01-02T03:04:05+02:00'`:               `"c timestamptz" = TIMESTAMP '2020-01-02 01:04:05+00:00'`,
		`"c int" NOT BETWEEN 1 AND 2 AND "c long" = 1`:                `("c int" < 1 OR "c int" > 2) AND "c long" = 1`,
		`1 = 1 AND 'a' <> 'b' AND "c int" IN (3, 1, 2, 1)`:            `"c int" IN (1, 2, 3)`,
		`"c float" = 16777217`:                                        `"c float" = 1.6777216e+07`,
		`"c float" < 1e300 AND "c float" > -1e300`:                    `"c float" <= 3.4028235e+38 AND "c float" >= -3.4028235e+38`,
		`"c float" > 1e300 OR "c float" = 1e300`:                      `"c float" >= 'Infinity' OR "c float" = 'NaN'`,
		`"c uuid" = 'F79C3E09-677c-4bbd-a479-3f349cb785e7'`:           `"c uuid" = 'f79c3e09-677c-4bbd-a479-3f349cb785e7'`,
		`"c uuid" = x'f79c3e09677c4bbda4793f349cb785e7'`:              `"c uuid" = 'f79c3e09-677c-4bbd-a479-3f349cb785e7'`,
		`"c timestamp" > '-0001-02-28' AND "c date" < '+12345-01-01'`: `"c timestamp" > TIMESTAMP '-0001-02-28 00:00:00' AND "c date" < DATE '+12345-01-01'`,
	} {
		require.Equal(t, want, sql(t, s, text).String(), text)
	}
}

func TestReadsAreDistinct(t *testing.T) {
	_, s := testColumns()
	e := predicate.Compile(sql(t, s, `st."a.b" = 1 AND contains(longs, 2) AND (contains(longs, 3) OR st."a.b" IS NULL) AND st IS NOT NULL AND contains(m.key, 'x')`))
	var names []string
	for _, p := range e.Reads() {
		names = append(names, p.Name())
	}
	require.Equal(t, []string{"st.a.b", "longs", "st", "m"}, names)
}

// TestNestedNullTests: a null test of a struct, list or map needs its validity only.
func TestNestedNullTests(t *testing.T) {
	_, s := testColumns()
	for _, name := range []string{"st", "longs", "m"} {
		tree := sql(t, s, name+" IS NULL")
		v := &column.Vector{Type: tree.Leaf.Column.Type(), Len: 3, Valid: []uint64{0b101}}
		requireRows(t, tree, v, 1)
		requireRows(t, predicate.Not(tree), v, 0, 2)
		requireRows(t, tree, column.Constant(v.Type, nil, 2), 0, 1)
	}
}

// TestConstantVectors: a column that a file lacks is a constant.
func TestConstantVectors(t *testing.T) {
	cols, _ := testColumns()
	r := seeded(t)
	for i, c := range cols {
		for range 50 {
			s := randomTest(r, c, 0, false)
			tree, err := sqltext.Parse(s.text([]testColumn{c}, r), schemaOf(cols, i))
			require.NoError(t, err)
			around := predicate.Column{Path: c.path}.Read().Leaf().Type
			rows := []cell{{null: true}}
			v := column.Constant(around, nil, 70)
			if !c.list && c.pool != nil && r.IntN(2) == 0 {
				x := pick(r, c.pool)
				rows[0] = cell{v: x}
				v = column.Constant(around, &x, 70)
			}
			want := uint64(0)
			if s.sql(rows) == yes {
				want = ^uint64(0)
			}
			require.Equal(t, []uint64{want, want & 63}, predicate.Compile(tree).Rows(&column.Batch{Rows: 70, Cols: []*column.Vector{v}}), "%s", tree)
		}
	}
}

func schemaOf(cols []testColumn, i int) *column.Schema {
	return &column.Schema{Fields: []column.Field{cols[i].path[0]}}
}

// TestWhatIsMadeOnceIsOfTheValues: copies of a leaf share it, a copy with other values does not.
func TestWhatIsMadeOnceIsOfTheValues(t *testing.T) {
	made := 0
	sum := func(values []column.Value) any {
		made++
		n := int64(0)
		for _, v := range values {
			n += int64(v.Lo)
		}
		return n
	}
	long := column.Of(column.Long)
	of := func(values ...int64) (out []column.Value) {
		for _, v := range values {
			out = append(out, column.IntValue(column.Long, v))
		}
		return out
	}
	l := predicate.Of(predicate.Leaf{Column: predicate.Column{Path: column.Path{{ID: 1, Type: long}}}, Op: predicate.In, Values: of(3, 1, 2)}).Leaf
	same, other, less := *l, *l, *l
	same.Negated, other.Values, less.Values = true, of(5, 6, 7), l.Values[:2]
	for range 2 {
		require.EqualValues(t, 6, l.Once(sum))
		require.EqualValues(t, 6, same.Once(sum))
	}
	require.Equal(t, 1, made)
	require.EqualValues(t, 18, other.Once(sum))
	require.EqualValues(t, 3, less.Once(sum))
	require.EqualValues(t, 0, (&predicate.Leaf{Op: predicate.In}).Once(sum))
}
