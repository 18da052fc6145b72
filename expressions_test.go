package skomer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

var vocabulary = []string{"disk", "Full", "ERROR", "timeout", "Straße", "京都", "東京", "ошибка", "can't", "10.0.0.1", "user_id", "\u212Aelvin", "refused"}

// drawDocument makes a row whose values come from small pools, and half of whose JSON is odd.
func drawDocument(rng *rand.Rand, id int64, pool int) tabletest.Document {
	word := func() string { return vocabulary[rng.IntN(len(vocabulary))] }
	text := func(s string) *string { return &s }
	d := tabletest.Document{ID: id}
	if rng.IntN(6) > 0 {
		var words []string
		for range rng.IntN(6) {
			words = append(words, word())
		}
		d.Message = text(strings.Join(words, []string{" ", ": ", "", "-"}[rng.IntN(4)]))
	}
	user := fmt.Sprint("u", rng.IntN(pool))
	switch rng.IntN(9) {
	case 0:
	case 1:
		d.Payload = text(fmt.Sprintf(`{"user":{"id":%d}, "user" : {"id":"%s"}}`, rng.IntN(9), user))
	case 2:
		d.Payload = text(fmt.Sprintf(`{"user":{"id":%d,"tags":["%s",null]}}`, rng.IntN(pool), word()))
	case 3:
		d.Payload = text([]string{`{"user":`, "null", `{"user":null}`, `[]`, `{"user":{"id":null}}`, ""}[rng.IntN(6)])
	default:
		d.Payload = text(fmt.Sprintf(`{"n":1,"user":{"id":"%s","tags":["x","%s"]}}`, user, word()))
	}
	if rng.IntN(5) > 0 {
		d.Attrs = map[string]*string{"always": text("y")}
		for _, k := range []string{"k", "host", "it's"} {
			switch rng.IntN(4) {
			case 0:
				d.Attrs[k] = nil
			case 1, 2:
				d.Attrs[k] = text(fmt.Sprint("v", rng.IntN(pool)))
			}
		}
	}
	if rng.IntN(5) > 0 {
		for range 1 + rng.IntN(3) {
			item := &tabletest.Item{SKU: text(fmt.Sprint("s", rng.IntN(pool)))}
			if rng.IntN(6) == 0 {
				item.SKU = nil
			}
			if rng.IntN(3) > 0 {
				q := int32(rng.IntN(5))
				item.Qty = &q
			}
			if rng.IntN(8) == 0 {
				item = nil
			}
			d.Items = append(d.Items, item)
		}
	}
	if rng.IntN(4) > 0 {
		n := int32(rng.IntN(4))
		d.Level = &n
	}
	return d
}

// truth3 is SQL's truth.
type truth3 int

const (
	no truth3 = iota - 1
	null
	yes
)

func truthOf(b bool) truth3 {
	if b {
		return yes
	}
	return no
}

// question is a filter and its meaning, written without the engine's code.
type question struct {
	sql  string
	eval func(*tabletest.Document) truth3
}

func (q question) not() question {
	return question{"NOT (" + q.sql + ")", func(d *tabletest.Document) truth3 { return -q.eval(d) }}
}

func joinQuestions(word string, pick func(a, b truth3) truth3, a, b question) question {
	return question{"(" + a.sql + " " + word + " " + b.sql + ")", func(d *tabletest.Document) truth3 { return pick(a.eval(d), b.eval(d)) }}
}

func sqlText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func of(v *string, test func(string) bool) truth3 {
	if v == nil {
		return null
	}
	return truthOf(test(*v))
}

// userID is payload -> '$.user.id' by way of encoding/json.
func userID(d *tabletest.Document, key string) *string {
	if d.Payload == nil {
		return nil
	}
	var doc struct{ User map[string]json.RawMessage }
	if err := json.Unmarshal([]byte(*d.Payload), &doc); err != nil || doc.User == nil {
		return nil
	}
	raw, ok := doc.User[key]
	switch {
	case !ok || string(raw) == "null":
		return nil
	case raw[0] == '"':
		var s string
		_ = json.Unmarshal(raw, &s)
		return &s
	default:
		s := string(raw)
		return &s
	}
}

func anyOf[T any](list []T, missing bool, test func(T) truth3) truth3 {
	if missing {
		return null
	}
	out := no
	for _, x := range list {
		out = max(out, test(x))
	}
	return out
}

// hasWord looks for a word by the rules of the standard analyzer that the vocabulary needs.
func hasWord(text, word string) bool {
	cut := regexp.MustCompile(`[\p{L}\p{N}_']+`)
	for _, w := range cut.FindAllString(text, -1) {
		for _, piece := range regexp.MustCompile(`\p{Han}+|[^\p{Han}]+`).FindAllString(w, -1) {
			if strings.EqualFold(piece, word) || regexp.MustCompile(`\p{Han}`).MatchString(word) && strings.Contains(piece, word) {
				return true
			}
		}
	}
	return false
}

