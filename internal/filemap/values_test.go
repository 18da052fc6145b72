package filemap

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/predicate"
)

// values is the value map of a run, nil if it has none.
func (b *built) values(t *testing.T) *valueMap {
	t.Helper()
	if !b.run.HasValues {
		return nil
	}
	m, err := b.run.whole(b.read(b.run.PlaceOf(b.run.valuesNo())))
	require.NoError(t, err)
	return m
}

// judge asks for random leaves: no row that passes may be missing, and with a value map no file is hit without one.
func judge(t *testing.T, r *rand.Rand, b *built, n int, tables ...*table) (said int) {
	t.Helper()
	all := it.Column{Type: tables[0].typ}
	for _, x := range tables {
		for _, rows := range x.values {
			all.Values = append(all.Values, rows...)
		}
	}
	slots := map[[16]byte]uint32{}
	for s, f := range b.run.Files {
		slots[f.Path] = uint32(s)
	}
	for range n {
		l := it.DrawLeaf(r, &all, all.Type)
		var with []*predicate.Leaf
		for range r.IntN(3) {
			with = append(with, it.DrawLeaf(r, &all, all.Type))
		}
		passes := func(v *column.Value) bool {
			return it.Passes(l, v) && !slices.ContainsFunc(with, func(w *predicate.Leaf) bool { return !it.Passes(w, v) })
		}
		exact := b.run.HasValues && (l.Negated || l.Op != predicate.Equal && l.Op != predicate.In) // else leaves are enough
		hits, every := b.ask(t, l, with...)
		if every {
			continue
		}
		said++
		for _, x := range tables {
			for i, f := range x.files {
				slot, covered := slots[f.Path]
				if !covered {
					continue
				}
				some := false
				for row, v := range x.values[i] {
					if !passes(v) {
						continue
					}
					some = true
					if !slices.ContainsFunc(hits[slot], func(h Hit) bool {
						at := b.run.Rows(h)
						return at.Start <= uint32(row) && uint32(row) < at.End
					}) {
						t.Fatalf("%s and %d more pass row %d of file %d, which is not among %v", it.Describe(l), len(with), row, i, hits[slot])
					}
				}
				if !some && exact && len(hits[slot]) > 0 && !slices.ContainsFunc(with, emptyList) {
					t.Fatalf("%s and %d more pass no row of file %d, and %v is hit", it.Describe(l), len(with), i, hits[slot])
				}
			}
		}
	}
	return said
}

// emptyList tells "in ()": whether a NaN passes it is not an index's to say.
func emptyList(l *predicate.Leaf) bool { return l.Op == predicate.In && len(l.Values) == 0 }

// TestAnyLeafOnAValueMap: whatever is asked, the files are those that hold a row which passes, and no others.
func TestAnyLeafOnAValueMap(t *testing.T) {
	r := it.Rand(t)
	for range 60 {
		typ := it.Types[r.IntN(len(it.Types))]
		x := randomTable(r, typ, r.IntN(30)+1, r.IntN(60)+1, r.IntN(60)+1, 0)
		b := x.build(t, r, []int{64, 1 << 20}[r.IntN(2)])
		require.True(t, b.run.HasValues)
		require.Equal(t, b.run.Values, len(b.values(t).keys))
		require.Equal(t, 60, judge(t, r, b, 60, x))
	}
}

// TestMergedValueMaps: merges of random trees agree, hold what every source said, and nothing of files that are left out.
func TestMergedValueMaps(t *testing.T) {
	r := it.Rand(t)
	for range 25 {
		typ, pool := it.Types[r.IntN(len(it.Types))], r.Uint64()
		var tables []*table
		var runs []*built
		for k := range r.IntN(5) + 2 {
			x := randomTable(rand.New(rand.NewPCG(pool, 7)), typ, r.IntN(6)+1, 40, r.IntN(40)+1, k*100)
			tables, runs = append(tables, x), append(runs, x.build(t, r, 1<<20))
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
			if first == nil {
				first = left[0]
				require.Equal(t, 40, judge(t, r, first, 40, tables...))
			}
			require.Equal(t, first.values(t), left[0].values(t))
		}
		s := first.source()
		s.Keep = func(slot int) bool { return slot%2 == 0 }
		half := merge(t, s)
		require.Equal(t, 40, judge(t, r, half, 40, tables...))
		require.False(t, half.run.MayNameGone())
		held := map[string]bool{}
		slots := map[[16]byte]bool{}
		for _, f := range half.run.Files {
			slots[f.Path] = true
		}
		for _, x := range tables {
			for i, f := range x.files {
				for _, v := range x.values[i] {
					if v != nil && slots[f.Path] {
						held[string(column.AppendKey(nil, *v))] = true
					}
				}
			}
		}
		for _, key := range half.values(t).keys {
			require.True(t, held[key], "a value of files that were left out")
		}
		require.Len(t, half.values(t).keys, len(held))
	}
}

