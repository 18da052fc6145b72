package ngram

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

var (
	str        = column.Of(column.String)
	manyBlocks = Kind{sizes{block: 20, inside: 40, copied: 1 << 20}} // dictionaries of some trigrams fill several blocks
)

func TestLaw(t *testing.T) {
	for _, k := range []Kind{{}, manyBlocks} {
		law := it.Law{Kind: k, MaxWaves: 2, Columns: 60, Types: []column.Type{str}}
		law.Run(t)
	}
}

// pieces is what texts and patterns of the tests are made of: letters with three cases, letters whose cases differ in length, bytes
// that are no UTF-8, characters of one trigram.
var pieces = []string{
	"a", "B", "ab", "error", "ERROR", "k", "K", "\u212A", "s", "S", "\u017F", "\u0130", "i", "I", "\u0131", "ß", "\u1E9E", "ss", "ς", "σ", "Σ",
	"ǆ", "ǅ", "Ǆ", "é", "É", "東京", "東", "京都", "\U0001F427", "\U00010400", "\U00010428", " ", "%", "_", "\\", "'", "x", "longer piece",
}

var broken = []string{"\xff", "\xe2\x84", "\xaa", "\xed\xa0\x80", "\uFFFD"}

func drawText(r *rand.Rand, from []string, most int) string {
	var b strings.Builder
	for range r.IntN(most + 1) {
		b.WriteString(from[r.IntN(len(from))])
	}
	return b.String()
}

func drawTexts(r *rand.Rand, n int) it.Column {
	c := it.Column{Type: str, Values: make([]*column.Value, n)}
	from := append(append([]string{}, pieces...), broken...)
	for i := range c.Values {
		if r.IntN(8) > 0 {
			v := column.StringValue(drawText(r, from, 6))
			c.Values[i] = &v
		}
	}
	return c
}

