package icebergjson_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/predicate/icebergjson"
)

func schema() *column.Schema {
	of := column.Of
	return &column.Schema{Fields: []column.Field{
		{ID: 1, Name: "id", Type: of(column.Long)},
		{ID: 2, Name: "name", Type: of(column.String)},
		{ID: 3, Name: "d", Type: of(column.Double)},
		{ID: 4, Name: "f", Type: of(column.Float)},
		{ID: 5, Name: "day", Type: of(column.Date)},
		{ID: 6, Name: "at", Type: of(column.Time)},
		{ID: 7, Name: "ts", Type: of(column.Timestamp)},
		{ID: 8, Name: "tz", Type: of(column.TimestampTZ)},
		{ID: 9, Name: "ns", Type: of(column.TimestampNS)},
		{ID: 10, Name: "nz", Type: of(column.TimestampNZ)},
		{ID: 11, Name: "amount", Type: column.DecimalOf(9, 2)},
		{ID: 12, Name: "uuid", Type: of(column.UUID)},
		{ID: 13, Name: "fix", Type: column.FixedOf(2)},
		{ID: 14, Name: "raw", Type: of(column.Binary)},
		{ID: 15, Name: "ok", Type: of(column.Bool)},
		{ID: 16, Name: "a", Type: column.Type{Kind: column.Struct, Fields: []column.Field{{ID: 17, Name: "b", Type: of(column.Int)}}}},
		{ID: 18, Name: "tags", Type: column.Type{Kind: column.List, Fields: []column.Field{{ID: 19, Name: "element", Type: of(column.String)}}}},
		{ID: 20, Name: "dotted.name", Type: of(column.Int)},
	}}
}