// TestTooManyValuesStay: a column of many values, or of long ones, has no value map, nor has what is merged of it.
func TestTooManyValuesStay(t *testing.T) {
	r := it.Rand(t)
	typ := column.Of(column.String)
	with := func(first, n, length int) *table {
		x := &table{typ: typ, files: []File{{Path: PathKey(fmt.Sprint(first)), Size: 1, Records: int64(n), Tag: "t"}}, pages: [][]uint32{{0}}}
		var rows []*column.Value
		for i := range n {
			v := column.StringValue(fmt.Sprintf("%0*d", length, first+i))
			rows = append(rows, &v)
		}
		x.values = append(x.values, rows)
		return x
	}
	for _, c := range []struct {
		n, length int
		fits      bool
	}{{maxValues, 9, true}, {maxValues + 1, 9, false}, {4, maxValueBytes / 4, true}, {4, maxValueBytes/4 + 1, false}} {
		x, y := with(0, c.n, c.length), with(100_000, 1, 9)
		b := x.build(t, r, 1<<20)
		require.Equal(t, c.fits, b.run.HasValues, "%d of %d", c.n, c.length)
		few := y.build(t, r, 1<<20)
		require.True(t, few.run.HasValues)
		require.False(t, merge(t, b.source(), few.source()).run.HasValues)
		check(t, merge(t, b.source(), few.source()), x, y)
	}
	half := []*built{with(0, maxValues/2+1, 9).build(t, r, 1<<20), with(100_000, maxValues/2, 9).build(t, r, 1<<20)}
	require.True(t, half[0].run.HasValues && half[1].run.HasValues)
	require.False(t, merge(t, half[0].source(), half[1].source()).run.HasValues)
}

// TestAValueOfTooManyFiles: it may be everywhere, other values are not, and what it was may outlive its files until the run says so.
func TestAValueOfTooManyFiles(t *testing.T) {
	typ := column.Of(column.Long)
	files := make([]File, valueFiles+100)
	for i := range files {
		files[i] = File{Path: PathKey(fmt.Sprint(i)), Size: 1, Records: 1, Tag: "t", Stride: 1}
	}
	sorted, _ := arrange([][]File{files})
	m := &valueMap{}
	for v := range 3 {
		m.keys = append(m.keys, string(column.AppendKey(nil, it.Lit(typ, v))))
		m.held = append(m.held, slots{})
	}
	for slot := range sorted {
		m.held[map[int]int{5: 0, 6: 2}[slot]].add(uint32(slot)) // the others hold 0
	}
	m.held[1] = slots{list: []uint32{7, 8}}
	require.True(t, m.held[0].many)
	b := &built{objects: [][]byte{nil}}
	var err error
	b.root, _, err = write(index.Encoding{Kind: column.Long}, sorted, 0, usualBits, nil, m, b)
	require.NoError(t, err)
	b.run, err = Open(b.root)
	require.NoError(t, err)
	ask := func(b *built, op predicate.Op, negated bool) (int, bool) {
		l := it.Test(typ, op, 1)
		l.Negated = negated
		hits, all := b.ask(t, l)
		return len(hits), all
	}
	n, all := ask(b, predicate.Greater, false)
	require.False(t, all)
	require.Equal(t, 1, n)
	_, all = ask(b, predicate.Less, false)
	require.True(t, all)
	_, all = ask(b, predicate.Equal, true)
	require.True(t, all)
	require.False(t, b.run.MayNameGone())
	s := b.source()
	s.Keep = func(slot int) bool { return slot == 7 || slot == 8 }
	left := merge(t, s)
	require.True(t, left.run.MayNameGone())
	require.Equal(t, m.keys[:2], left.values(t).keys)
	require.True(t, merge(t, left.source()).run.MayNameGone())
	_, all = ask(left, predicate.Less, false)
	require.True(t, all)
}

// TestPairsAreCapped: values in many files each make the map too long, though no cap of a single one is reached.
func TestPairsAreCapped(t *testing.T) {
	m := &valueMap{}
	list := make([]uint32, valueFiles)
	for range maxPairs / valueFiles {
		m.held, m.keys = append(m.held, slots{list: list}), append(m.keys, "")
	}
	require.True(t, m.fits())
	m.null.list = []uint32{0}
	require.False(t, m.fits())
	m.null.list, m.held[0] = nil, slots{many: true}
	require.True(t, m.fits())
}

// TestValuesThatShareAHash: another value with the hash of one that was just added is added too.
func TestValuesThatShareAHash(t *testing.T) {
	c, err := NewCollector(it.Path(column.Of(column.String)), true, index.Budget{TempDir: t.TempDir()})
	require.NoError(t, err)
	require.NoError(t, c.Start(File{Path: PathKey("a"), Size: 1, Records: 2, Tag: "t"}, nil))
	for _, v := range []string{"a", "b"} {
		col := column.NewBuilder(column.Of(column.String))
		col.Append(column.StringValue(v))
		require.NoError(t, c.Add(col.Finish()))
		e := entry{Hash([]byte("b")), place(0, 0)} // as if "a" had it
		c.recent[e.hash>>(64-recentBits)], c.ids[e.hash>>(64-recentBits)] = e, 0
	}
	require.Equal(t, 2, c.values.distinct.Len())
}

