package filemap

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/predicate"
)

// built is a run in memory.
type built struct {
	root    []byte
	objects [][]byte
	run     *Run
}

func (b *built) Write(leaf []byte) (int, error) {
	last := len(b.objects) - 1
	b.objects[last] = append(b.objects[last], leaf...)
	return len(leaf), nil
}

func (b *built) Next() error {
	b.objects = append(b.objects, nil)
	return nil
}

func (b *built) read(p Place) []byte { return b.objects[p.Object][p.Off : p.Off+p.Len] }

func (b *built) source() Source {
	return Source{Run: b.run, Fetch: func(from, to int) (out [][]byte, err error) {
		for i := from; i < to; i++ {
			if p := b.run.PlaceOf(i); p.Len > 0 {
				out = append(out, b.read(p))
			}
		}
		return out, nil
	}}
}

// ask is the hits of a leaf: per slot its granules. nil: every file.
func (b *built) ask(t *testing.T, l *predicate.Leaf, with ...*predicate.Leaf) (hits map[uint32][]Hit, all bool) {
	t.Helper()
	look := b.run.Look(l, with...)
	if look == nil {
		return nil, true
	}
	var data [][]byte
	for _, p := range look.Need() {
		data = append(data, b.read(p))
	}
	require.NoError(t, look.Feed(data))
	hits = map[uint32][]Hit{}
	look.Hits(func(h Hit) { hits[h.Slot] = append(hits[h.Slot], h) })
	return hits, look.All
}

// table is random files with their values.
type table struct {
	typ    column.Type
	files  []File
	pages  [][]uint32
	values [][]*column.Value // nil: null
}

func randomTable(r *rand.Rand, typ column.Type, files, rows, distinct, first int) *table {
	x := &table{typ: typ}
	var pool []column.Value
	for range distinct {
		pool = append(pool, it.Value(r, typ))
	}
	for i := range files {
		n := r.IntN(rows) + 1
		f := File{Path: PathKey(fmt.Sprintf("s3://t/data/%d.parquet", first+i)), Size: int64(1000 + i), Records: int64(n), Tag: fmt.Sprintf("%q", fmt.Sprint(first+i))}
		pages := []uint32{0}
		width := uint32(r.IntN(rows/3+1) + 1)
		for at := width; at < uint32(n); at += width {
			pages = append(pages, at)
			if r.IntN(40) == 0 {
				width = uint32(r.IntN(rows/3+1) + 1)
			}
		}
		values := make([]*column.Value, n)
		for k := range values {
			if r.IntN(9) > 0 {
				values[k] = &pool[r.IntN(len(pool))]
			}
		}
		x.files, x.pages, x.values = append(x.files, f), append(x.pages, pages), append(x.values, values)
	}
	return x
}

func (x *table) build(t *testing.T, r *rand.Rand, limit int) *built {
	t.Helper()
	c, err := NewCollector(it.Path(x.typ), true, index.Budget{TempDir: t.TempDir()})
	require.NoError(t, err)
	c.limit = limit
	for i, f := range x.files {
		require.NoError(t, c.Start(f, x.pages[i]))
		for at := 0; at < len(x.values[i]); {
			n := min(r.IntN(40)+1, len(x.values[i])-at)
			col := it.Column{Type: x.typ, Values: x.values[i]}
			require.NoError(t, c.Add(col.Vector(r, at, at+n)))
			at += n
		}
	}
	b := &built{objects: [][]byte{nil}}
	b.root, _, err = c.Run(b)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	b.run, err = Open(b.root)
	require.NoError(t, err)
	return b
}

// check asks for every value that the tables hold and demands all its rows.
func check(t *testing.T, b *built, tables ...*table) {
	t.Helper()
	slots := map[[16]byte]uint32{}
	for s, f := range b.run.Files {
		slots[f.Path] = uint32(s)
	}
	for _, x := range tables {
		type ask struct {
			hits map[uint32][]Hit
			all  bool
		}
		asked := map[column.Value]ask{}
		for i, f := range x.files {
			slot, covered := slots[f.Path]
			if !covered {
				continue
			}
			for row, v := range x.values[i] {
				if v == nil {
					continue
				}
				a, ok := asked[*v]
				if !ok {
					l := it.Test(x.typ, predicate.Equal)
					l.Values = []column.Value{*v}
					if v.IsNaN() {
						l.Dialect = predicate.Iceberg
					}
					a.hits, a.all = b.ask(t, l)
					asked[*v] = a
				}
				if !a.all && !slices.ContainsFunc(a.hits[slot], func(h Hit) bool {
					rows := b.run.Rows(h)
					return rows.Start <= uint32(row) && uint32(row) < rows.End
				}) {
					t.Fatalf("%v is in row %d of file %d (slot %d), and the map says %v", *v, row, i, slot, a.hits)
				}
			}
		}
	}
}