func TestForms(t *testing.T) {
	s := schema()
	for text, want := range map[string]string{
		`true`:                             "TRUE",
		`false`:                            "FALSE",
		` {"type":"true"} `:                "TRUE",
		`{"type":"false"}`:                 "FALSE",
		`{"type":"literal","value":false}`: "FALSE",
		`{"type":"not","child":true}`:      "FALSE",
		`{"type":"and","left":true,"right":{"type":"eq","term":"id","value":1}}`:                                                              "id = 1",
		`{"type":"or","left":{"type":"lt","term":"id","value":1},"right":{"type":"gt-eq","term":"a.b","value":2}}`:                            "id < 1 OR a.b >= 2",
		`{"type":"not","child":{"type":"and","left":{"type":"lt-eq","term":"id","value":1},"right":{"type":"gt","term":"name","value":"x"}}}`: "NOT id <= 1 {or NULL} OR NOT name > 'x' {or NULL}",
		`{"type":"is-null","term":"id"}`:                         "id IS NULL",
		`{"type":"not-null","term":"id"}`:                        "id IS NOT NULL",
		`{"type":"not","child":{"type":"is-null","term":"a"}}`:   "a IS NOT NULL",
		`{"type":"is-nan","term":"d"}`:                           "d IS NAN",
		`{"type":"not-nan","child":{"type":"reference","id":4}}`: "f IS NOT NAN {or NULL}",
		`{"type":"eq","term":"d","value":1.5}`:                   "d = 1.5 {or NaN}",
		`{"type":"not-eq","term":"d","value":1.5}`:               "d <> 1.5 {or NULL or NaN}",
		`{"type":"in","term":"id","values":[3,1,2,1]}`:           "id IN (1, 2, 3)",
		`{"type":"not-in","term":"id","values":[1,2]}`:           "id NOT IN (1, 2) {or NULL}",
		`{"type":"in","child":{"type":"reference","name":"id"},"values":{"type":"literals","values":[1,2],"data-type":"long"}}`:           "id IN (1, 2)",
		`{"type":"in","term":"day","values":{"type":"literals","values":["2026-01-02"],"data-type":"date"}}`:                              "day = DATE '2026-01-02'",
		`{"type":"starts-with","term":"name","value":"a_"}`:                                                                               `name LIKE 'a\_%' ESCAPE '\'`,
		`{"type":"not-starts-with","term":"name","value":"a"}`:                                                                            "name NOT LIKE 'a%' {or NULL}",
		`{"type":"not","child":{"type":"not-starts-with","term":"name","value":"a"}}`:                                                     "name LIKE 'a%'",
		`{"type":"eq","left":{"type":"reference","id":17},"right":{"type":"literal","value":5,"data-type":"int"}}`:                        "a.b = 5",
		`{"type":"lt","left":{"type":"literal","value":5},"right":{"type":"reference","name":"id"}}`:                                      "id > 5",
		`{"type":"eq","term":{"type":"reference","term":"id"},"value":{"type":"literal","value":5}}`:                                      "id = 5",
		`{"type":"eq","term":"ID","value":1}`:                                                                                             "id = 1",
		`{"type":"eq","term":"dotted.name","value":1}`:                                                                                    `"dotted.name" = 1`,
		`{"type":"eq","term":"amount","value":"14.20"}`:                                                                                   "amount = 14.20",
		`{"type":"eq","term":"amount","value":14.2}`:                                                                                      "amount = 14.20",
		`{"type":"lt","term":"amount","value":14.205}`:                                                                                    "amount <= 14.20",
		`{"type":"eq","term":"uuid","value":"f79c3e09-677c-4bbd-a479-3f349cb785e7"}`:                                                      "uuid = 'f79c3e09-677c-4bbd-a479-3f349cb785e7'",
		`{"type":"eq","term":"fix","value":"00FF"}`:                                                                                       "fix = X'00ff'",
		`{"type":"eq","term":"raw","value":{"type":"literal","value":"0a","data-type":"binary"}}`:                                         "raw = X'0a'",
		`{"type":"eq","term":"ok","value":true}`:                                                                                          "ok = TRUE",
		`{"type":"eq","term":"day","value":"2026-01-02"}`:                                                                                 "day = DATE '2026-01-02'",
		`{"type":"eq","term":"day","value":19000}`:                                                                                        "day = DATE '2022-01-08'",
		`{"type":"eq","term":"at","value":"01:02:03.5"}`:                                                                                  "at = TIME '01:02:03.5'",
		`{"type":"eq","term":"at","value":3723500000}`:                                                                                    "at = TIME '01:02:03.5'",
		`{"type":"eq","term":"ts","value":"2026-01-02T03:04:05.123456"}`:                                                                  "ts = TIMESTAMP '2026-01-02 03:04:05.123456'",
		`{"type":"eq","term":"ts","value":1577836800000000}`:                                                                              "ts = TIMESTAMP '2020-01-01 00:00:00'",
		`{"type":"eq","term":"tz","value":"2026-01-02T03:04:05.123456+00:00"}`:                                                            "tz = TIMESTAMP '2026-01-02 03:04:05.123456+00:00'",
		`{"type":"eq","term":"ns","value":1577836800000000}`:                                                                              "ns = TIMESTAMP '2020-01-01 00:00:00'",
		`{"type":"eq","term":"nz","value":{"type":"literal","value":"2026-01-02T03:04:05.123456789+01:00","data-type":"timestamptz_ns"}}`: "nz = TIMESTAMP '2026-01-02 02:04:05.123456789+00:00'",
	} {
		tree, err := icebergjson.Parse([]byte(text), s, false)
		require.NoError(t, err, text)
		require.Equal(t, want, tree.String(), text)
	}
}

