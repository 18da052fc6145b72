package sqltext_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/predicate/sqltext"
)

// schema has every primitive kind, nested columns and awkward names.
func schema() *column.Schema {
	id := 0
	field := func(name string, t column.Type) column.Field {
		id++
		return column.Field{ID: id, Name: name, Type: t}
	}
	list := func(name string, t column.Type) column.Field {
		e := field("element", t)
		return field(name, column.Type{Kind: column.List, Fields: []column.Field{e}})
	}
	of := column.Of
	address := column.Type{Kind: column.Struct, Fields: []column.Field{field("city", of(column.String)), field("geo.hash", of(column.Long))}}
	point := column.Type{Kind: column.Struct, Fields: []column.Field{field("x", of(column.Int))}}
	return &column.Schema{Fields: []column.Field{
		field("active", of(column.Bool)), field("price", of(column.Double)), field("score", of(column.Float)), field("qty", of(column.Int)),
		field("user_id", of(column.Long)), field("amount", column.DecimalOf(9, 2)), field("day", of(column.Date)), field("at", of(column.Time)),
		field("ts", of(column.Timestamp)), field("tz", of(column.TimestampTZ)), field("ns", of(column.TimestampNS)), field("nz", of(column.TimestampNZ)),
		field("name", of(column.String)), field("id", of(column.UUID)), field("fix", column.FixedOf(3)), field("raw", of(column.Binary)),
		field("address", address), list("tags", of(column.String)), list("nums", of(column.Long)), list("points", point),
		field("attrs", column.Type{Kind: column.Map, Fields: []column.Field{field("key", of(column.String)), field("value", of(column.Int))}}),
		field("a.b", of(column.Int)), field("select * from", of(column.Int)), field("and", of(column.Int)), field("date", of(column.Date)),
		field(`quo"te`, of(column.Int)), field("größe", of(column.Int)), field("Dup", of(column.Int)), field("DUP", of(column.Int)),
		field("geom", of(column.Geometry)), field("v", of(column.Variant)), field("nothing", of(column.Unknown)), field("contains", of(column.Int)),
	}}
}

