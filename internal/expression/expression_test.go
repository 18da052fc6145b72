package expression

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/skomerdb/skomer/internal/analysis"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

var (
	text    = column.Path{{ID: 3, Name: "payload", Type: column.Of(column.String)}}
	mapType = column.Type{Kind: column.Map, Fields: []column.Field{
		{ID: 11, Name: "key", Type: column.Of(column.String)}, {ID: 12, Name: "value", Type: column.Of(column.Long)},
	}}
	attrs = column.Path{{ID: 10, Name: "attrs", Type: mapType}}
)

func must(e Expr, err error) Expr {
	if err != nil {
		panic(err)
	}
	return e
}

func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("replay: SKOMER_SEED=%d go test -run '^%s$'", seed, t.Name())
	return rand.New(rand.NewPCG(seed, 1))
}

func TestJSONPaths(t *testing.T) {
	const null = "\x00null"
	for _, c := range [][3]string{
		{`{"user":{"id":42}}`, "$.user.id", "42"},
		{`{"user":{"id":4.20e1}}`, "$.user.id", "4.20e1"},
		{`{"user":{"id":"42"}}`, "$.user.id", "42"},
		{` { "user" : { "id" : [1, {"a" : null}] } } `, "$.user.id", `[1, {"a" : null}]`},
		{`{"a":null}`, "$.a", null},
		{`{"a":null}`, "$.a.b", null},
		{`{"a":1}`, "$.b", null},
		{`{"a":1}`, "$.a.b", null},
		{`{"a":1,"a":2}`, "$.a", "2"},
		{`{"a":{"b":1},"a":{"c":2}}`, "$.a.b", null},
		{`{"a":[10,20,30]}`, "$.a[2]", "30"},
		{`{"a":[10,20,30]}`, "$.a[3]", null},
		{`[{"x":true}]`, "$[0].x", "true"},
		{`{"a b":{"c.d":"\u00e9\n"}}`, "$['a b']['c.d']", "é\n"},
		{`{"it's":1}`, "$['it''s']", "1"},
		{`{"k":"\ud800"}`, "$.k", "\uFFFD"},
		{`{"\u0061":"x"}`, "$.a", "x"},
		{`{"a":"x,y]}\"{["}`, "$.a", `x,y]}"{[`},
		{`{"a":1`, "$.a", null},
		{`{'a':1}`, "$.a", null},
		{`{"a":1} x`, "$.a", null},
		{``, "$", null},
		{`null`, "$", null},
		{`"text"`, "$", "text"},
		{`{}`, "$", "{}"},
		{`{"":{"":7}}`, "$['']['']", "7"},
	} {
		b := column.NewBuilder(column.Of(column.String))
		b.Append(column.StringValue(c[0]))
		b.AppendNull()
		path, err := must(JSONPath(c[1])).Of(text)
		if err != nil {
			t.Fatal(err)
		}
		v, err := Apply(path, b.Finish())
		if err != nil {
			t.Fatal(err)
		}
		got := null
		if x, ok := v.Value(0); ok {
			got = x.S
		}
		if _, ok := v.Value(1); ok || got != c[2] {
			t.Errorf("%s -> %s: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

func TestPathsHaveOneForm(t *testing.T) {
	for path, want := range map[string]string{
		"$": "$", "$.a.b": "$.a.b", "$['a']['b c']": "$.a.b c", "$['a.b'][0]": "$['a.b'][0]", "$['it''s']": "$['it''s']", "$.größe[12]": "$.größe[12]", "$['*']": "$['*']",
	} {
		e, err := JSONPath(path)
		if err != nil || e.String() != "json "+want {
			t.Errorf("%s: %s, %v", path, e, err)
			continue
		}
		if again, err := Parse(e.String()); err != nil || again.String() != e.String() {
			t.Errorf("%s: %s, %v", e, again, err)
		}
	}
	for _, bad := range []string{
		"", "a", "$a", "$.", "$..a", "$.*", "$[", "$[-1]", "$[+1]", "$[a]", "$['a'", "$['a]", "$.a[1", "$" + strings.Repeat(".a", maxSteps+1),
		"$." + strings.Repeat("x", MaxText), "$.\xff",
		"$." + strings.Repeat("'", MaxText-2), // the one form of which doubles the quotes
	} {
		if _, err := JSONPath(bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestWhatIsWrittenIsRead: whatever path is taken, its one form is read back as the same path.
func TestWhatIsWrittenIsRead(t *testing.T) {
	r := seeded(t)
	taken := 0
	for range 50_000 {
		path := "$"
		for range r.IntN(5) {
			path += []string{".", "['", "[", "']", "]", "''", "'", "*", "a", " ", "0", "12", "é"}[r.IntN(13)]
		}
		if r.IntN(20) == 0 {
			path = "$." + strings.Repeat([]string{"'", "x'", "é"}[r.IntN(3)], r.IntN(MaxText))
		}
		e, err := JSONPath(path)
		if err != nil {
			continue
		}
		taken++
		if again, err := Parse(e.String()); err != nil || again.String() != e.String() || len(again.path) != len(e.path) {
			t.Fatalf("%s: %s, %v", path, e, err)
		}
	}
	if taken < 2000 {
		t.Errorf("only %d paths were taken", taken)
	}
}

// drawJSON writes a random value, with spaces, escapes and repeated names.
func drawJSON(r *rand.Rand, depth int) string {
	gap := []string{"", "", " ", "\n\t"}[r.IntN(4)]
	if depth == 0 || r.IntN(3) == 0 {
		return gap + []string{"1", "-2.50", "1e9", "true", "false", "null", `"a"`, `"b\"c"`, `"\u00e9"`, `"日本"`, `""`, `"}"`, `"[,"`}[r.IntN(13)] + gap
	}
	var parts []string
	object := r.IntN(2) == 0
	for range r.IntN(4) {
		x := drawJSON(r, depth-1)
		if object {
			x = gap + []string{`"a"`, `"b"`, `"\u0061"`, `"c d"`}[r.IntN(4)] + gap + ":" + x
		}
		parts = append(parts, x)
	}
	if object {
		return gap + "{" + gap + strings.Join(parts, ",") + "}" + gap
	}
	return gap + "[" + gap + strings.Join(parts, ",") + "]" + gap
}

// oracle walks what encoding/json made of the text.
func oracle(doc string, path []step) (string, bool) {
	if !json.Valid([]byte(doc)) {
		return "", false
	}
	d := json.NewDecoder(strings.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "", false
	}
	for _, s := range path {
		switch x := v.(type) {
		case map[string]any:
			next, ok := x[s.name]
			if !ok || s.array {
				return "", false
			}
			v = next
		case []any:
			if !s.array || s.at >= len(x) {
				return "", false
			}
			v = x[s.at]
		default:
			return "", false
		}
	}
	switch x := v.(type) {
	case nil:
		return "", false
	case string:
		return x, true
	case json.Number:
		return x.String(), true
	case bool:
		return strconv.FormatBool(x), true
	default:
		b, _ := json.Marshal(x)
		return string(b), true
	}
}

func TestJSONEqualsTheLibrary(t *testing.T) {
	r := seeded(t)
	found := 0
	for range 20_000 {
		doc := drawJSON(r, 4)
		if r.IntN(10) == 0 && len(doc) > 0 {
			doc = doc[:r.IntN(len(doc))]
		}
		var path []step
		for range r.IntN(4) {
			path = append(path, []step{{name: "a"}, {name: "b"}, {name: "c d"}, {array: true, at: r.IntN(3)}}[r.IntN(4)])
		}
		got, ok := find([]byte(doc), path)
		want, wanted := oracle(doc, path)
		if wanted && strings.ContainsAny(want[:min(1, len(want))], "{[") {
			var a, b any // containers are compared by what they mean
			if json.Unmarshal([]byte(got), &a) == nil && json.Unmarshal([]byte(want), &b) == nil && fmt.Sprint(a) == fmt.Sprint(b) {
				got = want
			}
		}
		if ok != wanted || got != want {
			t.Fatalf("%s at %s: %q %v, want %q %v", doc, formatPath(path), got, ok, want, wanted)
		}
		if ok {
			found++
		}
	}
	if found < 2000 {
		t.Errorf("only %d paths led anywhere", found)
	}
}

func TestTokensAndDictionaries(t *testing.T) {
	path, err := Tokens().Of(text)
	if err != nil {
		t.Fatal(err)
	}
	b := column.NewBuilder(column.Of(column.String))
	for _, s := range []string{"Disk FULL", "", "disk"} {
		b.Append(column.StringValue(s))
	}
	b.AppendNull()
	dict := b.Finish()
	for _, base := range []*column.Vector{
		dict, {Type: dict.Type, Len: 4, Dict: dict, Idx: []uint32{0, 1, 2, 3}}, {Type: dict.Type, Len: 4, Valid: []uint64{0b0111}, Dict: dict, Idx: []uint32{0, 1, 2, 2}},
	} {
		v, err := Apply(path, base)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range v.Len {
			lists, at := v, i
			if v.Dict != nil {
				lists, at = v.Dict, int(v.Idx[i])
			}
			if v.Null(i) {
				got = append(got, "null")
				continue
			}
			var words []string
			for k := lists.Off[at]; k < lists.Off[at+1]; k++ {
				words = append(words, string(lists.Kids[0].Raw(int(k))))
			}
			got = append(got, strings.Join(words, "+"))
		}
		if fmt.Sprint(got) != "[disk+full  disk null]" {
			t.Errorf("%q", got)
		}
	}
}

func TestMapValues(t *testing.T) {
	keys, values := column.NewBuilder(column.Of(column.String)), column.NewBuilder(column.Of(column.Long))
	for i, k := range []string{"a", "b", "a", "c", "a"} {
		keys.Append(column.StringValue(k))
		if i == 4 {
			values.AppendNull()
		} else {
			values.Append(column.IntValue(column.Long, int64(i)))
		}
	}
	maps := &column.Vector{Type: mapType, Len: 4, Valid: []uint64{0b1011}, Off: []uint32{0, 3, 4, 4, 5}, Kids: []*column.Vector{keys.Finish(), values.Finish()}}
	path, err := must(MapValue("a")).Of(attrs)
	if err != nil {
		t.Fatal(err)
	}
	v, err := Apply(path, maps)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []any{int64(2), nil, nil, nil} {
		x, ok := v.Value(i)
		if ok != (want != nil) || ok && x.Int64() != want {
			t.Errorf("row %d: %v %v, want %v", i, x, ok, want)
		}
	}
}

func TestIdentities(t *testing.T) {
	other := column.Path{{ID: 4, Name: "payload", Type: column.Of(column.String)}}
	seen := map[int]string{}
	for _, e := range []Expr{Tokens(), must(JSONPath("$.a")), must(JSONPath("$.b")), must(JSONPath("$"))} {
		for _, base := range []column.Path{text, other} {
			path, err := e.Of(base)
			if err != nil {
				t.Fatal(err)
			}
			if id := path.Leaf().ID; id >= 0 || seen[id] != "" {
				t.Errorf("%s has id %d, as %q", path.Name(), id, seen[id])
			} else {
				seen[id] = path.Name()
			}
			if path.Base().Leaf().ID != base.Leaf().ID || !path.Derived() {
				t.Errorf("%s has the base %v", path.Name(), path.Base())
			}
		}
	}
	if same, _ := must(JSONPath("$['a']")).Of(text); seen[same.Leaf().ID] == "" {
		t.Error("two ways to write a path are two columns")
	}
}

// TestU70AnalyzerVersionIsBound: the name and version of the analyzer is part of the expression's text and identity, and words cut in another way
// are refused.
func TestU70AnalyzerVersionIsBound(t *testing.T) {
	if got := Tokens().String(); got != "tokens "+analysis.Standard {
		t.Errorf("tokens is %q", got)
	}
	if _, err := Parse("tokens standard.0-unicode1.0"); !fault.Is(err, fault.Unsupported) {
		t.Errorf("another analyzer: %v", err)
	}
	path, err := Tokens().Of(text)
	if err != nil {
		t.Fatal(err)
	}
	if identity(3, "tokens standard.0") == path.Leaf().ID || identity(3, Tokens().String()) != path.Leaf().ID {
		t.Error("the identity does not depend on the analyzer")
	}
}

func TestWhatAnExpressionIsFor(t *testing.T) {
	long := column.Path{{ID: 5, Name: "n", Type: column.Of(column.Long)}}
	list := column.Path{{ID: 6, Name: "l", Type: column.Type{Kind: column.List}}, {ID: 7, Name: "element", Type: column.Of(column.String)}}
	inner, _ := must(JSONPath("$.a")).Of(text)
	for _, c := range []struct {
		e    Expr
		base column.Path
	}{{Tokens(), long}, {must(JSONPath("$.a")), long}, {must(MapValue("k")), text}, {Tokens(), list}, {Tokens(), inner}, {Tokens(), attrs}} {
		if _, err := c.e.Of(c.base); err == nil {
			t.Errorf("%s of %s was made", c.e, c.base.Name())
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"\u00e9"}]}`), "$.a[1].b")
	f.Add([]byte(`{"a":1,"a":{}}`), "$['a']")
	f.Fuzz(func(t *testing.T, doc []byte, path string) {
		e, err := JSONPath(path)
		if err != nil {
			return
		}
		got, ok := find(bytes.Clone(doc), e.path)
		if again, err := Parse(e.String()); err != nil || again.String() != e.String() {
			t.Errorf("%s: %s, %v", e, again, err)
		}
		if want, wanted := oracle(string(doc), e.path); ok != wanted {
			t.Errorf("%q at %s: %q %v, want %q %v", doc, path, got, ok, want, wanted)
		}
	})
}