// TestTransformsKeepEveryRow: what is computed from a column cannot be asked of it, negated or not.
func TestTransformsKeepEveryRow(t *testing.T) {
	s := schema()
	for _, term := range []string{
		`{"type":"transform","transform":"bucket[16]","term":"id"}`, `{"type":"transform","transform":"day","term":{"type":"reference","id":7}}`,
		`{"type":"transform","transform":"truncate[4]","term":"name"}`, `{"type":"apply","function":"system.bucket","arguments":[16,{"type":"reference","id":1}]}`,
	} {
		test := `{"type":"eq","term":` + term + `,"value":3}`
		for _, text := range []string{test, `{"type":"not","child":` + test + `}`, `{"type":"not-in","term":` + term + `,"values":[1,2]}`, `{"type":"is-null","term":` + term + `}`} {
			tree, err := icebergjson.Parse([]byte(text), s, true)
			require.NoError(t, err, text)
			require.Equal(t, "TRUE", tree.String(), text)
		}
		id := `{"type":"eq","term":"id","value":1}`
		for text, want := range map[string]string{
			`{"type":"and","left":` + test + `,"right":` + id + `}`:                             "id = 1",
			`{"type":"or","left":` + test + `,"right":` + id + `}`:                              "TRUE",
			`{"type":"not","child":{"type":"or","left":` + test + `,"right":` + id + `}}`:       "id <> 1 {or NULL}",
			`{"type":"not","child":{"type":"and","left":` + test + `,"right":` + id + `}}`:      "TRUE",
			`{"type":"not","child":{"type":"not","child":{"type":"not","child":` + test + `}}}`: "TRUE",
		} {
			tree, err := icebergjson.Parse([]byte(text), s, true)
			require.NoError(t, err, text)
			require.Equal(t, want, tree.String(), text)
		}
	}
	for text, want := range map[string]string{
		`{"type":"eq","term":{"type":"transform","transform":"identity","term":"id"},"value":3}`:     "id = 3",
		`{"type":"lt","left":{"type":"reference","id":1},"right":{"type":"reference","name":"a.b"}}`: "TRUE",
		`{"type":"lt","left":{"type":"literal","value":1},"right":{"type":"apply","function":"f"}}`:  "TRUE",
	} {
		tree, err := icebergjson.Parse([]byte(text), s, true)
		require.NoError(t, err, text)
		require.Equal(t, want, tree.String(), text)
	}
}

func TestErrors(t *testing.T) {
	s := schema()
	for text, want := range map[string]string{
		``:           "breaks off",
		`{`:          "breaks off",
		`true false`: "more JSON follows",
		`null`:       "expression is null",
		`1`:          "object or a boolean",
		`[]`:         "object or a boolean",
		`{}`:         "no type",
		`{"type":5}`: "no type",
		`{"type":"like","term":"name","value":"x"}`:                                                         "no such expression type",
		`{"type":"literal","value":1}`:                                                                      "only a boolean literal",
		`{"type":"and","left":true}`:                                                                        "needs left and right",
		`{"type":"not"}`:                                                                                    "no child",
		`{"type":"not","child":null}`:                                                                       "expression is null",
		`{"type":"eq","value":1}`:                                                                           "neither term nor child nor left",
		`{"type":"eq","term":"id"}`:                                                                         "has no value",
		`{"type":"eq","term":"id","value":null}`:                                                            "null is not a literal",
		`{"type":"in","term":"id","values":[1,null]}`:                                                       "null is not a literal",
		`{"type":"in","term":"id","values":3}`:                                                              "not an array",
		`{"type":"in","term":"id","values":{"type":"literals"}}`:                                            "not an array",
		`{"type":"eq","term":"id","value":[1]}`:                                                             "boolean, a number or a string",
		`{"type":"eq","term":"id","value":{"type":"x"}}`:                                                    "not a literal",
		`{"type":"eq","term":"id","value":"x"}`:                                                             "'x' cannot be",
		`{"type":"eq","term":"ID","value":1}`:                                                               "no such column",
		`{"type":"eq","term":5,"value":1}`:                                                                  "neither a name nor",
		`{"type":"eq","term":{"type":"reference"},"value":1}`:                                               "neither an id nor a name",
		`{"type":"eq","term":{"type":"reference","id":"x"},"value":1}`:                                      "not a field id",
		`{"type":"eq","term":{"type":"reference","id":99},"value":1}`:                                       "no field of id 99",
		`{"type":"eq","term":{"type":"transform","term":"id"},"value":1}`:                                   "does not say which",
		`{"type":"eq","term":{"type":"transform","transform":"day"},"value":1}`:                             "has no term",
		`{"type":"eq","term":{"type":"transform","transform":"day","term":"zz"},"value":1}`:                 "no such column",
		`{"type":"eq","term":{"type":"transform","transform":"day","term":{"type":"transform"}},"value":1}`: "not a reference",
		`{"type":"eq","term":"a","value":1}`:                                                                "a struct has no order",
		`{"type":"eq","term":"tags.element","value":"x"}`:                                                   "many values a row",
		`{"type":"starts-with","term":"id","value":"1"}`:                                                    "for strings",
		`{"type":"starts-with","left":{"type":"literal","value":"x"},"right":{"type":"reference","id":2}}`:  "left side must be the column",
		`{"type":"is-nan","term":"id"}`:                                                                     "never NaN",
		`{"type":"eq","term":"ts","value":"2026-01-02T00:00:00Z"}`:                                          "cannot be",
		`{"type":"eq","term":"uuid","value":"x"}`:                                                           "cannot be",
		`{"type":"eq","term":"id","value":{"type":"literal","value":"1","data-type":"geometry"}}`:           "no literal of type geometry",
		"{\"type\":\"eq\",\"term\":\"name\",\"value\":\"\xff\"}":                                            "not valid UTF-8",
	} {
		_, err := icebergjson.Parse([]byte(text), s, true)
		require.ErrorContains(t, err, want, text)
		require.Equal(t, fault.Invalid, fault.ClassOf(err), text)
	}
}