func TestForms(t *testing.T) {
	s := schema()
	for text, want := range map[string]string{
		"qty == 1":                        "qty = 1",
		"1 < qty and QTY>=2":              "qty > 1 AND qty >= 2",
		"(qty) = (1) or ((qty < (3)))":    "qty = 1 OR qty < 3",
		"active":                          "active = TRUE",
		"not active and (active)":         "active = FALSE AND active = TRUE",
		"active <> false":                 "active = TRUE",
		"active = 'TRUE'":                 "active = TRUE",
		"qty between - 5 and +5":          "qty >= -5 AND qty <= 5",
		"qty not between 1 and 2":         "qty < 1 OR qty > 2",
		"NOT NOT NOT qty = 1":             "qty <> 1",
		"qty not in (3,\n2 , 1)":          "qty NOT IN (1, 2, 3)",
		"price = 1.5e-3 or price = .5":    "price = 0.0015 OR price = 0.5",
		"name = 'it''s' -- x":             "",
		"name = 'it''s'":                  "name = 'it''s'",
		"name like 'a%' escape ''":        "name LIKE 'a%'",
		"name not like '%a_'":             "name NOT LIKE '%a_'",
		`name like 'a\%\_\\%' escape '\'`: `name LIKE 'a\%\_\\%' ESCAPE '\'`,
		"name ilike 'A%' or name not ilike '_b!%' escape '!'": "name ILIKE 'A%' OR name NOT ILIKE '_b!%' ESCAPE '!'",
		"name ilike 'Abc'":                                      "name ILIKE 'Abc'",
		`name ~ '^a.*\d' and name!~'x'`:                         `name ~ '^a.*\d' AND name !~ 'x'`,
		"name ~* 'it''s' or not name ~* 'x'":                    "name ~* 'it''s' OR name !~* 'x'",
		"name !~* 'x' or name ~ 'x' and name ~* 'x'":            "name !~* 'x' OR name ~ 'x' AND name ~* 'x'",
		"name->'$[''a b''][0].c'='x'":                           "name -> '$.a b[0].c' = 'x'",
		"'x' <> (name) -> '$.a'":                                "name -> '$.a' <> 'x'",
		"name -> '$.a' is null and not name -> '$.a' like 'b%'": "name -> '$.a' IS NULL AND name -> '$.a' NOT LIKE 'b%'",
		"name -> '$.a' in ('1', '2') or name -> '$.a' ~ 'x'":    "name -> '$.a' IN ('1', '2') OR name -> '$.a' ~ 'x'",
		"address.city -> '$' = '1'":                             "address.city -> '$' = '1'",
		"attrs['k'] between 1 and 5":                            "attrs['k'] >= 1 AND attrs['k'] <= 5",
		"attrs['it''s'] is not null":                            "attrs['it''s'] IS NOT NULL",
		"contains(map_values(attrs), 1)":                        "contains(attrs.value, 1)",
		"'x' = any(map_keys(attrs))":                            "contains(attrs.key, 'x')",
		"contains(tokens(name), 'disk')":                        "contains(tokens(name), 'disk')",
		"contains_token(name, 'Disk full')":                     "contains(tokens(name), 'disk') AND contains(tokens(name), 'full')",
		"not contains_token(name, 'Disk full, disk')":           "NOT contains(tokens(name), 'disk') OR NOT contains(tokens(name), 'full')",
		"contains_token(name, '東京都')":                           "contains(tokens(name), '東京') AND contains(tokens(name), '京都')",
		"contains_token(name, null)":                            "contains(tokens(name), NULL)",
		"contains(points.x, 1)":                                 "contains(points.element.x, 1)",
		"contains(Points.ELEMENT.x, 1)":                         "contains(points.element.x, 1)",
		"name ~ null":                                           "name = NULL",
		"address.city = 'x'":                                    "address.city = 'x'",
		`ADDRESS."geo.hash" = 1`:                                `address."geo.hash" = 1`,
		"address.geo.hash = 1":                                  `address."geo.hash" = 1`,
		"`address` . `city` is null":                            "address.city IS NULL",
		"address is not null":                                   "address IS NOT NULL",
		"a.b = 1":                                               `"a.b" = 1`,
		`"a.b" = 1`:                                             `"a.b" = 1`,
		`"select * from" = 1`:                                   `"select * from" = 1`,
		`"and" = 1 and "AND" = 1`:                               `"and" = 1`,
		`"quo""te" = 1`:                                         `"quo""te" = 1`,
		"größe = 1":                                             `"größe" = 1`,
		"Dup = 1 and DUP = 2":                                   "Dup = 1 AND DUP = 2",
		"date = date '2026-01-02'":                              "date = DATE '2026-01-02'",
		"date < DATE\n'2026-01-02'":                             "date < DATE '2026-01-02'",
		"contains(tags, 'x')":                                   "contains(tags, 'x')",
		"contains = 1":                                          "contains = 1",
		"'x' = any(tags)":                                       "contains(tags, 'x')",
		"not contains ( tags.element , 'x')":                    "NOT contains(tags, 'x')",
		"contains(attrs.key, 'x')":                              "contains(attrs.key, 'x')",
		"contains(attrs.value, 3.0)":                            "contains(attrs.value, 3)",
		"contains(tags, null)":                                  "contains(tags, NULL)",
		"price is nan or price is not nan":                      "price IS NAN OR price IS NOT NAN",
		"raw = X'00fF' and fix = x'010203'":                     "raw = X'00ff' AND fix = X'010203'",
		"amount = '12.30' or amount = 12.3":                     "amount = 12.30",
		"qty = '5'":                                             "qty = 5",
		"nothing = 1 or nothing is null":                        "nothing = 0.5 OR nothing IS NULL",
		"geom is null and v is not null":                        "geom IS NULL AND v IS NOT NULL",
		"qty = 1 and 1 = 1":                                     "qty = 1",
		"qty = 1 and 2 <= 1":                                    "FALSE",
		"qty = 1 or 'a' < 'b'":                                  "TRUE",
		"ts > '2026-01-02T03:04:05.5'":                          "ts > TIMESTAMP '2026-01-02 03:04:05.5'",
		"ts > timestamp '2026-01-02'":                           "ts > TIMESTAMP '2026-01-02 00:00:00'",
		"tz = '2026-01-02 03:04:05'":                            "tz = TIMESTAMP '2026-01-02 03:04:05+00:00'",
		"tz = timestamptz '2026-01-02 03:04:05.1 -01:30'":       "tz = TIMESTAMP '2026-01-02 04:34:05.1+00:00'",
		"ns = '2026-01-02 03:04:05.123456789'":                  "ns = TIMESTAMP '2026-01-02 03:04:05.123456789'",
		"ns < '9999-01-01' and ns > '0001-01-01'":               "ns <= TIMESTAMP '2262-04-11 23:47:16.854775807' AND ns >= TIMESTAMP '1677-09-21 00:12:43.145224192'",
		"ts <= '2026-01-02 00:00:00.0000019'":                   "ts <= TIMESTAMP '2026-01-02 00:00:00.000001'",
		"at < '03:04'":                                          "at < TIME '03:04:00'",
		"at >= time '23:59:59.9999999'":                         "at > TIME '23:59:59.999999'",
		"day in ('2026-01-02', '2026-01-02 12:00')":             "day = DATE '2026-01-02'",
	} {
		tree, err := sqltext.Parse(text, s)
		if want == "" {
			require.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, tree.String(), text)
		again, err := sqltext.Parse(want, s)
		require.NoError(t, err, want)
		require.Equal(t, want, again.String(), text)
	}
}

