package sketch

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/datasketches-go/theta"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/rowset"
)

// open parses an artifact and its sketches.
func open(t testing.TB, a it.Artifact, rows int) *Sketch {
	t.Helper()
	r, err := Kind{}.Open(a.Root, uint32(rows))
	if err != nil {
		t.Fatal(err)
	}
	l := r.(*Reader).Load()
	var data [][]byte
	for _, s := range l.Need() {
		data = append(data, a.Body[s.Off:s.Off+s.Len])
	}
	if err := l.Feed(data); err != nil {
		t.Fatal(err)
	}
	return l.Sketch()
}

func of(t testing.TB, r *rand.Rand, c *it.Column, params index.Params) (*Sketch, it.Artifact) {
	t.Helper()
	spec := it.SpecOf(r, c.Type, len(c.Values))
	spec.Params = params
	a := it.Build(t, r, Kind{}, c, spec, index.Budget{})
	return open(t, a, len(c.Values)), a
}

// longs makes a sketch of n distinct longs from first on, each fed times times.
func longs(t testing.TB, first, n, times int) *Sketch {
	t.Helper()
	typ := column.Of(column.Long)
	b, err := Kind{}.NewBuilder(index.Spec{Columns: []column.Path{it.Path(typ)}, Rows: uint32(n * times)}, index.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	batch := make([]int64, 0, 8192)
	for i := range n * times {
		batch = append(batch, int64(first+i%n))
		if len(batch) == cap(batch) || i == n*times-1 {
			v := &column.Vector{Type: typ, Len: len(batch), Fixed: column.BytesOf(batch)}
			if err := b.Add([]*column.Vector{v}); err != nil {
				t.Fatal(err)
			}
			batch = batch[:0]
		}
	}
	body := &it.Body{}
	root, _, err := b.Finish(body)
	if err != nil {
		t.Fatal(err)
	}
	return open(t, it.Artifact{Root: root, Body: body.Bytes()}, n*times)
}

// TestEstimatesHoldAtEveryCardinality: a sketch can be right where small-range corrections rule and double its estimates above. So
// cardinalities run from 1 to far beyond k, one draw in each half octave, and theta, HLL and their unions must stay within six standard errors.
func TestEstimatesHoldAtEveryCardinality(t *testing.T) {
	r := it.Rand(t)
	most := 1 << 20
	if it.Rounds(1) > 1 {
		most = 10_000_000
	}
	for low := 1.0; low < float64(most); low *= math.Sqrt2 {
		n := int(low) + r.IntN(int(low*(math.Sqrt2-1))+1)
		first := int(r.Int64N(1 << 50))
		whole := longs(t, first, n, 1+r.IntN(2))
		near(t, whole, n, fmt.Sprintf("%d values", n))
		cut := 1 + r.IntN(n)
		overlap := r.IntN(cut + 1)
		u := &Union{}
		for _, s := range []*Sketch{longs(t, first, cut, 1), longs(t, first+cut-overlap, n-cut+overlap, 1)} {
			if err := u.Add(s); err != nil {
				t.Fatal(err)
			}
		}
		s, err := u.Sketch()
		if err != nil {
			t.Fatal(err)
		}
		near(t, s, n, fmt.Sprintf("%d values in two parts of which %d are in both", n, overlap))
	}
}

func near(t *testing.T, s *Sketch, n int, what string) {
	t.Helper()
	d := s.Distinct()
	thetaError := 0.0
	if n > 1<<s.lgK {
		thetaError = 6 / math.Sqrt(float64(int(1)<<s.lgK))
	}
	for form, c := range map[string]struct{ got, off float64 }{
		"theta": {d.Value, thetaError}, "HLL": {s.DistinctHLL(), 6 * 1.04 / math.Sqrt(1<<hllLgK)},
	} {
		if math.Abs(c.got-float64(n)) > c.off*float64(n)+0.5 {
			t.Errorf("%s: %s estimates %.0f", what, form, c.got)
		}
	}
	if d.Low > d.Value+1e-6 || d.High < d.Value-1e-6 && d.High < float64(s.Values) {
		t.Errorf("%s: %+v", what, d)
	}
}

// TestSketchesOfRandomColumns holds every type, null and NaN against exact counts and ranks.
func TestSketchesOfRandomColumns(t *testing.T) {
	r := it.Rand(t)
	for range 150 * it.Rounds(1) {
		typ := it.Types[r.IntN(len(it.Types))]
		c := it.DrawColumn(r, typ, r.IntN(3000))
		s, _ := of(t, r, &c, nil)
		checkColumn(t, s, &c)
	}
}

// checkColumn holds a sketch of few values, which is exact in all but the ranks, against the column.
func checkColumn(t *testing.T, s *Sketch, c *it.Column) {
	t.Helper()
	var want Counts
	var all [][]byte
	distinct := map[string]bool{}
	for _, v := range c.Values {
		want.Rows++
		switch {
		case v == nil:
			want.Nulls++
		case v.IsNaN():
			want.NaNs++
		default:
			want.Values++
			key := column.AppendKey(nil, *v)
			if len(key) == 0 {
				want.Empty++
			}
			distinct[string(key)] = true
			all = append(all, key[:min(len(key), keyBytes)])
		}
	}
	if s.Counts != want {
		t.Fatalf("%s: counts %+v, want %+v", c.Type, s.Counts, want)
	}
	if d := s.Distinct(); math.Abs(d.Value-float64(len(distinct))) > 0.5 {
		t.Errorf("%s: %d distinct values, theta estimates %+v", c.Type, len(distinct), d)
	}
	if d := s.DistinctHLL(); math.Abs(d-float64(len(distinct))) > 0.15*float64(len(distinct))+0.5 {
		t.Errorf("%s: %d distinct values, HLL estimates %f", c.Type, len(distinct), d)
	}
	slices.SortFunc(all, bytes.Compare)
	checkRanks(t, s, all)
}

// checkRanks holds quantiles against the sorted keys: ends exactly, the others within 5 % of the ranks.
func checkRanks(t *testing.T, s *Sketch, sorted [][]byte) {
	t.Helper()
	ranks := []float64{0, 0.01, 0.25, 0.5, 0.75, 0.99, 1}
	got, err := s.Quantiles(ranks)
	if err != nil || (len(got) == 0) != (len(sorted) == 0) {
		t.Fatalf("%d quantiles of %d values, %v", len(got), len(sorted), err)
	}
	for i, q := range got {
		low, _ := slices.BinarySearchFunc(sorted, q, bytes.Compare)
		high := low
		for high < len(sorted) && bytes.Equal(sorted[high], q) {
			high++
		}
		n := float64(len(sorted))
		if float64(low)/n > ranks[i]+0.05 || float64(high)/n < ranks[i]-0.05 || high == low {
			t.Errorf("quantile %g is the value of ranks %g to %g", ranks[i], float64(low)/n, float64(high)/n)
		}
		if share := s.Share(index.Interval{Hi: q}); math.Abs(share-float64(high)/n) > 0.05 {
			t.Errorf("%g of the values are said to be at or below the quantile %g, not %g", share, ranks[i], float64(high)/n)
		}
	}
	if len(got) > 0 && (!bytes.Equal(got[0], sorted[0]) || !bytes.Equal(got[6], sorted[len(sorted)-1])) {
		t.Errorf("ends %x and %x, want %x and %x", got[0], got[6], sorted[0], sorted[len(sorted)-1])
	}
}

// TestUnions: whatever the parts and their order, the union is what one sketch of everything says.
func TestUnions(t *testing.T) {
	r := it.Rand(t)
	for range 40 * it.Rounds(1) {
		typ := it.Types[r.IntN(len(it.Types))]
		c := it.DrawColumn(r, typ, 1+r.IntN(3000))
		var parts []*Sketch
		for at := 0; at < len(c.Values); {
			end := min(len(c.Values), at+1+r.IntN(1500))
			part := it.Column{Type: typ, Values: c.Values[at:end]}
			s, _ := of(t, r, &part, nil)
			parts = append(parts, s)
			at = end
		}
		var first []byte
		for range 2 {
			r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
			u := &Union{}
			for _, p := range parts {
				if err := u.Add(p); err != nil {
					t.Fatal(err)
				}
			}
			s, err := u.Sketch()
			if err != nil {
				t.Fatal(err)
			}
			checkColumn(t, s, &c)
			blob, _, err := s.Theta()
			if err != nil || first != nil && !bytes.Equal(first, blob) {
				t.Fatalf("unions in two orders differ, %v", err)
			}
			first = blob
		}
	}
}

func TestUnionsOfTypesThatHashDifferentlyAreRefused(t *testing.T) {
	r := it.Rand(t)
	ints, narrow := it.Of(column.Of(column.Long), 1, 2), it.Of(column.Of(column.Int), 1, 2)
	a, _ := of(t, r, &ints, nil)
	b, _ := of(t, r, &narrow, nil)
	u := &Union{}
	if err := u.Add(a); err != nil {
		t.Fatal(err)
	}
	if err := u.Add(b); !fault.Is(err, fault.Unsupported) {
		t.Error(err)
	}
}

// TestSmallerKDecides: parts of another k are merged at the smaller.
func TestSmallerKDecides(t *testing.T) {
	r := it.Rand(t)
	values := make([]any, 3000)
	for i := range values {
		values[i] = i
	}
	c := it.Of(column.Of(column.Long), values...)
	big, _ := of(t, r, &c, nil)
	small, a := of(t, r, &c, index.Params{paramK: "512"})
	for _, order := range [][]*Sketch{{big, small}, {small, big}} {
		u := &Union{}
		for _, s := range order {
			if err := u.Add(s); err != nil {
				t.Fatal(err)
			}
		}
		s, err := u.Sketch()
		if err != nil || s.lgK != 9 {
			t.Fatalf("lg k %d, %v", s.lgK, err)
		}
		if d := s.Distinct().Value; math.Abs(d-3000) > 6*3000/math.Sqrt(512) {
			t.Errorf("estimates %f", d)
		}
	}
	if len(a.Body) > 8*1024+5000+8000 {
		t.Errorf("a sketch of k = 512 takes %d bytes", len(a.Body))
	}
}

// TestHashesAreIcebergs: theta is fed with single-value serialisation (table specification, appendix D), as Spark and Java feed it.
func TestHashesAreIcebergs(t *testing.T) {
	for _, c := range []struct {
		typ   column.Type
		value any
		bytes string
	}{
		{column.Of(column.Bool), true, "\x01"},
		{column.Of(column.Int), -5, "\xfb\xff\xff\xff"},
		{column.Of(column.Long), 1, "\x01\x00\x00\x00\x00\x00\x00\x00"},
		{column.Of(column.Double), -1.0, "\x00\x00\x00\x00\x00\x00\xf0\xbf"},
		{column.Of(column.Float), 1.0, "\x00\x00\x80\x3f"},
		{column.Of(column.String), "iceberg", "iceberg"},
	} {
		col := it.Of(c.typ, c.value)
		s, _ := of(t, it.Rand(t), &col, nil)
		want, err := theta.NewQuickSelectUpdateSketch()
		if err != nil {
			t.Fatal(err)
		}
		if err := want.UpdateBytes([]byte(c.bytes)); err != nil {
			t.Fatal(err)
		}
		blob, ndv, err := s.Theta()
		expected, _ := want.Compact(true).MarshalBinary()
		if err != nil || ndv != 1 || !bytes.Equal(blob, expected) {
			t.Errorf("%s: %x, want %x", c.typ, blob, expected)
		}
	}
	for unscaled, want := range map[int64]string{0: "\x00", 127: "\x7f", 128: "\x00\x80", -128: "\x80", -129: "\xff\x7f", 1 << 40: "\x01\x00\x00\x00\x00\x00", -1: "\xff", math.MinInt64: "\x80\x00\x00\x00\x00\x00\x00\x00"} {
		hi := int64(0)
		if unscaled < 0 {
			hi = -1
		}
		key := column.AppendKey(nil, column.DecimalValue(hi, uint64(unscaled), 2))
		if got := appendDecimal(nil, key); string(got) != want {
			t.Errorf("decimal %d is %x, want %x", unscaled, got, want)
		}
	}
}

func TestEmptyStringsCountAsAValue(t *testing.T) {
	c := it.Of(column.Of(column.String), "", "a", "", nil)
	s, _ := of(t, it.Rand(t), &c, nil)
	if d := s.Distinct(); d.Value != 2 || s.Empty != 2 {
		t.Errorf("%+v, %d empty", d, s.Empty)
	}
	if _, ndv, _ := s.Theta(); ndv != 1 {
		t.Errorf("the blob's ndv is %d: Java's sketches do not take empty values", ndv)
	}
	sum, err := s.Summary()
	if least := sum.At(0); err != nil || least == nil || len(least) != 0 || string(sum.At(1)) != "a" {
		t.Errorf("the empty text is the least value, not %q: %v", least, err)
	}
}

func TestSketchesSayNothing(t *testing.T) {
	c := it.Of(column.Of(column.Long), 1, 2, nil)
	s := it.Open(t, Kind{}, c)
	for _, l := range it.Leaves(c.Type, column.IntValue(column.Long, 1)) {
		if (Kind{}).Says([]column.Path{it.Path(c.Type)}, l) != index.Nothing {
			t.Error("claims power")
		}
		if v := s.Ask(l); !v.May.Full() || !v.Must.Empty() {
			t.Errorf("says %v of %s", v, it.Describe(l))
		}
	}
}

// TestListsCountTheirElements: a list's values are its elements.
func TestListsCountTheirElements(t *testing.T) {
	text := column.Of(column.String)
	path := it.ListPath(text)
	b, err := Kind{}.NewBuilder(index.Spec{Columns: []column.Path{path}, Rows: 4}, index.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	elements := column.NewBuilder(text)
	for _, s := range []string{"a", "b", "a"} {
		elements.Append(column.StringValue(s))
	}
	elements.AppendNull()
	v := &column.Vector{Type: path[0].Type, Len: 4, Valid: []uint64{0b1011}, Off: []uint32{0, 2, 2, 2, 4}, Kids: []*column.Vector{elements.Finish()}}
	if err := b.Add([]*column.Vector{v}); err != nil {
		t.Fatal(err)
	}
	body := &it.Body{}
	root, _, err := b.Finish(body)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, it.Artifact{Root: root, Body: body.Bytes()}, 4)
	if s.Counts != (Counts{Rows: 4, Values: 3, Nulls: 1}) || s.Distinct().Value != 2 {
		t.Errorf("%+v, %+v", s.Counts, s.Distinct())
	}
}

func TestParametersAreChecked(t *testing.T) {
	path := []column.Path{it.Path(column.Of(column.Long))}
	for k, ok := range map[string]bool{"512": true, "65536": true, "4096": true, "256": false, "131072": false, "5000": false, "x": false, "-512": false} {
		err := Kind{}.Check(path, index.Params{paramK: k})
		if (err == nil) != ok || err != nil && fault.FixOf(err) == "" {
			t.Errorf("k=%s: %v", k, err)
		}
	}
}

// TestMergeKeepsEveryRowOrDeclines: artifacts merge where no row is dropped, into what one artifact of all rows says.
func TestMergeKeepsEveryRowOrDeclines(t *testing.T) {
	r := it.Rand(t)
	for range 30 {
		typ := it.Types[r.IntN(len(it.Types))]
		c := it.DrawColumn(r, typ, 2+r.IntN(900))
		cut := 1 + r.IntN(len(c.Values)-1)
		var sources []index.Source
		for _, part := range []it.Column{{Type: typ, Values: c.Values[:cut]}, {Type: typ, Values: c.Values[cut:]}} {
			_, a := of(t, r, &part, nil)
			sources = append(sources, index.Source{Root: a.Root, Rows: uint32(len(part.Values)), Body: bytes.NewReader(a.Body), Size: int64(len(a.Body))})
		}
		rows := []uint32{sources[0].Rows, sources[1].Rows}
		m, err := index.Concatenated(rows, nil)
		if err != nil {
			t.Fatal(err)
		}
		spec := index.Spec{Columns: []column.Path{it.Path(typ)}, Rows: rows[0] + rows[1]}
		body := &it.Body{}
		root, reason, err := Kind{}.Merge(spec, sources, m, index.Budget{}, body)
		if err != nil || root == nil {
			t.Fatal(reason, err)
		}
		checkColumn(t, open(t, it.Artifact{Root: root, Body: body.Bytes()}, len(c.Values)), &c)
		kept := rowset.FromRows(rows[0], []uint32{0})
		if rows[0] == 1 {
			kept = rowset.None(1)
		}
		if m, err = index.Concatenated(rows, []*rowset.Set{kept, nil}); err != nil {
			t.Fatal(err)
		}
		spec.Rows = m.Rows()
		if root, reason, err = (Kind{}).Merge(spec, sources, m, index.Budget{}, &it.Body{}); root != nil || reason == "" || err != nil {
			t.Errorf("of a part of the rows: %d bytes, %q, %v", len(root), reason, err)
		}
	}
}
