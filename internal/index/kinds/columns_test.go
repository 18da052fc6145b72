package kinds

import (
	"slices"
	"strings"
	"testing"

	"github.com/skomerdb/skomer/internal/analysis"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/predicate/sqltext"
)

var text = column.Of(column.String)

var documents = &column.Schema{Fields: []column.Field{
	{ID: 1, Name: "message", Type: text},
	{ID: 2, Name: "pay load", Type: text},
	{ID: 3, Name: "n", Type: column.Of(column.Long)},
	{ID: 4, Name: "attrs", Type: column.Type{Kind: column.Map, Fields: []column.Field{{ID: 5, Name: "key", Type: text, Required: true}, {ID: 6, Name: "value", Type: text}}}},
	{ID: 7, Name: "items", Type: column.Type{Kind: column.List, Fields: []column.Field{{ID: 8, Name: "element", Type: column.Type{Kind: column.Struct, Fields: []column.Field{
		{ID: 9, Name: "sku", Type: text},
	}}}}}},
}}

// TestExpressionsAreDeclared: an index on an expression has columns of its own, and its definition leads back to them.
func TestExpressionsAreDeclared(t *testing.T) {
	for expr, want := range map[string][2]string{ // the declaration, and a filter that the index answers
		"bloom(tokens(message))":                {"bloom(tokens(message))", "contains_token(message, 'disk')"},
		`ngram("pay load" -> '$.user[''id'']')`: {`ngram("pay load" -> '$.user.id')`, `"pay load" -> '$.user.id' LIKE '%abc%'`},
		`bloom( "pay load"->'$.a' ) fpp=0.1`:    {`bloom("pay load" -> '$.a') fpp=0.1`, `"pay load" -> '$.a' = 'x'`},
		"ordered(attrs['it''s'])":               {"ordered(attrs['it''s'])", "attrs['it''s'] > 'x'"},
		"bloom(map_values(attrs))":              {"bloom(attrs.value)", "contains(map_values(attrs), 'x')"},
		"bloom(Map_Keys(attrs))":                {"bloom(attrs.key)", "contains(attrs.key, 'x')"},
		"bitmap(items.sku)":                     {"bitmap(items.element.sku)", "contains(items.sku, 'x')"},
		"bloom(items.element.sku)":              {"bloom(items.element.sku)", "contains(items.sku, 'x')"},
		"zonemap(attrs['k'] -> '$[0]')":         {"", ""},
		"ngram(tokens(message))":                {"", ""},
		"bloom(tokens(n))":                      {"", ""},
		"bloom(n -> '$.a')":                     {"", ""},
		"bloom(message['k'])":                   {"", ""},
		"bloom(message -> 'a')":                 {"", ""},
		"bloom(message ->)":                     {"", ""},
		"bloom(attrs['k)":                       {"", ""},
		"bloom(lower(message))":                 {"", ""},
		"bloom(map_values(items))":              {"", ""},
		"bloom(attrs)":                          {"", ""},
		"bloom(message) expr='1 json $.a'":      {"", ""},
		"ordered(n, message -> '$.a')":          {"", ""},
		"ordered(n, n)":                         {"", ""},
		"sketch(message -> '$.a')":              {"", ""},
	} {
		d, err := ParseExpr(expr, documents)
		if want[0] == "" {
			if !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Unsupported) {
				t.Errorf("%s: %s, %v", expr, d, err)
			}
			continue
		}
		if err != nil || d.String() != want[0] {
			t.Errorf("%s reads as %s, want %s, %v", expr, d, want[0], err)
			continue
		}
		ids := []int{d.Columns[0].Leaf().ID}
		cols, ok := Columns(documents, ids, d.Params)
		if !ok || cols[0].Leaf().ID != ids[0] || cols[0].Name() != d.Columns[0].Name() {
			t.Errorf("%s: the definition leads to %v", expr, cols)
			continue
		}
		tree, err := sqltext.Parse(want[1], documents)
		if err != nil {
			t.Fatal(err)
		}
		says := index.Nothing
		tree.Leaves(func(l *predicate.Leaf) { says = max(says, d.Kind.Says(cols, l)) })
		if says == index.Nothing {
			t.Errorf("%s says nothing of %s", expr, want[1])
		}
		again, err := ParseExpr(d.String(), documents)
		if err != nil || again.String() != d.String() || again.Columns[0].Leaf().ID != ids[0] {
			t.Errorf("%s: %s, %v", d, again, err)
		}
	}
}