func TestErrorsNamePlaceAndFix(t *testing.T) {
	s := schema()
	for text, want := range map[string]struct{ place, reason, fix string }{
		"":                                      {"filter", "empty", "leave the filter out"},
		" \n ":                                  {"filter", "empty", "leave the filter out"},
		"qty = 1 AND\n  pricee > 2":             {"line 2, column 3", "pricee: no such column", "did you mean price?"},
		"adress.city = 'x'":                     {"line 1, column 1", "no such column", "did you mean address.city?"},
		"zzzzzzzz = 1":                          {"line 1, column 1", "no such column", "the columns are active, price"},
		"dup = 1":                               {"line 1, column 1", "fits several columns: Dup, DUP", "exactly"},
		"qty in ()":                             {"line 1, column 9", "unexpected `)`", "at least one value"},
		"qty in (1, name)":                      {"line 1, column 12", "unexpected `name)`", ""},
		"qty = ":                                {"line 1, column 7", "ends too early", ""},
		"qty = 1 AND":                           {"line 1, column 12", "ends too early", ""},
		"qty between 1 or 2":                    {"line 1, column 15", "unexpected `or`", ""},
		"qty not = 2":                           {"line 1, column 9", "unexpected `=`", ""},
		"contains(tags)":                        {"line 1, column 1", "takes 2 arguments, got 1", ""},
		"tokens(name, 'x') = 'y'":               {"line 1, column 1", "takes 1 argument, got 2", ""},
		"tokens(name) = 'x'":                    {"line 1, column 16", "a list has no order", "contains(tokens(name)"},
		"tokens(name)":                          {"line 1, column 1", "not a condition", ""},
		"contains_token(qty, 'x')":              {"line 1, column 1", "tokens(…) is for strings", ""},
		"contains_token(name, ' . ')":           {"line 1, column 22", "holds no word", "LIKE"},
		"contains_token(name, 5)":               {"line 1, column 22", "text in single quotes", ""},
		"contains_token(name, 'x') = true":      {"line 1, column 1", "is a condition, not a column", ""},
		"name -> 'a' = '1'":                     {"line 1, column 6", "must start with $", "$.user.id"},
		"qty -> '$.a' = '1'":                    {"line 1, column 5", "is for strings", ""},
		"name -> '$.a' = 1":                     {"line 1, column 17", "which 1 cannot be", "single quotes"},
		"name -> '$.a' -> '$.b' = '1'":          {"line 1, column 15", "needs one value a row", ""},
		"name['k'] = '1'":                       {"line 1, column 5", "is for maps", ""},
		"tags['k'] = '1'":                       {"line 1, column 5", "is for maps", ""},
		"attrs[k] = '1'":                        {"line 1, column 7", "unexpected", ""},
		"attrs[1] = '1'":                        {"line 1, column 7", "unexpected `1]`", "maps with keys that are no strings"},
		"map_values(tags) is null":              {"line 1, column 1", "is for maps", ""},
		"name = name -> '$.a'":                  {"line 1, column 8", "two columns", ""},
		"(qty = 1":                              {"line 1, column 9", "ends too early", ""},
		"qty = 1)":                              {"line 1, column 8", "unexpected `)`", ""},
		"größe = 'x":                            {"line 1, column 9", "never closed", ""},
		`"qty = 1`:                              {"line 1, column 1", "never closed", ""},
		"qty = 'abc'":                           {"line 1, column 7", "the column is a int, which 'abc' cannot be", "a number"},
		"qty in (1, 'x', 2)":                    {"line 1, column 12", "'x' cannot be", "a number"},
		"name = 5":                              {"line 1, column 8", "which 5 cannot be", "single quotes"},
		"name like 5":                           {"line 1, column 11", "pattern of LIKE", ""},
		"qty like '1%'":                         {"line 1, column 10", "the column is a int", ""},
		"name like 'a!' escape '!'":             {"line 1, column 11", "ends with the escape", "double"},
		"name like 'a' escape 'ab'":             {"line 1, column 22", "one character", ""},
		"qty":                                   {"line 1, column 1", "not a condition", "IS NOT NULL"},
		"5":                                     {"line 1, column 1", "literal alone", "compare"},
		"qty = price":                           {"line 1, column 7", "two columns", "quotes"},
		"qty is nan":                            {"line 1, column 1", "never NaN", ""},
		"address = 1":                           {"line 1, column 11", "a struct has no order", "address.city"},
		"address = NULL":                        {"line 1, column 11", "a struct has no order", "address.city"},
		"attrs = 1":                             {"line 1, column 9", "a map has no order", "contains(attrs.key"},
		"tags = 'x'":                            {"line 1, column 8", "a list has no order", "contains(tags, value)"},
		"tags.element = 'x'":                    {"line 1, column 16", "many values a row", "contains(tags, value)"},
		"tags.element is null":                  {"line 1, column 1", "many values a row", "contains(tags, value)"},
		"contains(attrs, 1)":                    {"line 1, column 10", "keys and values", "attrs.key"},
		"contains(name, 'x')":                   {"line 1, column 16", "contains is for lists", ""},
		"contains(points, 1)":                   {"line 1, column 18", "plain values", ""},
		"contains(nums, 1.5)":                   {"line 1, column 16", "1.5 cannot be", "the list can hold"},
		"1 < any(nums)":                         {"line 1, column 3", "only = can stand before ANY", ""},
		"lower(name) = 'x'":                     {"line 1, column 1", "no function lower", "contains"},
		"name ~ 5":                              {"line 1, column 8", "regular expression is a text", ""},
		"'x' ~ name":                            {"line 1, column 1", "a column must stand here", ""},
		"qty ~ 'x'":                             {"line 1, column 7", "the column is a int", ""},
		"name ~ '(a'":                           {"line 1, column 8", "missing closing )", "RE2"},
		`name ~ '(a)\1'`:                        {"line 1, column 8", "invalid escape sequence", "no backreferences"},
		"name ~ 'a{1001}'":                      {"line 1, column 8", "invalid repeat count", ""},
		"name ~ '((a{100}){100}){100}'":         {"line 1, column 8", "invalid repeat count", ""},
		"'x' ~ any(tags)":                       {"line 1, column 5", "only = can stand before ANY", ""},
		"name ? 'x'":                            {"line 1, column 6", "unexpected character '?'", ""},
		"ts = '2026-02-30'":                     {"line 1, column 6", "cannot be", "'2026-01-02'"},
		"ts = '2026-01-02T00:00:00Z'":           {"line 1, column 6", "cannot be", "no zone"},
		"day = '2026-01-02T00:00:00Z'":          {"line 1, column 7", "cannot be", "no zone"},
		"ts = 1234":                             {"line 1, column 6", "1234 cannot be", "'2026-01-02'"},
		"ts = time '01:00'":                     {"line 1, column 6", "TIME '01:00' cannot be", ""},
		"ts = date '2026-01-02 03:00'":          {"line 1, column 6", "cannot be", ""},
		"tz = '2026-01-02 03:00 Europe/Berlin'": {"line 1, column 6", "cannot be", "+02:00"},
		"at = '24:00'":                          {"line 1, column 6", "cannot be", "03:04:05"},
		"id = 'f79c3e09'":                       {"line 1, column 6", "cannot be", "a UUID like"},
		"fix = X'00'":                           {"line 1, column 7", "cannot be", "width"},
		"raw = 'ab'":                            {"line 1, column 7", "cannot be", "X'00ff'"},
		"raw = X'0g'":                           {"line 1, column 7", "hexadecimal", ""},
		"active = 2":                            {"line 1, column 10", "cannot be", "TRUE or FALSE"},
		"active < maybe":                        {"line 1, column 10", "two columns", ""},
		"geom = X'00'":                          {"line 1, column 8", "a geometry has no order", ""},
		"1 = 'x'":                               {"line 1, column 1", "only integers or texts", ""},
		"qty = 1 ; drop":                        {"line 1, column 9", "unexpected character ';'", ""},
		"qty = 1 qty = 2":                       {"line 1, column 9", "unexpected `qty`", "AND"},
		"qty = \xff":                            {"line 1, column 7", "not valid UTF-8", ""},
		"\"\" = 1":                              {"line 1, column 1", "name is empty", ""},
		"qty = " + strings.Repeat("1", 1001):    {"line 1, column 7", "cannot be", "1000 digits"},
	} {
		_, err := sqltext.Parse(text, s)
		require.Error(t, err, text)
		require.Equal(t, fault.Invalid, fault.ClassOf(err), "%s: %v", text, err)
		require.Contains(t, err.Error(), want.place, text)
		require.Contains(t, err.Error(), want.reason, text)
		require.Contains(t, fault.FixOf(err), want.fix, text)
	}
}

