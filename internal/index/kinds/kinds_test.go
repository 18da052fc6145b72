package kinds

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/predicate"
)

var schema = &column.Schema{Fields: []column.Field{
	{ID: 1, Name: "user_id", Type: column.Of(column.Long)},
	{ID: 2, Name: "Order Date", Type: column.Of(column.Date)},
	{ID: 3, Name: "address", Type: column.Type{Kind: column.Struct, Fields: []column.Field{{ID: 4, Name: "city", Type: column.Of(column.String)}}}},
	{ID: 5, Name: "tags", Type: column.Type{Kind: column.List, Fields: []column.Field{{ID: 6, Name: "element", Type: column.Of(column.String)}}}},
	{ID: 7, Name: "Name", Type: column.Of(column.String)},
	{ID: 8, Name: "NAME", Type: column.Of(column.String)},
	{ID: 9, Name: `say "hi"`, Type: column.Of(column.Int)},
	{ID: 10, Name: "größe", Type: column.Of(column.Double)},
	{ID: 11, Name: "deep", Type: column.Type{Kind: column.List, Fields: []column.Field{{ID: 12, Name: "element", Type: column.Type{
		Kind: column.List, Fields: []column.Field{{ID: 13, Name: "element", Type: column.Of(column.String)}},
	}}}}},
}}

func TestDeclarationsAreRead(t *testing.T) {
	for text, want := range map[string]string{
		"bloom(user_id) fpp=0.01":        "bloom(user_id) fpp=0.01",
		" Bloom ( USER_ID )  fpp = 0.1 ": "bloom(user_id) fpp=0.1",
		`ordered("Order Date")`:          `ordered("Order Date")`,
		"zonemap(address.city)":          "zonemap(address.city)",
		`zonemap("say ""hi""")`:          `zonemap("say ""hi""")`,
		"ordered(größe)":                 "ordered(größe)",
		`bloom(user_id) fpp='0.05'`:      "bloom(user_id) fpp=0.05",
		"ordered(Name)":                  "ordered(Name)",
		"bloom(tags)":                    "bloom(tags.element)",
		"bloom(tags.element)":            "bloom(tags.element)",
	} {
		d, err := ParseExpr(text, schema)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if d.String() != want {
			t.Errorf("%s reads as %s, want %s", text, d, want)
		}
		again, err := ParseExpr(d.String(), schema)
		if err != nil || again.String() != want || again.Columns[0].Leaf().ID != d.Columns[0].Leaf().ID {
			t.Errorf("%s: %v, %v", want, again, err)
		}
	}
}

func TestFaultsTeach(t *testing.T) {
	for text, want := range map[string][2]string{
		"":                              {"expected the name", "zonemap(price)"},
		"blom(user_id)":                 {"no index kind", "did you mean bloom?"},
		"gin(user_id)":                  {"no index kind", "zonemap(price)"},
		"bloom user_id":                 {"at character 7: expected (", "bloom(user_id)"},
		"bloom()":                       {"at character 7: expected a column", "double quotes"},
		"bloom(Order Date)":             {"expected , or )", "double quotes"},
		"bloom(user_id":                 {"expected , or )", ""},
		"bloom(usr_id)":                 {"no column", "did you mean user_id?"},
		"bloom(qqqqqq)":                 {"no column", "columns: user_id"},
		"bloom(name)":                   {"Name, NAME", "exact case"},
		"bloom(user_id, Name)":          {"takes one column", "per column"},
		"bloom(address)":                {"no order and no keys", "primitive"},
		"zonemap(tags.element)":         {"list or map", "struct field"},
		"ordered(tags)":                 {"list or map", "struct field"},
		"bloom(deep)":                   {"more than one list or map deep", "elements of a list"},
		"valueset(deep.element)":        {"more than one list or map deep", "elements of a list"},
		"bitmap(deep.element.element)":  {"more than one list or map deep; bitmap takes", "elements of a list"},
		"zonemap(deep.element.element)": {"list or map, of which zonemap holds one value a row", "struct field"},
		"bloom(address[1])":             {"at character 15: expected a text in single quotes", "keys that are no strings"},
		"bloom(user_id) fpp":            {"key=value", "fpp=0.01"},
		"bloom(user_id) fpp=":           {"no value", ""},
		"bloom(user_id) fpp=0.1 fpp=.2": {"twice", ""},
		"bloom(user_id) fpp=2":          {"false-positive rate", "fpp=0.01"},
		"bloom(user_id) fpp=NaN":        {"false-positive rate", ""},
		"bloom(user_id) size=2":         {`no parameter "size"`, "fpp"},
		"zonemap(user_id) fpp=0.1":      {`no parameter "fpp"`, "no parameters"},
		`bloom("user_id)`:               {"not closed", ""},
		"bloom(user_id)) ":              {"key=value", ""},
		"bloom(user_id) \xff":           {"UTF-8", ""},
	} {
		_, err := ParseExpr(text, schema)
		if err == nil {
			t.Errorf("%q was read", text)
			continue
		}
		if !strings.Contains(err.Error(), want[0]) || !strings.Contains(fault.FixOf(err), want[1]) {
			t.Errorf("%q: %v; fix: %s", text, err, fault.FixOf(err))
		}
		if !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Unsupported) {
			t.Errorf("%q: class %s", text, fault.ClassOf(err))
		}
	}
}