// TestDeepExpressions: clients write long conjunctions as chains.
func TestDeepExpressions(t *testing.T) {
	s := schema()
	chain := func(n int, open, shut string) string {
		return strings.Repeat(open, n) + `{"type":"eq","term":"id","value":1}` + strings.Repeat(shut, n)
	}
	tree, err := icebergjson.Parse([]byte(chain(5000, `{"type":"or","right":{"type":"eq","term":"id","value":2},"left":`, "}")), s, true)
	require.NoError(t, err)
	require.Equal(t, "id = 1 OR id = 2", tree.String())
	tree, err = icebergjson.Parse([]byte(chain(5001, `{"type":"not","child":`, "}")), s, true)
	require.NoError(t, err)
	require.Equal(t, "id <> 1 {or NULL}", tree.String())
	alternating := `{"type":"or","right":{"type":"eq","term":"id","value":2},"left":{"type":"and","right":{"type":"eq","term":"id","value":3},"left":`
	_, err = icebergjson.Parse([]byte(chain(2000, alternating, "}}")), s, true)
	require.ErrorContains(t, err, "more than the limit of 1000")
	_, err = icebergjson.Parse([]byte(strings.Repeat(`{"type":"not","child":`, 100_000)), s, true)
	require.ErrorContains(t, err, "breaks off")
	_, err = icebergjson.Parse([]byte(strings.Repeat(`[`, icebergjson.MaxBytes+1)), s, true)
	require.ErrorContains(t, err, "more than the limit")
	values := `{"type":"in","term":"id","values":[0` + strings.Repeat(",1", predicate.MaxValues) + "]}"
	tree, err = icebergjson.Parse([]byte(values), s, true)
	require.NoError(t, err)
	require.Equal(t, "id IN (0, 1)", tree.String())
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`true`, `{"type":"and","left":{"type":"eq","term":"id","value":1},"right":{"type":"not-in","term":"name","values":["a","b"]}}`,
		`{"type":"not","child":{"type":"lt","left":{"type":"reference","id":7},"right":{"type":"literal","value":"2026-01-02T03:04:05","data-type":"timestamp"}}}`,
		`{"type":"in","child":{"type":"reference","name":"d"},"values":{"type":"literals","values":[1.5,"NaN"],"data-type":"double"}}`,
		`{"type":"eq","term":{"type":"transform","transform":"bucket[16]","term":"id"},"value":3}`, `{"type":"is-null","term":"a"}`,
		`{"type":"starts-with","term":"name","value":"é"}`, `{"type":"gt","term":"amount","value":1e999999999}`, `{"type":"eq","term":"raw","value":"0a"}`,
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	s := schema()
	f.Fuzz(func(t *testing.T, raw []byte, caseSensitive bool) {
		tree, err := icebergjson.Parse(raw, s, caseSensitive)
		if err != nil {
			if fault.ClassOf(err) != fault.Invalid {
				t.Fatalf("%q: class %s: %v", raw, fault.ClassOf(err), err)
			}
			return
		}
		if tree.String() == "" || tree.Check() != nil {
			t.Fatalf("%q: %v", raw, tree)
		}
		predicate.Compile(tree)
	})
}