func TestLimits(t *testing.T) {
	s := schema()
	nested := func(n int) string { return strings.Repeat("(", n) + "qty = 1" + strings.Repeat(")", n) }
	tree, err := sqltext.Parse(nested(sqltext.MaxDepth), s)
	require.NoError(t, err)
	require.Equal(t, "qty = 1", tree.String())
	for text, want := range map[string]string{
		nested(sqltext.MaxDepth + 1):                      "nested more than 256 deep",
		strings.Repeat("(", 100_000):                      "nested more than 256 deep",
		strings.Repeat("qty IN (", 100_000):               "nested more than 256 deep",
		strings.Repeat("NOT ", 100_000):                   "ends too early",
		"qty = 1 " + strings.Repeat("OR ", 100_000):       "unexpected `OR`",
		strings.Repeat("a.", 100_000) + "b = 1":           "no such column",
		"name LIKE '" + strings.Repeat("%", 20_000) + "'": "more than the limit of 16384",
		strings.Repeat("x", sqltext.MaxText+1):            "more than the limit",
	} {
		_, err := sqltext.Parse(text, s)
		require.ErrorContains(t, err, want)
		require.Equal(t, fault.Invalid, fault.ClassOf(err))
		require.Less(t, len(err.Error()), 300_000)
	}
	tree, err = sqltext.Parse(strings.Repeat("NOT ", 100_001)+"qty = 1", s)
	require.NoError(t, err)
	require.Equal(t, "qty <> 1", tree.String())
	tree, err = sqltext.Parse(strings.Repeat("NOT (", 255)+strings.Repeat("qty = 1 AND price < 3 OR ", 4000)+"active"+strings.Repeat(" OR active)", 255), s)
	require.NoError(t, err)
	again, err := sqltext.Parse(tree.String(), s)
	require.NoError(t, err)
	require.Equal(t, tree.String(), again.String())
	var many strings.Builder
	for i := range predicate.MaxLeaves + 1 {
		fmt.Fprintf(&many, "qty = %d OR ", i)
	}
	_, err = sqltext.Parse(many.String()+"qty = 0", s)
	require.ErrorContains(t, err, "more than 10000 conditions")
}