// TestExpressionsAreNotTheirColumns: an index of a column says nothing of its expressions, of another expression, nor the reverse.
func TestExpressionsAreNotTheirColumns(t *testing.T) {
	exprs := []string{"(message)", "(tokens(message))", "(message -> '$.a')", "(message -> '$.b')", "(attrs['a'])", "(attrs['b'])", "(attrs.value)", "(attrs.key)"}
	filters := []string{
		"message = 'abc'", "contains_token(message, 'abc')", "message -> '$.a' = 'abc'", "message -> '$.b' = 'abc'", "attrs['a'] = 'abc'", "attrs['b'] = 'abc'",
		"contains(attrs.value, 'abc')", "contains(attrs.key, 'abc')",
	}
	for _, kind := range []string{"bloom", "valueset", "bitmap", "ordered", "zonemap", "ngram"} {
		for i, expr := range exprs {
			d, err := ParseExpr(kind+expr, documents)
			if err != nil {
				continue
			}
			for k, filter := range filters {
				tree, err := sqltext.Parse(filter, documents)
				if err != nil {
					t.Fatal(err)
				}
				if says := d.Kind.Says(d.Columns, tree.Leaf) != index.Nothing; says != (i == k) {
					t.Errorf("%s%s says something of %s: %v", kind, expr, filter, says)
				}
			}
		}
	}
}

// TestOtherIdentitiesHaveNoColumn: a definition whose field is not that of its expression, as damaged or foreign ones have, is not asked.
func TestOtherIdentitiesHaveNoColumn(t *testing.T) {
	for _, expr := range []string{"bloom(message -> '$.a')", "bloom(tokens(message))", "bloom(attrs['a'])"} {
		d, err := ParseExpr(expr, documents)
		if err != nil {
			t.Fatal(err)
		}
		id := d.Columns[0].Leaf().ID
		for ids, want := range map[*[]int]bool{{id}: true, {id + 1}: false, {d.Columns[0].Base().Leaf().ID}: false, {id, id}: false, {}: false} {
			if _, ok := Columns(documents, *ids, d.Params); ok != want {
				t.Errorf("%s of fields %v: %v", expr, *ids, ok)
			}
		}
	}
}

// TestU70OtherAnalyzersAreNotAsked: a definition whose words were cut by another version has no column in this build.
func TestU70OtherAnalyzersAreNotAsked(t *testing.T) {
	d, err := ParseExpr("bloom(tokens(message))", documents)
	if err != nil {
		t.Fatal(err)
	}
	param := d.Params[index.ExprParam]
	if !strings.Contains(param, analysis.Standard) {
		t.Fatalf("the definition says %q", param)
	}
	ids := []int{d.Columns[0].Leaf().ID}
	old := index.Params{index.ExprParam: strings.Replace(param, "standard.1", "standard.0", 1)}
	if cols, ok := Columns(documents, ids, old); ok {
		t.Errorf("another analyzer leads to %v", cols)
	}
	if got := (Declaration{Entry: d.Entry, Columns: []column.Path{{{ID: ids[0], Name: "message"}}}, Params: old}).String(); got != "bloom(tokens(message))" {
		t.Errorf("it is listed as %s", got)
	}
	for what, params := range map[string]index.Params{
		"another column": {index.ExprParam: "2 tokens " + analysis.Standard}, "no column": {index.ExprParam: "99 tokens " + analysis.Standard},
		"no number": {index.ExprParam: "x json $"}, "nothing": {index.ExprParam: ""},
	} {
		if cols, ok := Columns(documents, ids, params); ok {
			t.Errorf("%s leads to %v", what, cols)
		}
	}
	if cols, ok := Columns(documents, []int{1, 99}, nil); ok {
		t.Errorf("a dropped column leads to %v", cols)
	}
	if cols, ok := Columns(documents, []int{3, 1}, nil); !ok || !slices.Equal([]int{cols[0].Leaf().ID, cols[1].Leaf().ID}, []int{3, 1}) {
		t.Errorf("plain columns: %v", cols)
	}
}
