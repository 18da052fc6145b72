package plan

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/predicate"
)

// A granule's answer must agree with its rows, whatever part of its statistics is stated.
func TestRandomGranulesAgreeWithTheirRows(t *testing.T) {
	s := seed(t)
	for _, typ := range primitives {
		none, out, every, whole := 0, 0, 0, 0
		for n := range uint64(10) {
			r := rand.New(rand.NewPCG(s, n<<8|uint64(typ.Kind)))
			w := newWorld(r, typ, topLevel, 20)
			for range 40 {
				l := w.leaf()
				judge := NewJudge(l)
				require.NotNil(t, judge)
				for _, cells := range w.files {
					g := w.granule(cells)
					a := judge.Over(g)
					pass, fail := 0, 0
					for _, c := range cells {
						o := oracle(l, c)
						pass, fail = pass+count(o.pass), fail+count(o.fail)
					}
					if a == Out && pass > 0 || a == Whole && fail > 0 {
						t.Fatalf("%s granule %+v is %q, but %d rows can pass and %d can fail: op %d negated %v dialect %d values %v, rows %v",
							typ, *g, a, pass, fail, l.Op, l.Negated, l.Dialect, l.Values, cells)
					}
					none, out = none+count(pass == 0), out+count(pass == 0 && a == Out)
					every, whole = every+count(pass > 0 && fail == 0), whole+count(pass > 0 && a == Whole)
				}
			}
		}
		require.Greater(t, out, none*30/100, "%s", typ)
		require.Greater(t, whole, every*15/100, "%s", typ)
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// granule states the rows' statistics, each with some chance.
func (w *world) granule(cells []cell) *Granule {
	g := &Granule{Rows: int64(len(cells))}
	var lo, hi *column.Value
	for i := range cells {
		switch v := &cells[i].v; {
		case cells[i].null:
			g.Nulls++
		case isNaN(*v):
			g.NaNs++
		default:
			if lo == nil || order(*v, *lo, true) < 0 {
				lo = v
			}
			if hi == nil || order(*v, *hi, true) > 0 {
				hi = v
			}
		}
	}
	g.Min, g.Max = lo, hi
	g.Nulls, g.NaNs = w.maybe(g.Nulls), w.maybe(g.NaNs)
	if w.r.IntN(8) == 0 {
		g.Min = nil
	}
	if w.r.IntN(8) == 0 {
		g.Max = nil
	}
	return g
}

func TestGranulesDoNotSpeakAboutLists(t *testing.T) {
	w := newWorld(rand.New(rand.NewPCG(1, 1)), column.Of(column.Int), inList, 1)
	require.Nil(t, NewJudge(w.leaf()))
}

func TestUnknownComparisonPassesNothing(t *testing.T) {
	l := &predicate.Leaf{Column: predicate.Column{Path: path(column.Of(column.Int))}, Op: predicate.In, Unknown: true}
	require.Equal(t, Out, NewJudge(l).Over(&Granule{Rows: 3, Nulls: facts.Unknown, NaNs: facts.Unknown}))
}

// One row of a repeated column holds many values: only Contains asks of any of them, and it asks nothing of others.
func TestRepeatedColumnsAreForContains(t *testing.T) {
	w := newWorld(rand.New(rand.NewPCG(1, 1)), column.Of(column.Int), inList, 0)
	one := serial(integer(1))
	s := snapshot(w.path, nil, file(2).counts(2, 0).bounds(one, one))
	requireAnswers(t, s, ask1(w.path, predicate.Contains, integer(2)), Out)
	requireAnswers(t, s, ask1(w.path, predicate.Contains, integer(1)), Maybe)
	requireAnswers(t, s, negated(ask1(w.path, predicate.Contains, integer(2))), Maybe)
	requireAnswers(t, s, ask1(w.path, predicate.Equal, integer(2)), Maybe)
	requireAnswers(t, s, ask1(w.path, predicate.IsNull), Maybe)
	p := path(column.Of(column.Int))
	s = snapshot(p, nil, file(2).counts(2, 0).bounds(one, one))
	requireAnswers(t, s, ask1(p, predicate.Contains, integer(2)), Maybe)
	list := column.Path{w.path[0]}
	s.Files.Columns[aroundID] = s.Files.Columns[columnID]
	requireAnswers(t, s, ask1(list, predicate.IsNull), Maybe)
}