func drawQuestion(rng *rand.Rand, pool, depth int) question {
	if depth > 0 && rng.IntN(3) > 0 {
		a, b := drawQuestion(rng, pool, depth-1), drawQuestion(rng, pool, depth-1)
		switch rng.IntN(4) {
		case 0:
			return a.not()
		case 1:
			return joinQuestions("OR", func(x, y truth3) truth3 { return max(x, y) }, a, b)
		default:
			return joinQuestions("AND", func(x, y truth3) truth3 { return min(x, y) }, a, b)
		}
	}
	user, value, sku := fmt.Sprint("u", rng.IntN(pool+1)), fmt.Sprint("v", rng.IntN(pool+1)), fmt.Sprint("s", rng.IntN(pool+1))
	key := []string{"k", "host", "it's", "none"}[rng.IntN(4)]
	word := []string{"disk", "full", "Error", "TIMEOUT", "京都", "ошибка", "kelvin", "can't", "nothing", "refused"}[rng.IntN(10)]
	level := int32(rng.IntN(4))
	type D = *tabletest.Document
	return []question{
		{"payload -> '$.user.id' = " + sqlText(user), func(d D) truth3 { return of(userID(d, "id"), func(s string) bool { return s == user }) }},
		{"payload -> '$.user.id' IN ('1', '2', " + sqlText(user) + ")", func(d D) truth3 {
			return of(userID(d, "id"), func(s string) bool { return s == "1" || s == "2" || s == user })
		}},
		{"payload -> '$.user.id' >= " + sqlText(user), func(d D) truth3 { return of(userID(d, "id"), func(s string) bool { return s >= user }) }},
		{"payload -> '$.user.id' ILIKE 'U%'", func(d D) truth3 {
			return of(userID(d, "id"), func(s string) bool { return strings.HasPrefix(strings.ToLower(s), "u") })
		}},
		{"payload -> '$.user.id' IS NULL", func(d D) truth3 { return truthOf(userID(d, "id") == nil) }},
		{"payload -> '$.user.tags' LIKE '%\"x\"%'", func(d D) truth3 {
			return of(userID(d, "tags"), func(s string) bool { return strings.Contains(s, `"x"`) })
		}},
		{"attrs[" + sqlText(key) + "] = " + sqlText(value), func(d D) truth3 { return of(d.Attrs[key], func(s string) bool { return s == value }) }},
		{"attrs[" + sqlText(key) + "] IS NOT NULL", func(d D) truth3 { return truthOf(d.Attrs[key] != nil) }},
		{"contains(map_values(attrs), " + sqlText(value) + ")", func(d D) truth3 {
			var values []*string
			for _, v := range d.Attrs {
				values = append(values, v)
			}
			return anyOf(values, d.Attrs == nil, func(v *string) truth3 { return of(v, func(s string) bool { return s == value }) })
		}},
		{sqlText(key) + " = ANY(map_keys(attrs))", func(d D) truth3 {
			_, ok := d.Attrs[key]
			if d.Attrs == nil {
				return null
			}
			return truthOf(ok)
		}},
		{"contains(items.sku, " + sqlText(sku) + ")", func(d D) truth3 {
			return anyOf(d.Items, d.Items == nil, func(x *tabletest.Item) truth3 {
				if x == nil {
					return null
				}
				return of(x.SKU, func(s string) bool { return s == sku })
			})
		}},
		{fmt.Sprintf("contains(items.element.qty, %d)", level), func(d D) truth3 {
			return anyOf(d.Items, d.Items == nil, func(x *tabletest.Item) truth3 {
				if x == nil || x.Qty == nil {
					return null
				}
				return truthOf(*x.Qty == level)
			})
		}},
		{"contains_token(message, " + sqlText(word) + ")", func(d D) truth3 { return of(d.Message, func(s string) bool { return hasWord(s, word) }) }},
		{"message ILIKE " + sqlText("%"+word+"%"), func(d D) truth3 {
			return of(d.Message, func(s string) bool { return strings.Contains(fold(s), fold(word)) })
		}},
		{"message LIKE '%" + "isk%'", func(d D) truth3 { return of(d.Message, func(s string) bool { return strings.Contains(s, "isk") }) }},
		{"message ~ '(dis|tim)[a-z]+'", func(d D) truth3 { return of(d.Message, regexp.MustCompile(`(dis|tim)[a-z]+`).MatchString) }},
		{fmt.Sprintf("level = %d", level), func(d D) truth3 {
			if d.Level == nil {
				return null
			}
			return truthOf(*d.Level == level)
		}},
		{fmt.Sprintf("level = %d AND message > %s", level, sqlText(word)), func(d D) truth3 {
			if d.Level == nil {
				return min(null, of(d.Message, func(s string) bool { return s > word }))
			}
			return min(truthOf(*d.Level == level), of(d.Message, func(s string) bool { return s > word }))
		}},
	}[rng.IntN(18)]
}

func fold(s string) string { return strings.ReplaceAll(strings.ToLower(s), "\u212A", "k") }