// TestNothingInsertedIsAbsent: every row of every value is among the hits, spilled or not, whatever the pages.
func TestNothingInsertedIsAbsent(t *testing.T) {
	r := it.Rand(t)
	for range 60 {
		typ := it.Types[r.IntN(len(it.Types))]
		x := randomTable(r, typ, r.IntN(12)+1, r.IntN(900)+1, r.IntN(1200)+1, 0)
		b := x.build(t, r, []int{64, 1 << 20}[r.IntN(2)])
		require.Len(t, b.run.Files, len(x.files))
		check(t, b, x)
	}
}

// TestAbsentValuesHitRarely: of values that are not there, hardly any hits.
func TestAbsentValuesHitRarely(t *testing.T) {
	r := it.Rand(t)
	x := randomTable(r, column.Of(column.Long), 20, 4000, 1<<30>>12, 0)
	b := x.build(t, r, 1<<20)
	wrong := 0
	for range 2000 {
		l := it.Test(x.typ, predicate.Equal)
		l.Values = []column.Value{column.IntValue(column.Long, r.Int64())}
		if hits, all := b.ask(t, l); all || len(hits) > 0 {
			wrong++
		}
	}
	require.LessOrEqual(t, wrong, 8, "expected n / 2^bits of them")
}

// entriesOf is all that a run holds.
func entriesOf(t *testing.T, b *built) []entry {
	t.Helper()
	s := b.source()
	st := &stored{Source: &s}
	var out []entry
	for {
		e, ok, err := st.next()
		require.NoError(t, err)
		if !ok {
			return out
		}
		out = append(out, e)
	}
}

func merge(t *testing.T, sources ...Source) *built {
	t.Helper()
	b := &built{objects: [][]byte{nil}}
	var err error
	b.root, _, err = Merge(sources, b)
	require.NoError(t, err)
	b.run, err = Open(b.root)
	require.NoError(t, err)
	return b
}

// TestMergesInAnyOrderAgree merges runs in random trees: files, entries and answers are the same, and every source's hits are there.
func TestMergesInAnyOrderAgree(t *testing.T) {
	r := it.Rand(t)
	for range 25 {
		typ := it.Types[r.IntN(len(it.Types))]
		var tables []*table
		var runs []*built
		pool := r.Uint64()
		for k := range r.IntN(5) + 2 {
			same := rand.New(rand.NewPCG(pool, 7)) // the runs share values
			x := randomTable(same, typ, r.IntN(6)+1, 300, r.IntN(400)+1, k*100)
			tables, runs = append(tables, x), append(runs, x.build(t, r, 1<<20))
		}
		if r.IntN(3) == 0 { // an incarnation that two runs cover
			tables, runs = append(tables, tables[0]), append(runs, runs[0])
		}
		var first *built
		for range 3 {
			left := slices.Clone(runs)
			r.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
			for len(left) > 1 {
				n := r.IntN(len(left)-1) + 2
				var sources []Source
				for _, b := range left[:n] {
					sources = append(sources, b.source())
				}
				left = append(left[n:], merge(t, sources...))
			}
			check(t, left[0], tables...)
			if first == nil {
				first = left[0]
				continue
			}
			require.Equal(t, first.run.Files, left[0].run.Files)
			require.Equal(t, entriesOf(t, first), entriesOf(t, left[0]))
		}
	}
}

// TestMergeFollowsItsFiles: a file that a merge leaves out is not covered, and its hits are gone.
func TestMergeFollowsItsFiles(t *testing.T) {
	r := it.Rand(t)
	x := randomTable(r, column.Of(column.String), 10, 300, 500, 0)
	b := x.build(t, r, 1<<20)
	s := b.source()
	s.Keep = func(slot int) bool { return slot%2 == 0 }
	m := merge(t, s)
	require.Len(t, m.run.Files, 5)
	for i, f := range m.run.Files {
		require.Equal(t, b.run.Files[2*i], f)
	}
	check(t, m, x)
	require.Less(t, m.run.Keys, b.run.Keys)
}