// TestSetsOfFiles: however many there are, they read back, in the shorter form.
func TestSetsOfFiles(t *testing.T) {
	r := it.Rand(t)
	for range 200 {
		files := r.IntN(3000) + 1
		m := &valueMap{keys: []string{"x"}, held: []slots{{}}}
		share := r.Float64()
		for slot := range files {
			if r.Float64() < share {
				m.held[0].add(uint32(slot))
			}
			if r.Float64() < share*share {
				m.null.add(uint32(slot))
			}
		}
		raw := m.encode(index.Encoding{Kind: column.String}, files)
		require.LessOrEqual(t, len(raw), 2*((files+7)/8)+12)
		run := &Run{Encoding: index.Encoding{Kind: column.String}, Files: make([]File, files)}
		back, err := run.whole(raw)
		require.NoError(t, err)
		require.Equal(t, m, back)
	}
}

// TestDamagedValueMaps: cut, flipped or contradictory bytes are corrupt, or answer in range.
func TestDamagedValueMaps(t *testing.T) {
	b := small(t)
	good := b.read(b.run.PlaceOf(b.run.valuesNo()))
	for n := range good {
		_, err := b.run.whole(good[:n:n])
		require.True(t, fault.Is(err, fault.Corrupt), "%d bytes: %v", n, err)
	}
	for bit := range len(good) * 8 {
		valuesAnswer(t, b.run, flipped(good, bit))
	}
	for _, bad := range [][][]byte{nil, {nil}, {good[1:]}, {append(slices.Clone(good), 0)}, {good, good}, {flipped(good, 99)}} {
		l := b.run.Look(it.Test(column.Of(column.Long), predicate.Less, 9))
		require.Len(t, l.Need(), 1)
		err := l.Feed(bad)
		require.True(t, fault.Is(err, fault.Corrupt) || fault.Is(err, fault.Invalid), err)
		l.Hits(func(Hit) { t.Error("a hit in a damaged value map") })
	}
	enc := index.Encoding{Kind: column.String}
	run := &Run{Encoding: enc, Files: make([]File, 3)}
	for what, body := range map[string][]byte{
		"a slot past the files in bits": {1, 0, 1, 'a', setList, setBits, 8},
		"a slot past the files":         {1, 0, 1, 'a', setList, setList + 1, 3},
		"two slots past the files":      {1, 0, 1, 'a', setList, setList + 2, 2, 0},
		"a set that is cut":             {1, 0, 1, 'a', setList, setList + 2, 0},
		"keys that do not ascend":       {2, 0, 1, 'a', 0, 1, 'a', 0, 0, 0},
		"more values than there can be": {0xff, 0xff, 0x03},
		"bytes behind":                  {0, setList, 0},
	} {
		_, err := run.whole(body)
		require.True(t, fault.Is(err, fault.Corrupt), "%s: %v", what, err)
	}
	long := append([]byte{0}, []byte(strings.Repeat("x", maxValueMap))...)
	_, err := run.whole(long)
	require.True(t, fault.Is(err, fault.Corrupt), err)
}

// valuesAnswer reads a value map in both ways, which must agree.
func valuesAnswer(t *testing.T, run *Run, raw []byte) {
	l := it.Test(column.Of(column.Long), predicate.GreaterEqual, 8)
	ask, _ := index.Asked(l, run.Encoding)
	files, listed, err := run.holders(raw, []test{{leaf: l, ask: ask}})
	if err != nil {
		require.True(t, fault.Is(err, fault.Corrupt), err)
		return
	}
	m, err := run.whole(raw)
	if err != nil { // it reads more
		require.True(t, fault.Is(err, fault.Corrupt), err)
		return
	}
	for i, key := range m.keys {
		if !ask.Holds(l, []byte(key)) {
			continue
		}
		require.True(t, !m.held[i].many || !listed)
		for _, slot := range m.held[i].list {
			require.True(t, !listed || files[slot>>6]>>(slot&63)&1 == 1, "file %d holds %x", slot, key)
		}
	}
}

// FuzzValues reads arbitrary value maps of the small run.
func FuzzValues(f *testing.F) {
	b := small(f)
	f.Add(b.read(b.run.PlaceOf(b.run.valuesNo())))
	w := &bytescan.Writer{}
	w.Uvarint(0)
	w.Uvarint(setBits)
	w.Bytes([]byte{7})
	f.Add(w.Buf)
	f.Fuzz(func(t *testing.T, raw []byte) { valuesAnswer(t, b.run, raw) })
}