func TestTable(t *testing.T) {
	for _, e := range All() {
		if got, ok := ByName(e.Name); !ok || got.Name != e.Name {
			t.Errorf("%s is not found", e.Name)
		}
		if e.BlobType() != "skomer."+e.Name+".v1" {
			t.Errorf("blob type %s", e.BlobType())
		}
	}
}

// The tables "predicate → power" in docs/format are what the code says.
func TestFormatPagesMatchTheCode(t *testing.T) {
	_, self, _, _ := runtime.Caller(0)
	for _, e := range All() {
		page, err := os.ReadFile(filepath.Join(filepath.Dir(self), "..", "..", "..", "docs", "format", e.Name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		for _, line := range strings.Split(string(page), "\n") {
			cells := strings.Split(line, "|")
			if len(cells) != 5 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
				continue
			}
			rows++
			what := strings.Trim(strings.TrimSpace(cells[1]), "`")
			for i, negated := range []bool{false, true} {
				if got, want := says(t, e.Kind, what, negated), strings.TrimSpace(cells[2+i]); got != want {
					t.Errorf("%s: %s negated %v: the page says %s, the code %s", e.Name, what, negated, want, got)
				}
			}
		}
		if rows != len(tested) {
			t.Errorf("%s: %d predicates in the table, want %d", e.Name, rows, len(tested))
		}
	}
}

// tested is the predicates of the tables as docs/format writes them.
var tested = map[string]struct {
	op      predicate.Op
	kind    column.Kind
	pattern string
}{
	"x IS NULL":         {predicate.IsNull, column.Double, ""},
	"x IS NAN":          {predicate.IsNaN, column.Double, ""},
	"x = v":             {predicate.Equal, column.Double, ""},
	"x < v":             {predicate.Less, column.Double, ""},
	"x <= v":            {predicate.LessEqual, column.Double, ""},
	"x > v":             {predicate.Greater, column.Double, ""},
	"x >= v":            {predicate.GreaterEqual, column.Double, ""},
	"x IN (v, …)":       {predicate.In, column.Double, ""},
	"x STARTS WITH 'p'": {predicate.StartsWith, column.String, ""},
	"x LIKE 'p%q'":      {predicate.Like, column.String, "ppp%qqq"},
	"x LIKE '%q'":       {predicate.Like, column.String, "%qqq"},
	"x ILIKE '%p%'":     {predicate.ILike, column.String, "%ppp%"},
	"x ~ 're'":          {predicate.Match, column.String, "abc"},
	"contains(x, v)":    {predicate.Contains, column.Double, ""},
}

// says is the power of a predicate in both dialects, which must agree.
func says(t *testing.T, k index.Kind, what string, negated bool) string {
	c, ok := tested[what]
	if !ok {
		t.Fatalf("the table has %q, which no test knows", what)
	}
	path := indextest.Path(column.Of(c.kind))
	if c.op == predicate.Contains {
		path = indextest.ListPath(column.Of(c.kind))
	}
	leaf := &predicate.Leaf{Column: predicate.Column{Path: path}, Op: c.op, Negated: negated, Values: []column.Value{{Kind: c.kind, S: "value"}}}
	switch c.op {
	case predicate.Like:
		leaf.Pattern = indextest.Pattern(c.pattern, 0)
	case predicate.ILike:
		leaf.Pattern = indextest.AnyCase(c.pattern, 0)
	case predicate.Match:
		leaf.Regex = indextest.Regex(c.pattern, false)
	}
	sql := k.Says([]column.Path{path}, leaf)
	leaf.Dialect = predicate.Iceberg
	if k.Says([]column.Path{path}, leaf) != sql {
		t.Errorf("%s negated %v: the dialects differ", what, negated)
	}
	return sql.String()
}

func FuzzParseExpr(f *testing.F) {
	for _, s := range []string{"bloom(user_id) fpp=0.01", `ordered("Order Date")`, "zonemap(address.city)", `bloom("a""b") x='y z'`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseExpr(text, schema)
		if err != nil {
			return
		}
		again, err := ParseExpr(d.String(), schema)
		if err != nil || again.String() != d.String() {
			t.Errorf("%q: %q, %v", text, d, err)
		}
	})
}