// drawLeaf asks for a piece of some text, or for anything.
func drawLeaf(r *rand.Rand, c *it.Column) *predicate.Leaf {
	piece := drawText(r, pieces, 4)
	if v := c.Values[r.IntN(len(c.Values))]; v != nil && r.IntN(4) > 0 {
		points := []rune(strings.ToValidUTF8(v.S, "_"))
		from := r.IntN(len(points) + 1)
		piece = string(points[from : from+r.IntN(len(points)-from+1)])
	}
	l := &predicate.Leaf{Column: predicate.Column{Path: it.Path(str)}, Dialect: predicate.Dialect(r.IntN(2)), Negated: r.IntN(6) == 0}
	wild := []string{"", "%", "_", "%_"}
	pattern := wild[r.IntN(4)] + piece + wild[r.IntN(4)]
	switch r.IntN(7) {
	case 0:
		l.Op, l.Values = predicate.Equal, []column.Value{column.StringValue(piece)}
	case 1:
		l.Op = predicate.In
		for range r.IntN(4) {
			l.Values = append(l.Values, column.StringValue(drawText(r, pieces, 3)))
		}
		l.Values = append(l.Values, column.StringValue(piece))
	case 2:
		l.Op, l.Values = predicate.StartsWith, []column.Value{column.StringValue(piece)}
	case 3:
		l.Op, l.Pattern = predicate.Like, it.Pattern(pattern, []rune{0, '\\'}[boolean(utf8.ValidString(pattern) && !strings.HasSuffix(pattern, "\\") && r.IntN(2) == 0)])
	case 4:
		l.Op, l.Pattern = predicate.ILike, it.AnyCase(pattern, 0)
	default:
		l.Op, l.Regex = predicate.Match, it.Regex(drawRegex(r, piece, 3), r.IntN(2) == 0)
	}
	return l
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// drawRegex makes a regular expression around a piece of text.
func drawRegex(r *rand.Rand, piece string, depth int) string {
	quoted := quoteMeta(piece)
	if depth == 0 || r.IntN(3) == 0 {
		return quoted
	}
	sub := func() string {
		if r.IntN(2) == 0 {
			return drawRegex(r, piece, depth-1)
		}
		return drawRegex(r, drawText(r, append(pieces, "\uFFFD"), 2), depth-1)
	}
	switch r.IntN(12) {
	case 0:
		return "(" + sub() + "|" + sub() + ")"
	case 1:
		return "(?:" + sub() + ")" + []string{"*", "+", "?", "{2}", "{1,3}", "{0}", "*?"}[r.IntN(7)]
	case 2:
		return sub() + "." + sub()
	case 3:
		return sub() + ".*" + sub()
	case 4:
		return "[a-z]" + sub()
	case 5:
		return "[" + strings.ReplaceAll(quoted, "-", "\\-") + "q]" + sub()
	case 6:
		return "^" + sub()
	case 7:
		return sub() + "$"
	case 8:
		return "(?i:" + sub() + ")"
	case 9:
		return sub() + "\\b" + sub()
	case 10:
		return "[^a]" + sub()
	default:
		return sub() + sub()
	}
}

func quoteMeta(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(`\.+*?()|[]{}^$`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// TestNoMatchIsRuledOut compares with brute force where case folding, broken UTF-8 and expressions are at their worst, and wants most
// questions about a piece of a text to rule rows out.
func TestNoMatchIsRuledOut(t *testing.T) {
	r := it.Rand(t)
	asked, narrowed, hits := 0, 0, 0
	for range it.Rounds(150) {
		c := drawTexts(r, 1+r.IntN(150))
		spec := it.SpecOf(r, str, len(c.Values))
		k := []Kind{{}, manyBlocks}[r.IntN(2)]
		a := it.Build(t, r, k, &c, spec, index.Budget{Memory: int64(1 + r.IntN(2)<<20), TempDir: t.TempDir()})
		reader, err := k.Open(a.Root, spec.Rows)
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			leaf := drawLeaf(r, &c)
			v, cost, err := it.Run(reader.Probe(leaf), a.Body)
			if err != nil || cost.Waves > 2 {
				t.Fatalf("%d waves, %v\n%s", cost.Waves, err, it.Describe(leaf))
			}
			if bad := it.Wrong(leaf, &c, v); bad != "" {
				t.Fatalf("%s: %q\n%s", bad, textsOf(&c), it.Describe(leaf))
			}
			if k.Says([]column.Path{it.Path(str)}, leaf) == index.Nothing {
				if !v.May.Full() {
					t.Fatalf("says nothing and rules rows out\n%s", it.Describe(leaf))
				}
				continue
			}
			asked++
			if !v.May.Full() {
				narrowed++
			}
			hits += int(v.May.Count())
		}
	}
	if narrowed*10 < asked*8 {
		t.Errorf("only %d of %d questions ruled rows out", narrowed, asked)
	}
	t.Logf("%d questions, %d narrowed, %d rows left", asked, narrowed, hits)
}

func textsOf(c *it.Column) []string {
	var out []string
	for _, v := range c.Values {
		if v == nil {
			out = append(out, "<null>")
		} else {
			out = append(out, v.S)
		}
	}
	return out
}

// TestManyRows spills, drops what is too frequent, and fills packed chunks, bitmap chunks and several chunks.
func TestManyRows(t *testing.T) {
	r := it.Rand(t)
	n := 150_000
	c := it.Column{Type: str, Values: make([]*column.Value, n)}
	for i := range c.Values {
		s := "common "
		if i%7 == 0 {
			s += "seventh"
		}
		if i%9 == 3 {
			s += "ninth"
		}
		if i > n/2 && i < n/2+20_000 {
			s += "clustered"
		}
		if i%50_000 == 77 {
			s += "rare"
		}
		v := column.StringValue(s)
		if c.Values[i] = &v; i%1000 == 5 {
			c.Values[i] = nil
		}
	}
	spec := it.SpecOf(r, str, 1)
	spec.Rows = uint32(n)
	small := it.Build(t, r, Kind{}, &c, spec, index.Budget{Memory: 1 << 16, TempDir: t.TempDir()})
	large := it.Build(t, r, Kind{}, &c, spec, index.Budget{})
	if string(small.Root) != string(large.Root) || string(small.Body) != string(large.Body) {
		t.Error("the budget changes the bytes")
	}
	reader, err := Kind{}.Open(large.Root, spec.Rows)
	if err != nil {
		t.Fatal(err)
	}
	for pattern, most := range map[string]int{"%seventh%": 25_000, "%ninth%": 20_000, "%cluster%": 20_001, "%rare": 3, "%common%": n, "%nowhere%": 0, "%rare%cluster%": 3} {
		leaf := it.Test(str, predicate.Like)
		leaf.Pattern = it.Pattern(pattern, 0)
		v, cost, err := it.Run(reader.Probe(leaf), large.Body)
		if err != nil {
			t.Fatal(err)
		}
		if bad := it.Wrong(leaf, &c, v); bad != "" {
			t.Errorf("%s: %s", pattern, bad)
		}
		if int(v.May.Count()) > most {
			t.Errorf("%s: %d rows, want at most %d", pattern, v.May.Count(), most)
		}
		t.Logf("%s: %d rows, %+v", pattern, v.May.Count(), cost)
	}
	t.Logf("%d bytes of root, %d of body", len(large.Root), len(large.Body))
}

func TestPostingsReadBack(t *testing.T) {
	r := it.Rand(t)
	for range it.Rounds(300) {
		size := uint32(1 + r.IntN(300_000))
		var want []uint32
		var p posting
		for row, step := uint32(0), 1+r.IntN(2000); row < size; row += 1 + uint32(r.IntN(step)) {
			want = append(want, row)
			p.add(row)
			if r.IntN(5000) == 0 {
				row += 100_000
			}
		}
		got, err := readPosting(p.finish(), size, uint32(len(want)))
		if err != nil || !got.Equal(rowset.FromRows(size, want)) {
			t.Fatalf("%d of %d rows: %v", len(want), size, err)
		}
	}
}

func TestForgedRowsDoNotSpread(t *testing.T) {
	for _, copied := range []int{1, 1 << 20} {
		law := it.MergeLaw{Kind: Kind{sizes{block: 400, inside: 400, copied: copied}}, Rounds: 40}
		law.ForgedMerge(t, str)
	}
}