var expressionIndexes = []string{
	"bloom(payload -> '$.user.id')", "ordered(payload -> '$.user.id')", "valueset(payload -> '$.user.id')", "bitmap(payload->'$.user.id')", "zonemap(payload -> '$.user.id')",
	"ngram(payload -> '$.user.tags')", "ngram(payload -> '$.user.id')", "bloom(attrs['k'])", "bitmap(attrs['it''s'])", "ordered(attrs['host'])", "bloom(map_values(attrs))", "valueset(map_keys(attrs))",
	"bloom(items.sku)", "bitmap(items.element.sku)", "valueset(items.qty)", "bloom(tokens(message))", "bitmap(tokens(message))", "ngram(message)", "ordered(level, message)",
	"bloom(payload)", "bloom(message)", "ordered(message)",
}

// TestExpressions: random documents, filters on what expressions make of them, and indexes on the same: every answer is the oracle's, with
// indexes and without.
func TestExpressions(t *testing.T) {
	rng, _ := seeded(t)
	used := map[string]int{}
	asked, some := 0, 0
	for round := range rounds(t, 5) {
		ctx, dir := context.Background(), t.TempDir()
		w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: tabletest.DocumentSchema()})
		if err != nil {
			t.Fatal(err)
		}
		data := filepath.Join(dir, "table", "data")
		if err := os.MkdirAll(data, 0o755); err != nil {
			t.Fatal(err)
		}
		pool := []int{3, 40}[round%2]
		rows := map[string][]tabletest.Document{}
		add := func(n int) {
			var files []lakewrite.File
			for range n {
				path := filepath.Join(data, fmt.Sprintf("%08x.parquet", rng.Uint32()))
				var docs []tabletest.Document
				group := []int{9, 1000}[rng.IntN(2)]
				n := rng.IntN(120)
				for i := range n {
					d := drawDocument(rng, int64(i), pool)
					if d.Attrs == nil && ((i+1)%group == 0 || i+1 == n) { // see WriteDocuments
						d.Attrs = map[string]*string{"none": nil}
					}
					docs = append(docs, d)
				}
				if err := tabletest.WriteDocuments(path, docs, group); err != nil {
					t.Fatal(err)
				}
				info, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				rows[path] = docs
				files = append(files, lakewrite.File{Path: path, Format: facts.Parquet, Records: int64(len(docs)), Size: info.Size()})
			}
			if _, err := w.Append(ctx, files...); err != nil {
				t.Fatal(err)
			}
		}
		add(3)
		table := open(t, w.Location(), filepath.Join(dir, "overlays"))
		if err := table.Mount(ctx); err != nil {
			t.Fatal(err)
		}
		for _, expr := range expressionIndexes {
			if round == 0 || rng.IntN(3) == 0 {
				x, err := table.AddIndex(ctx, expr)
				if err != nil {
					t.Fatalf("%s: %v", expr, err)
				}
				if again, err := table.AddIndex(ctx, x.Expr); err != nil || again.ID != x.ID {
					t.Fatalf("%s is listed as %s, which is another index: %v", expr, x.Expr, err)
				}
			}
		}
		for step := range 2 {
			if report, err := table.Sync(ctx, skomer.SyncOptions{}); err != nil || len(report.Skipped) > 0 {
				t.Fatal(report, err)
			}
			for range 60 {
				q := drawQuestion(rng, pool, rng.IntN(3))
				want := map[string][]int{}
				for path, docs := range rows {
					for i := range docs {
						if q.eval(&docs[i]) == yes {
							want[path] = append(want[path], i)
						}
					}
				}
				for _, noIndex := range []bool{false, true} {
					got, stats := positions(t, table, skomer.Query{Where: q.sql, NoIndex: noIndex})
					if describe(got) != describe(want) {
						t.Fatalf("round %d step %d, NoIndex %v\n%s\n got %s\nwant %s\n%s", round, step, noIndex, q.sql, describe(got), describe(want), different(rows, got, want))
					}
					if len(stats.Rejected) > 0 {
						t.Fatalf("artifacts were rejected: %v", stats.Rejected)
					}
					for _, id := range stats.IndexesUsed {
						used[id]++
					}
				}
				if asked++; len(want) > 0 {
					some++
				}
			}
			add(1)
		}
	}
	t.Logf("%d filters, %d with rows, %d indexes spoke", asked, some, len(used))
	if len(used) < 15 {
		t.Errorf("only %d indexes ever spoke", len(used))
	}
}

// different tells a row in which two answers differ.
func different(rows map[string][]tabletest.Document, got, want map[string][]int) string {
	for path, docs := range rows {
		for i := range docs {
			if a, b := slices.Contains(got[path], i), slices.Contains(want[path], i); a != b {
				line, _ := json.Marshal(docs[i])
				return fmt.Sprintf("%s row %d: in the answer %v, should be %v: %s", filepath.Base(path), i, a, b, line)
			}
		}
	}
	return ""
}
