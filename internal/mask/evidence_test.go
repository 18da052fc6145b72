package mask

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
)

// witness answers every question alike and remembers it.
type witness struct {
	asked []string
	files [][]int
	say   Where
}

func (x *witness) Where(_ context.Context, _ *facts.Snapshot, t *predicate.Tree, files []int) ([]Where, error) {
	x.asked, x.files = append(x.asked, t.String()), append(x.files, files)
	out := make([]Where, len(files))
	for i := range out {
		out[i] = x.say
	}
	return out, nil
}

// asked asks for masks anew with a witness.
func (f *fixture) asked(say Where, from int64) ([]*Mask, *witness) {
	f.Helper()
	x := &witness{say: say}
	f.masker.Evidence, f.masker.EvidenceFrom, f.masker.Cache = x, from, NewCache(1<<20)
	masks, _, err := f.masks(Options{})
	require.NoError(f, err)
	return masks, x
}

func (f *fixture) tag(file int) store.Tag {
	opened, errs := parquetio.Open(context.Background(), f.masker.Store, f.masker.Footers, []string{f.s.Files.Path[file]}, make([]store.Tag, 1))
	require.NoError(f, errs[0])
	return opened[0].Tag
}

// TestEvidenceNarrowsKeys: rows that evidence rules out are not read, for the bytes that it is about and no others.
func TestEvidenceNarrowsKeys(t *testing.T) {
	s := schema(field(1, "id", column.Long))
	f := newFixture(t, s)
	f.sorted(1, s, 300)
	f.keys(2, s, 5, 250)
	only := rowset.FromRanges(300, []rowset.Range{{Start: 200, End: 300}})
	for _, c := range []struct {
		say  Where
		want []uint32
	}{
		{Where{only, f.tag(0)}, []uint32{250}}, // a lie, to see that it is believed
		{Where{only, "another"}, []uint32{5, 250}},
		{Where{only, ""}, []uint32{5, 250}},
		{Where{rowset.None(299), f.tag(0)}, []uint32{5, 250}},
		{Where{nil, f.tag(0)}, []uint32{5, 250}},
		{Where{rowset.None(300), f.tag(0)}, nil},
	} {
		masks, x := f.asked(c.say, 0)
		require.Equal(t, c.want, masks[0].Set(300).Rows(nil), "%+v", c.say)
		require.Equal(t, []string{"id IN (5, 250)"}, x.asked)
		require.Equal(t, [][]int{{0}}, x.files)
	}
	_, x := f.asked(Where{}, 1<<20)
	require.Empty(t, x.asked, "reading so little costs less than asking")
}

// TestEvidenceIsAskedAboutEveryKey: nulls and NaNs by tests of their own, zeros of either sign as one, several delete files together.
func TestEvidenceIsAskedAboutEveryKey(t *testing.T) {
	s := schema(field(1, "x", column.Double), field(2, "s", column.String))
	f := newFixture(t, s)
	f.rowsOf(1, s, 1.5, "a", nil, nil)
	f.rowsOf(1, s, 1.5, "b", math.NaN(), nil)
	f.keys(2, s, 1.5, "a", nil, "a", math.NaN(), nil)
	_, x := f.asked(Where{}, 0)
	require.Equal(t, []string{"(x = 1.5 OR x IS NULL OR x IS NAN) AND (s = 'a' OR s IS NULL)"}, x.asked)
	require.Equal(t, [][]int{{0, 1}}, x.files)
	f.keys(2, s, math.Copysign(0, -1), "b")
	_, x = f.asked(Where{}, 0)
	require.Len(t, x.asked, 1)
	require.Contains(t, x.asked[0], "x = 0")
	var many []any
	for i := range maxProbed + 1 {
		many = append(many, float64(i), "a")
	}
	f.s.Deletes = facts.Deletes{}
	f.keys(2, s, many...)
	_, x = f.asked(Where{}, 0)
	require.Equal(t, []string{"s = 'a'"}, x.asked, "too many values of x to ask about")
	f.s.Deletes = facts.Deletes{}
	f.keys(2, schema(s.Fields[0]), 1.5)
	f.s.Schema = schema(s.Fields[1]) // x was dropped
	f.s.Schemas[7] = s
	f.renew()
	masks, x := f.asked(Where{}, 0)
	require.Empty(t, x.asked)
	require.Equal(t, []uint32{0}, masks[0].Set(2).Rows(nil))
}