// TestMergeOfOtherGranules: one incarnation whose rows two runs cut into granules of different lengths loses none of its hits.
func TestMergeOfOtherGranules(t *testing.T) {
	r := it.Rand(t)
	for range 10 {
		x := randomTable(r, column.Of(column.Long), 3, 300, 40, 0)
		y := *x
		y.pages = nil
		for _, f := range x.files {
			pages, width := []uint32(nil), uint32(2+r.IntN(60))
			for at := uint32(0); int64(at) < f.Records; at += width {
				pages = append(pages, at)
			}
			y.pages = append(y.pages, pages)
		}
		a, b := x.build(t, r, 1<<20), y.build(t, r, 1<<20)
		check(t, merge(t, a.source(), b.source()), x, &y)
		check(t, merge(t, b.source(), a.source()), x, &y)
	}
}

// TestAHashOfZeroIsAHash: the one long whose hash is 0, in the first granule of the first file.
func TestAHashOfZeroIsAHash(t *testing.T) {
	first, v := column.IntValue(column.Long, 1), column.IntValue(column.Long, -899171273831394503)
	require.Zero(t, Hash(column.AppendKey(nil, v)))
	x := &table{
		typ: column.Of(column.Long), files: []File{{Path: PathKey("a"), Size: 1, Records: 2, Tag: "t"}}, pages: [][]uint32{{0}},
		values: [][]*column.Value{{&first, &v}},
	}
	check(t, x.build(t, it.Rand(t), 1<<20), x)
}

// TestTooManyStays: a value of more than 1,024 files means every file, and goes on to do so when a merge leaves files out.
func TestTooManyStays(t *testing.T) {
	r := it.Rand(t)
	typ := column.Of(column.Long)
	common, rare := column.IntValue(column.Long, 1), column.IntValue(column.Long, 2)
	parts := make([]*table, 2)
	for k := range parts {
		parts[k] = &table{typ: typ}
		for i := range 800 {
			parts[k].files = append(parts[k].files, File{Path: PathKey(fmt.Sprint(k, i)), Size: 1, Records: 2, Tag: "t"})
			parts[k].pages = append(parts[k].pages, []uint32{0})
			v := &common
			if i == 7 {
				v = &rare
			}
			parts[k].values = append(parts[k].values, []*column.Value{&common, v})
		}
	}
	a, b := parts[0].build(t, r, 1<<20), parts[1].build(t, r, 1<<20)
	hits, all := merge(t, a.source(), b.source()).ask(t, it.Test(typ, predicate.Equal, 1))
	require.False(t, all, "the value map lists them")
	require.Len(t, hits, 1600)
	a.run.HasValues, b.run.HasValues = false, false
	_, all = a.ask(t, it.Test(typ, predicate.Equal, 1))
	require.False(t, all)
	m := merge(t, a.source(), b.source())
	_, all = m.ask(t, it.Test(typ, predicate.Equal, 1))
	require.True(t, all)
	hits, all = m.ask(t, it.Test(typ, predicate.Equal, 2))
	require.False(t, all)
	require.Len(t, hits, 2)
	s := m.source()
	s.Keep = func(slot int) bool { return slot < 100 }
	_, all = merge(t, s).ask(t, it.Test(typ, predicate.Equal, 1))
	require.True(t, all)
	check(t, m, parts...)
}

// TestGranulesArePages: where pages are of one length, a hit is one page.
func TestGranulesArePages(t *testing.T) {
	require.Equal(t, uint32(20_000), strideOf(50_000, []uint32{0, 20_000, 40_000}))
	require.Equal(t, uint32(8192), strideOf(50_000, []uint32{0, 20_000, 41_000}))
	require.Equal(t, uint32(8192), strideOf(50_000, []uint32{0, 10, 20}))
	require.Equal(t, uint32(8192), strideOf(50_000, []uint32{0}))
	require.Equal(t, uint32(1<<24), strideOf(0xff0000_00, nil))
	require.Equal(t, uint32(8192), strideOf(0, nil))
}