func TestLongInList(t *testing.T) {
	var text strings.Builder
	text.WriteString("user_id IN (0")
	n := 1
	for ; text.Len() < sqltext.MaxText-100; n++ {
		fmt.Fprintf(&text, ",%d", n)
	}
	text.WriteString(")")
	tree, err := sqltext.Parse(text.String(), schema())
	require.NoError(t, err)
	require.Len(t, tree.Leaf.Values, n)
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"qty = 1", "qty IN (1, 2.5, NULL)", "NOT (price < 3 OR name LIKE 'a\\_%' ESCAPE '\\')", "contains(tags, 'x')", "3 = ANY(nums)",
		`address."geo.hash" BETWEEN -1 AND 1e30`, "ts > '2026-01-02T03:04:05.1234567'", "tz = TIMESTAMP '2026-01-02 03:04:05+02:00'",
		"at <= TIME '01:02:03'", "day NOT IN (DATE '2026-01-02', '0001-01-01 00:00:01')", "id = X'00'", "raw >= X'00ff' AND active",
		"score = 'NaN' OR score < 'Infinity' OR score > 1e39", "NOT active AND amount < 12.345", "nothing = 1", "`a.b` IS NOT NULL", "name LIKE '%é_'",
		"ns < '2262-04-11 23:47:16.8547758075'", "1 = 1 AND 'a' < 'b'", "((((((", "qty = -", "x'", "'", "\"", "qty = 0x10", "größe <> .5e-3",
	} {
		f.Add(seed)
	}
	s := schema()
	f.Fuzz(func(t *testing.T, text string) {
		tree, err := sqltext.Parse(text, s)
		if err != nil {
			if fault.ClassOf(err) != fault.Invalid {
				t.Fatalf("%q: class %s: %v", text, fault.ClassOf(err), err)
			}
			return
		}
		printed := tree.String()
		if len(printed) > sqltext.MaxText || strings.Count(text, "(") >= sqltext.MaxDepth {
			return // the printed form may be longer, and nested one deeper, than a text may be
		}
		again, err := sqltext.Parse(printed, s)
		if err != nil {
			t.Fatalf("%q printed as %q: %v", text, printed, err)
		}
		if again.String() != printed {
			t.Fatalf("%q printed as %q and then as %q", text, printed, again)
		}
	})
}
