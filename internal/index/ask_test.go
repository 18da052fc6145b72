package index

import (
	"bytes"
	"testing"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

func TestSuccessor(t *testing.T) {
	for prefix, want := range map[string]string{"a": "b", "a\xff": "b", "\xfe\xff\xff": "\xff", "a\x00": "a\x01", "\u00e9": "\xc3\xaa"} {
		if got, ok := Successor([]byte(prefix)); !ok || string(got) != want {
			t.Errorf("after %q comes %q, want %q", prefix, got, want)
		}
	}
	for _, prefix := range []string{"", "\xff", "\xff\xff"} {
		if got, ok := Successor([]byte(prefix)); ok {
			t.Errorf("after %q comes %q", prefix, got)
		}
	}
}

// A comparison with NULL passes no row, whatever an index believes of its form.
func TestUnknownLeafClaimsNothing(t *testing.T) {
	double := column.Of(column.Double)
	leaf := &predicate.Leaf{Column: predicate.Column{Path: column.Path{{ID: 1, Name: "x", Type: double}}}, Op: predicate.In}
	for _, d := range []predicate.Dialect{predicate.SQL, predicate.Iceberg} {
		leaf.Dialect = d
		nans := rowset.Exactly(rowset.FromRows(4, []uint32{2}))
		none := rowset.Exactly(rowset.None(4))
		if v := Sign(leaf, Known{True: none, False: rowset.Negate(none, rowset.All(4)), Null: none, NaN: nans}); !v.Must.Empty() {
			t.Errorf("dialect %d claims %s", d, v.Must)
		}
	}
}

func TestForeignLiteralsAreNotAsked(t *testing.T) {
	path := func(t column.Type) column.Path { return column.Path{{ID: 1, Name: "x", Type: t}} }
	leaf := func(t column.Type, op predicate.Op, v ...column.Value) *predicate.Leaf {
		return &predicate.Leaf{Column: predicate.Column{Path: path(t)}, Op: op, Values: v}
	}
	long, dec := column.Of(column.Long), column.DecimalOf(9, 2)
	list := column.Path{{ID: 1, Name: "l", Type: column.Type{Kind: column.List}}, {ID: 2, Name: "element", Type: long}}
	for what, c := range map[string]struct {
		leaf *predicate.Leaf
		enc  Encoding
	}{
		"value of another kind":   {leaf(long, predicate.Equal, column.IntValue(column.Int, 1)), Encoding{Kind: column.Long}},
		"value of another scale":  {leaf(dec, predicate.Equal, column.DecimalValue(0, 1, 3)), Encoding{Kind: column.Decimal, Scale: 2}},
		"artifact of other scale": {leaf(dec, predicate.Equal, column.DecimalValue(0, 1, 2)), Encoding{Kind: column.Decimal, Scale: 3}},
		"two values":              {leaf(long, predicate.Less, column.IntValue(column.Long, 1), column.IntValue(column.Long, 2)), Encoding{Kind: column.Long}},
		"narrowed float":          {leaf(column.Of(column.Float), predicate.Equal, column.FloatValue(1)), Encoding{Kind: column.Double}},
		"other width":             {leaf(column.FixedOf(2), predicate.Equal, column.BytesValue(column.Fixed, []byte("ab"))), Encoding{Kind: column.Fixed, Width: 3}},
		"like without pattern":    {leaf(column.Of(column.String), predicate.Like), Encoding{Kind: column.String}},
		"contains":                {leaf(long, predicate.Contains, column.IntValue(column.Long, 1)), Encoding{Kind: column.Long}},
		"list element":            {&predicate.Leaf{Column: predicate.Column{Path: list}, Op: predicate.Equal, Values: []column.Value{column.IntValue(column.Long, 1)}}, Encoding{Kind: column.Long}},
	} {
		if ask, ok := Asked(c.leaf, c.enc); ok {
			t.Errorf("%s: asked %+v", what, ask)
		}
	}
}

func TestEncodingsReadBack(t *testing.T) {
	for k := column.Unknown; k <= column.Geography; k++ {
		typ := column.Type{Kind: k, Width: 7, Scale: 2}
		e, err := EncodingOf(typ)
		if keyed := k >= column.Bool && k <= column.Binary; keyed != (err == nil) {
			t.Errorf("%s: %v", k, err)
		}
		if err != nil {
			continue
		}
		w := &bytescan.Writer{}
		e.Append(w)
		r := bytescan.NewReader("encoding", w.Buf)
		if got := ReadEncoding(r); got != e || r.Done() != nil || !got.Widens(typ) {
			t.Errorf("%s: %+v became %+v, %v", k, e, got, r.Err())
		}
	}
	for _, bad := range [][]byte{{0, 0, 0}, {17, 0, 0}, {99, 0, 0}, {15, 0, 0}, {2, 0, 3}, {6, 39, 0}} {
		r := bytescan.NewReader("encoding", bad)
		if e := ReadEncoding(r); r.Err() == nil {
			t.Errorf("% x read as %+v", bad, e)
		}
	}
}

// Narrow keys and wide keys are column.AppendKey's, for plain and dictionary vectors.
func TestKeysAreAppendKeys(t *testing.T) {
	values := map[column.Kind][]column.Value{
		column.Bool:    {column.BoolValue(true), column.BoolValue(false)},
		column.Int:     {column.IntValue(column.Int, -5), column.IntValue(column.Int, 1<<31-1)},
		column.Float:   {column.FloatValue(-1.5), column.FloatValue(0)},
		column.Double:  {column.DoubleValue(1e300), {Kind: column.Double, Lo: 1 << 63}},
		column.Decimal: {column.DecimalValue(-1, 1<<63, 2), column.DecimalValue(1, 5, 2)},
		column.UUID:    {column.BytesValue(column.UUID, bytes.Repeat([]byte{7}, 16)), column.BytesValue(column.UUID, bytes.Repeat([]byte{255}, 16))},
		column.Binary:  {column.BytesValue(column.Binary, nil), column.BytesValue(column.Binary, []byte{0, 1})},
	}
	for kind, vs := range values {
		typ := column.Type{Kind: kind, Width: 9, Scale: 2}
		b := column.NewBuilder(typ)
		for _, v := range vs {
			b.Append(v)
		}
		plain := b.Finish()
		dict := &column.Vector{Type: typ, Len: 3, Dict: plain, Idx: []uint32{1, 0, 1}}
		e, _ := EncodingOf(typ)
		k := NewKeys(e)
		check := func(v *column.Vector, want ...column.Value) {
			if err := k.Load(v); err != nil {
				t.Fatal(err)
			}
			for i, w := range want {
				var got []byte
				if e.Narrow() {
					got = e.AppendNarrow(nil, k.Narrow[i])
				} else {
					got = k.Wide(i)
				}
				if key := column.AppendKey(nil, w); !bytes.Equal(got, key) || k.Null(i) {
					t.Errorf("%s value %d: key % x, want % x", kind, i, got, key)
				}
			}
		}
		check(plain, vs...)
		check(dict, vs[1], vs[0], vs[1])
	}
	k := NewKeys(Encoding{Kind: column.Long})
	if err := k.Load(&column.Vector{Type: column.Of(column.Double), Len: 1, Fixed: make([]byte, 8)}); !fault.Is(err, fault.Unsupported) {
		t.Errorf("doubles as longs: %v", err)
	}
	if err := k.Load(&column.Vector{Type: column.Of(column.Unknown), Len: 3}); err != nil || !k.Null(2) {
		t.Errorf("a column of unknown type is all null: %v", err)
	}
}

func TestGranules(t *testing.T) {
	for what, c := range map[string]struct {
		spec   Spec
		groups int
		pages  int
	}{
		"plain":             {Spec{Rows: 10, RowGroups: []uint32{0, 5}, Pages: []uint32{0, 3, 5}}, 2, 3},
		"empty row group":   {Spec{Rows: 10, RowGroups: []uint32{0, 5, 5, 10}, Pages: []uint32{0, 5, 5, 10}}, 2, 2},
		"no rows":           {Spec{RowGroups: []uint32{0}, Pages: []uint32{0}}, 0, 0},
		"no rows, no cuts":  {Spec{}, 0, 0},
		"none":              {Spec{Rows: 10}, -1, 0},
		"not from 0":        {Spec{Rows: 10, RowGroups: []uint32{1}, Pages: []uint32{1}}, -1, 0},
		"past the end":      {Spec{Rows: 10, RowGroups: []uint32{0, 11}, Pages: []uint32{0, 11}}, -1, 0},
		"descending":        {Spec{Rows: 10, RowGroups: []uint32{0, 5, 3}, Pages: []uint32{0, 3, 5}}, -1, 0},
		"group inside page": {Spec{Rows: 10, RowGroups: []uint32{0, 5}, Pages: []uint32{0, 6}}, -1, 0},
	} {
		groups, pages, err := c.spec.Granules()
		if c.groups < 0 != (err != nil) || err == nil && (len(groups) != c.groups || len(pages) != c.pages) {
			t.Errorf("%s: %v, %v, %v", what, groups, pages, err)
		}
	}
}
