package ngram

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

func like(pattern string) *predicate.Leaf {
	l := it.Test(str, predicate.Like)
	l.Pattern = it.Pattern(pattern, 0)
	return l
}

func ilike(pattern string) *predicate.Leaf {
	l := it.Test(str, predicate.ILike)
	l.Pattern = it.AnyCase(pattern, 0)
	return l
}

func match(regex string) *predicate.Leaf {
	l := it.Test(str, predicate.Match)
	l.Regex = it.Regex(regex, false)
	return l
}

// TestU14UnderscoreIsAWildcard: a row that differs where the pattern has _ is not lost.
func TestU14UnderscoreIsAWildcard(t *testing.T) {
	s := it.Open(t, Kind{}, it.Of(str, "foo_bar", "fooXbar", "foo-bar", "foobar", "xfoo_bar", "foo", "bar", nil))
	s.Keeps(like("foo_bar"), 0, 1, 2, 3, 4)
	s.Keeps(like("%foo_bar"), 0, 1, 2, 3, 4)
	s.Keeps(like("foo\\_bar")) // without ESCAPE the backslash is a letter
}

// TestU16LikeWithoutWildcards is an equality, which the index answers.
func TestU16LikeWithoutWildcards(t *testing.T) {
	s := it.Open(t, Kind{}, it.Of(str, "xxx", "yyy", "xxxy", nil))
	leaf := predicate.Of(*like("xxx")).Leaf
	if leaf.Op != predicate.Equal {
		t.Errorf("LIKE 'xxx' is %s", leaf)
	}
	s.Keeps(leaf, 0, 2)
	s.Keeps(like("xxx"), 0, 2)
	if got := (Kind{}).Says([]column.Path{it.Path(str)}, leaf); got != index.Superset {
		t.Errorf("says %s", got)
	}
}

// TestU69EveryLanguage: a piece in a text finds it, wherever it stands and whatever the script.
func TestU69EveryLanguage(t *testing.T) {
	for _, text := range []string{"die Straße ist naß", "東京都に行きました", "программа упала", "μια λέξη", "프로그램 오류", "خطأ في البرنامج", "a plain error"} {
		s := it.Open(t, Kind{}, it.Of(str, strings.Repeat("padding ", 400)+text+" end", "another row"))
		for _, word := range strings.Fields(text) {
			if len(word) >= 3 {
				s.Keeps(like("%"+word+"%"), 0)
				s.Keeps(ilike("%"+strings.ToUpper(strings.ReplaceAll(word, "ß", "\u1E9E"))+"%"), 0)
			}
		}
	}
}

func TestPatterns(t *testing.T) {
	s := it.Open(t, Kind{}, it.Of(str, "connection refused", "Connection Reset", "timeout", "\xff京", "\uFFFD京", "東京", "", nil))
	s.Keeps(like("%refused"), 0)
	s.Keeps(like("conn%"), 0, 1)
	s.Keeps(like("%re%"), 0, 1, 2, 3, 4, 5, 6, 7) // too short to say anything
	s.Keeps(like("%con%set%"), 1)
	s.Keeps(ilike("%RESET"), 1)
	s.Keeps(match("ref(used|resh)"), 0)
	s.Keeps(match("(?i)CONNECTION re(set|fused)"), 0, 1)
	s.Keeps(match("time-?out"), 2)
	s.Keeps(match("^time.*t$"), 2)
	s.Keeps(match("[東西]京"), 5)
	s.Keeps(match("[\\x{FFFD}西]京"), 3, 4, 5) // a byte that is no UTF-8 is read as U+FFFD
	s.Keeps(match("\\x{FFFD}"), 0, 1, 2, 3, 4, 5, 6, 7)
	s.Keeps(match("(abc|xyz)+"))
	s.Keeps(match("nection re{1,1000}"), 0, 1)
	s.Keeps(match(""), 0, 1, 2, 3, 4, 5, 6, 7)
	s.Finds(it.Test(str, predicate.IsNull), 7)
	s.Finds(it.Not(it.Test(str, predicate.IsNull)), 0, 1, 2, 3, 4, 5, 6)
}

func TestWhatCannotBeIndexed(t *testing.T) {
	for _, c := range []struct {
		path   column.Path
		params index.Params
		class  fault.Class
	}{
		{it.Path(column.Of(column.Long)), nil, fault.Unsupported},
		{it.ListPath(str), nil, fault.Unsupported},
		{it.Path(str), index.Params{"n": "4"}, fault.Invalid},
	} {
		if err := (Kind{}).Check([]column.Path{c.path}, c.params); !fault.Is(err, c.class) {
			t.Errorf("%s %v: %v", c.path.Name(), c.params, err)
		}
	}
}

