package plan

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/predicate"
)

var primitives = []column.Type{
	column.Of(column.Bool), column.Of(column.Int), column.Of(column.Long), column.Of(column.Float), column.Of(column.Double),
	column.DecimalOf(9, 2), column.DecimalOf(18, 0), column.DecimalOf(38, 10), column.Of(column.Date), column.Of(column.Time),
	column.Of(column.Timestamp), column.Of(column.TimestampTZ), column.Of(column.TimestampNS), column.Of(column.TimestampNZ),
	column.Of(column.String), column.Of(column.UUID), column.FixedOf(5), column.Of(column.Binary), column.Of(column.Unknown),
}

// seed is SKOMER_SEED, or random; it is printed so that a failure can be replayed.
func seed(t *testing.T) uint64 {
	s := rand.Uint64()
	if text := os.Getenv("SKOMER_SEED"); text != "" {
		var err error
		s, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("replay with SKOMER_SEED=%d", s)
	return s
}

// tally counts how much was decided, so that a planner that says maybe to all fails too.
type tally struct {
	files, none, out, every, whole int
	power                          map[string]int // operator, sign and evidence of an answer by one leaf
}

func TestRandomFilesAgreeWithTheirRows(t *testing.T) {
	s := seed(t)
	worlds := 30
	if n, err := strconv.Atoi(os.Getenv("SKOMER_RANDOM_WORLDS")); err == nil {
		worlds = n
	}
	total := tally{power: map[string]int{}}
	for _, typ := range primitives {
		t.Run(typ.String(), func(t *testing.T) {
			own := tally{power: total.power}
			rounds := worlds
			if typ.Kind == column.String { // has the most operators
				rounds *= 4
			}
			for n := range rounds {
				r := rand.New(rand.NewPCG(s, uint64(n)<<8|uint64(typ.Kind)))
				at := shape(n) % shapes
				if typ.Kind == column.Unknown {
					at = topLevel
				}
				w := newWorld(r, typ, at, 25)
				for range 40 {
					w.check(t, w.tree(2), &own)
				}
			}
			t.Logf("%d of %d files without a match ruled out, %d of %d with only matches recognised", own.out, own.none, own.whole, own.every)
			require.Greater(t, own.out, own.none*30/100, "too little is ruled out")
			require.Greater(t, own.whole, own.every*15/100, "too little is recognised as matching whole")
			total.files += own.files
		})
	}
	if !t.Failed() {
		requireEveryPower(t, total.power)
	}
}

// check holds every file's answer against its rows, and the reason against the answer.
func (w *world) check(t *testing.T, tree *predicate.Tree, sum *tally) {
	p := Prune(w.facts, tree)
	for i, rows := range w.files {
		pass, fail := 0, 0
		for _, c := range rows {
			o := holds(tree, c)
			if o.pass {
				pass++
			}
			if o.fail {
				fail++
			}
		}
		a := p.Answers[i]
		if a == Out && pass > 0 || a == Whole && fail > 0 {
			t.Fatalf("file %d is %q, but %d of %d rows can pass and %d can fail\n%s", i, p.Reason(i), pass, len(rows), fail, w.describe(tree, i))
		}
		reason := p.Reason(i)
		if reason.Answer != a || (a != Maybe) != (len(reason.Because) > 0) {
			t.Fatalf("file %d is %q, but its reason is %q\n%s", i, a, reason, w.describe(tree, i))
		}
		sum.add(a, pass, fail, tree, reason)
	}
}

func (s *tally) add(a Answer, pass, fail int, tree *predicate.Tree, why Reason) {
	s.files++
	if pass == 0 {
		s.none++
		if a == Out {
			s.out++
		}
	} else if fail == 0 {
		s.every++
		if a == Whole {
			s.whole++
		}
	}
	if tree.Kind == predicate.Test && len(why.Because) == 1 {
		s.power[power(tree.Leaf.Op, tree.Leaf.Negated, a, why.Because[0].Origin)]++
	}
}

func (w *world) describe(tree *predicate.Tree, i int) string {
	text := fmt.Sprintf("column %s at %d\n", w.t, w.shape)
	tree.Leaves(func(l *predicate.Leaf) {
		text += fmt.Sprintf("leaf op %d negated %v dialect %d values %v pattern %+v\n", l.Op, l.Negated, l.Dialect, l.Values, l.Pattern)
	})
	f, cf := w.facts.Files, w.facts.Files.Columns[columnID]
	text += fmt.Sprintf("rows %v\nrecords %d values %d nulls %d nans %d lower %x upper %x\n",
		w.files[i], f.Records[i], cf.Values[i], cf.Nulls[i], cf.NaNs[i], cf.Lower[i], cf.Upper[i])
	for _, field := range w.facts.Specs[int(f.SpecID[i])].Fields {
		pc := f.Partition[field.ID]
		text += fmt.Sprintf("partition %s: known %v null %v value %v\n", field.Transform, pc.Known[i], pc.Null[i], pc.Value[i])
	}
	return text
}

var opNames = map[predicate.Op]string{
	predicate.IsNull: "IS NULL", predicate.IsNaN: "IS NAN", predicate.Equal: "=", predicate.Less: "<", predicate.LessEqual: "<=",
	predicate.Greater: ">", predicate.GreaterEqual: ">=", predicate.In: "IN", predicate.StartsWith: "STARTS WITH",
	predicate.Like: "LIKE", predicate.Contains: "CONTAINS",
}

func power(op predicate.Op, negated bool, a Answer, from Origin) string {
	sign := ""
	if negated {
		sign = "NOT "
	}
	return fmt.Sprintf("%s%s %s by %d", sign, opNames[op], a, from)
}

// requireEveryPower demands that each entry of the table in docs/planning.md decided some file by itself.
func requireEveryPower(t *testing.T, seen map[string]int) {
	t.Helper()
	for op := predicate.IsNull; op <= predicate.Contains; op++ {
		for _, negated := range []bool{false, true} {
			for _, a := range []Answer{Out, Whole} {
				for _, from := range []Origin{FromCounts, FromBounds, FromPartition} {
					if canSay(op, negated, a, from) {
						require.Positive(t, seen[power(op, negated, a, from)], power(op, negated, a, from))
					}
				}
			}
		}
	}
}

// canSay is the table of docs/planning.md: what one kind of evidence alone can prove of a leaf.
func canSay(op predicate.Op, negated bool, a Answer, from Origin) bool {
	switch {
	case op == predicate.Contains:
		return from == FromBounds && !negated && a == Out
	case op == predicate.IsNull || op == predicate.IsNaN:
		return from != FromBounds
	case from == FromPartition:
		return true
	case from == FromCounts: // all null, all NaN
		return a == Out || negated
	default: // bounds alone never exclude nulls, which pass Iceberg's negations only
		return a == Out || negated
	}
}

// Answers must not depend on where the blocks of a large snapshot end, nor on who judges them.
func TestManyBlocks(t *testing.T) {
	const files = 20*block + 17
	p := path(column.Of(column.Int))
	stated := make([]stated, files)
	for i := range stated {
		x := serial(integer(int64(i)))
		stated[i] = file(1).counts(1, 0).bounds(x, x)
	}
	s := snapshot(p, nil, stated...)
	s.Files.Records[files-1] = 0
	least := ask1(p, predicate.GreaterEqual, integer(5))
	few := or(ask1(p, predicate.Equal, integer(block)), ask1(p, predicate.Equal, integer(files-1)), and(least, ask1(p, predicate.Less, integer(7))))
	for i, a := range Prune(s, few).Answers {
		want := Out
		if i == block || i == 5 || i == 6 {
			want = Whole
		}
		if a != want {
			t.Fatalf("file %d is %q", i, a)
		}
	}
}