// TestListsOfElements: contains finds the granules whose lists hold a value.
func TestListsOfElements(t *testing.T) {
	r := it.Rand(t)
	typ := column.Of(column.Long)
	path := it.ListPath(typ)
	c, err := NewCollector(path, true, index.Budget{TempDir: t.TempDir()})
	require.NoError(t, err)
	const rows = 300
	require.NoError(t, c.Start(File{Path: PathKey("a"), Records: rows, Tag: "t"}, []uint32{0, 10}))
	elements, off := it.Column{Type: typ}, []uint32{0}
	for i := range rows {
		for k := range i % 3 {
			v := it.Lit(typ, i*3+k)
			elements.Values = append(elements.Values, &v)
		}
		off = append(off, uint32(len(elements.Values)))
	}
	require.NoError(t, c.Add(&column.Vector{
		Type: path[len(path)-2].Type, Len: rows, Off: off, Kids: []*column.Vector{elements.Vector(r, 0, len(elements.Values))},
	}))
	b := &built{objects: [][]byte{nil}}
	b.root, _, err = c.Run(b)
	require.NoError(t, err)
	b.run, err = Open(b.root)
	require.NoError(t, err)
	for i := range rows {
		for k := range i % 3 {
			l := &predicate.Leaf{Column: predicate.Column{Path: path}, Op: predicate.Contains, Values: []column.Value{it.Lit(typ, i*3+k)}}
			some, every := Speaks(path, l)
			require.True(t, some && every)
			hits, all := b.ask(t, l)
			require.False(t, all)
			require.True(t, slices.ContainsFunc(hits[0], func(h Hit) bool {
				at := b.run.Rows(h)
				return at.Start <= uint32(i) && uint32(i) < at.End
			}))
		}
	}
}

// TestWhatIsSaid: what orders, lists and patterns ask of the column itself, and without a value map only = and IN without a negation,
// and contains.
func TestWhatIsSaid(t *testing.T) {
	typ := column.Of(column.Long)
	for _, l := range it.Leaves(typ, column.IntValue(column.Long, 5)) {
		some, every := Speaks(it.Path(typ), l)
		require.Equal(t, !l.Negated && (l.Op == predicate.Equal || l.Op == predicate.In || l.Op == predicate.Contains), every, it.Describe(l))
		require.Equal(t, l.Op != predicate.Contains || !l.Negated, some, it.Describe(l))
	}
	other := it.Path(typ)
	other[len(other)-1].ID = 99
	some, every := Speaks(other, it.Test(typ, predicate.Equal, 5))
	require.False(t, some || every)
	require.Nil(t, small(t).run.Look(it.Test(column.Of(column.String), predicate.Equal, "5")))
}

// TestAnIntIsFoundAsALong: a column that was promoted keeps its map.
func TestAnIntIsFoundAsALong(t *testing.T) {
	r := it.Rand(t)
	x := randomTable(r, column.Of(column.Int), 3, 100, 50, 0)
	b := x.build(t, r, 1<<20)
	for _, v := range x.values[0] {
		if v != nil {
			hits, all := b.ask(t, it.Test(column.Of(column.Long), predicate.Equal, int(v.Int64())))
			require.True(t, all || len(hits) > 0)
		}
	}
}

func TestSorting(t *testing.T) {
	r := it.Rand(t)
	for _, n := range []int{0, 1, 100, 5000, 100_000} {
		e := make([]entry, n)
		for i := range e {
			e[i] = entry{r.Uint64() >> r.IntN(64), uint32(r.IntN(5))}
		}
		want := slices.Clone(e)
		slices.SortFunc(want, compareEntries)
		sortEntries(e)
		require.Equal(t, want, e)
	}
}

// TestObjectsAreCut: leaves beyond the size of an object go into the next, and are found there.
func TestObjectsAreCut(t *testing.T) {
	r := it.Rand(t)
	x := randomTable(r, column.Of(column.Long), 40, 20_000, 300_000, 0)
	b := x.build(t, r, 1<<20)
	require.Greater(t, b.run.Leaves(), 4)
	cut := &built{}
	objects := []int{0, 2, 0, 1, b.run.Leaves() - 2}
	at := 0
	for _, n := range objects {
		cut.objects = append(cut.objects, nil)
		for range n {
			_, _ = cut.Write(b.read(b.run.PlaceOf(at)))
			at++
		}
	}
	cut.root = encodeRoot(b.run.Encoding, &b.run.shape, b.run.Keys, b.run.Files, objects, b.run.leaves, nil)
	var err error
	cut.run, err = Open(cut.root)
	require.NoError(t, err)
	require.Equal(t, entriesOf(t, b), entriesOf(t, cut))
	for i := range b.run.Leaves() {
		require.True(t, bytes.Equal(b.read(b.run.PlaceOf(i)), cut.read(cut.run.PlaceOf(i))))
		require.LessOrEqual(t, b.run.PlaceOf(i).Len, int64(2*leafTarget))
	}
}