// TestLongExpressions: a query stays small however long the expression is.
func TestLongExpressions(t *testing.T) {
	for _, re := range []string{
		strings.Repeat("abcdefgh", 400), strings.Repeat("(foo|bar)", 200), strings.Repeat("(a|b|c|d)", 300), "(" + strings.Repeat("some|", 500) + "more)",
		strings.Repeat("(?:", 300) + "deep" + strings.Repeat(")?x", 300), strings.Repeat("[a-p]", 500),
	} {
		it.Allocates(t, 64, func() {
			q, n := queryOf(match(re)), 0
			q.eachGram(func(uint32) { n++ })
			if n > maxAllGrams {
				t.Errorf("%.20s…: %d trigrams", re, n)
			}
		})
	}
}

// TestOtherUnicode: an artifact whose texts were folded by other tables says nothing of texts, and is not merged.
func TestOtherUnicode(t *testing.T) {
	s := it.Open(t, Kind{}, it.Of(str, "abc", "xyz", nil))
	root := bytes.Replace(s.Root, []byte(unicode.Version), []byte(strings.Repeat("9", len(unicode.Version))), 1)
	reader, err := Kind{}.Open(root, 3)
	if err != nil {
		t.Fatal(err)
	}
	if v := reader.Probe(like("%abc%")).Verdict(); !v.May.Full() {
		t.Errorf("says %s", v.May)
	}
	if v, _, err := it.Run(reader.Probe(it.Test(str, predicate.IsNull)), s.Body); err != nil || !v.Exact() {
		t.Errorf("nulls: %s, %v", v.May, err)
	}
	m, err := index.Concatenated([]uint32{3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	source := index.Source{Root: root, Rows: 3, Body: bytes.NewReader(s.Body), Size: int64(len(s.Body))}
	spec := index.Spec{Columns: []column.Path{it.Path(str)}, Rows: 3}
	if _, reason, err := (Kind{}).Merge(spec, []index.Source{source}, m, index.Budget{}, &it.Body{}); reason == "" || err != nil {
		t.Errorf("merged: %q, %v", reason, err)
	}
}

// TestUnreadBlocksSayNothing: a question of more dictionary blocks than one probe reads loses no row.
func TestUnreadBlocksSayNothing(t *testing.T) {
	r := it.Rand(t)
	c := it.Column{Type: str}
	for range 300 {
		text := make([]byte, 30)
		for i := range text {
			text[i] = 'a' + byte(r.IntN(26))
		}
		v := column.StringValue(string(text))
		c.Values = append(c.Values, &v)
	}
	s := it.Open(t, Kind{sizes{block: 1, inside: 1}}, c)
	leaf, want := it.Test(str, predicate.In), []uint32{}
	for i := range uint32(10) {
		leaf.Values, want = append(leaf.Values, *c.Values[i*29]), append(want, i*29)
	}
	v, cost, err := it.Run(s.Reader.Probe(leaf), s.Body)
	if err != nil || cost.Units > maxBlocks+maxAllGrams || !rowset.AndNot(rowset.FromRows(300, want), v.May).Empty() {
		t.Errorf("%+v: may %s, want %v, %v", cost, v.May, want, err)
	}
}

// TestO44LongTokens: what stands at the end of a token of seventy thousand letters is found, and so is the token.
func TestO44LongTokens(t *testing.T) {
	token := strings.Repeat("x", 70_000) + "needle"
	s := it.Open(t, Kind{}, it.Of(str, "a short row", token, "before "+token+" after", strings.Repeat("y", 70_000)))
	s.Keeps(like("%needle%"), 1, 2)
	s.Keeps(like("%xxxxxxxxneedle%"), 1, 2)
	s.Keeps(like("%xneedle"), 1, 2)
}

// TestO45TextWithoutSpaces: a piece of a text that has no spaces is found; one that is shorter than a gram may be there.
func TestO45TextWithoutSpaces(t *testing.T) {
	s := it.Open(t, Kind{}, it.Of(str, "把機器推論洗成權威事實", "something else"))
	for _, word := range []string{"權威事實", "推論", "實"} {
		if v := s.Ask(like("%" + word + "%")); !v.May.Contains(0) {
			t.Errorf("%s is not found", word)
		}
	}
}

// TestO46BackslashIsLiteral: without an escape character a backslash is a letter, for the index as for the row matcher.
func TestO46BackslashIsLiteral(t *testing.T) {
	s := it.Open(t, Kind{}, it.Of(str, `foo a\b bar`, "foo ab bar", `foo a\\b bar`))
	if v := s.Ask(like(`% a\b %`)); !v.May.Contains(0) {
		t.Error("the row with a backslash is lost")
	}
}
