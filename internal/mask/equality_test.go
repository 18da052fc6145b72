package mask

import (
	"context"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
)

// TestO29NullKeys: a key deletes what equals it, null included, and nothing else.
func TestO29NullKeys(t *testing.T) {
	s := schema(field(1, "status", column.String))
	for _, dictionary := range []bool{false, true} {
		f := newFixture(t, s)
		f.layout.Dictionary = dictionary
		f.rowsOf(1, s, "ACTIVE", "INACTIVE", nil)
		f.keys(2, s, "INACTIVE")
		f.gone([]uint32{1})
		f.keys(3, s, nil)
		f.gone([]uint32{1, 2})
	}
}

// TestFloatKeys: NaN equals NaN whatever its bits, and zeros of either sign are two values.
func TestFloatKeys(t *testing.T) {
	negative, otherNaN := math.Copysign(0, -1), math.Float64frombits(math.Float64bits(math.NaN())|1<<63|7)
	for _, kind := range []column.Kind{column.Float, column.Double} {
		s := schema(field(1, "x", kind))
		for _, c := range []struct {
			key  float64
			want []uint32
		}{{0, []uint32{1}}, {negative, []uint32{2}}, {math.NaN(), []uint32{3, 4}}, {otherNaN, []uint32{3, 4}}, {1.5, []uint32{0}}, {2, nil}} {
			f := newFixture(t, s)
			f.rowsOf(1, s, 1.5, 0.0, negative, math.NaN(), otherNaN, nil)
			f.keys(2, s, c.key)
			f.gone(c.want)
		}
	}
}

// TestEmptyStringIsNoNull and other values that are near one another.
func TestEmptyStringIsNoNull(t *testing.T) {
	s := schema(field(1, "a", column.String), field(2, "b", column.String))
	f := newFixture(t, s)
	f.rowsOf(1, s, "", nil, nil, "", "a", "b", "ab", "", "", "ab", nil, nil)
	f.keys(2, s, "", nil, "ab", "")
	f.gone([]uint32{0, 3})
}

// TestKeysByFieldID: names do not matter, neither do orders nor columns that the key does not have.
func TestKeysByFieldID(t *testing.T) {
	old := schema(field(1, "id", column.Long), field(2, "name", column.String))
	now := schema(field(2, "title", column.String), field(1, "number", column.Long), field(3, "name", column.String))
	now.ID = 1
	f := newFixture(t, now)
	f.s.Schemas[0] = old
	f.rowsOf(1, old, 1, "a", 2, "b", 3, "c")
	f.rowsOf(1, now, "b", 2, "x", "c", 4, "y")
	f.keys(2, schema(field(2, "name", column.String)), "b")
	f.keys(2, schema(field(2, "whatever", column.String), field(1, "id", column.Long)), "c", 3, "c", 5)
	f.gone([]uint32{1, 2}, []uint32{0})
}

// TestExtraColumnsAreNoKeys: a delete file may hold more columns than its key.
func TestExtraColumnsAreNoKeys(t *testing.T) {
	s := schema(field(1, "id", column.Long), field(2, "name", column.String))
	f := newFixture(t, s)
	f.rowsOf(1, s, 1, "a", 2, "b")
	i := f.keys(2, s, 1, "other")
	f.s.Deletes.FieldIDs[i] = []int{1}
	f.renew()
	f.gone([]uint32{0})
}

// TestPromotedKeys: an int key file meets long data, and the other way round; float and double likewise.
func TestPromotedKeys(t *testing.T) {
	narrow, wide := schema(field(1, "x", column.Int), field(2, "y", column.Float)), schema(field(1, "x", column.Long), field(2, "y", column.Double))
	wide.ID = 1
	for _, c := range [][2]*column.Schema{{narrow, wide}, {wide, narrow}, {narrow, narrow}} {
		for _, current := range []*column.Schema{narrow, wide} { // narrow: time travel to before the promotion
			f := newFixture(t, current)
			f.s.Schemas = map[int]*column.Schema{0: narrow, 1: wide}
			f.rowsOf(1, c[0], -7, 1.5, 8, -2.5, nil, nil)
			f.keys(2, c[1], -7, 1.5, 8, 1.5)
			f.keys(2, schema(c[1].Fields[1]), -2.5)
			f.gone([]uint32{0, 1})
		}
	}
}

// TestDroppedKeys: a key column that the table no longer has is found in the schema that had it.
func TestDroppedKeys(t *testing.T) {
	old, now := schema(field(1, "id", column.Long), field(2, "gone", column.String)), schema(field(1, "id", column.Long))
	now.ID = 4
	f := newFixture(t, now)
	f.s.Schemas[2] = old
	f.rowsOf(1, old, 1, "a", 2, "b")
	f.rowsOf(1, now, 1)
	f.keys(2, schema(old.Fields[1]), "b", nil)
	f.gone([]uint32{1}, []uint32{0})
}

// TestAddedKeys: rows written before a key column have its initial default, or null.
func TestAddedKeys(t *testing.T) {
	old := schema(field(1, "id", column.Long))
	eur := column.StringValue("EUR")
	now := schema(field(1, "id", column.Long), field(2, "note", column.String), field(3, "currency", column.String))
	now.Fields[2].Initial = &eur
	now.ID = 1
	f := newFixture(t, now)
	f.rowsOf(1, old, 1, 2)
	f.rowsOf(1, now, 3, "x", "USD", 4, nil, "EUR")
	f.keys(2, schema(now.Fields[2]), "EUR")
	f.gone([]uint32{0, 1}, []uint32{1})
	f = newFixture(t, now)
	f.rowsOf(1, old, 1, 2)
	f.rowsOf(1, now, 3, "x", "USD", 4, nil, "EUR")
	f.keys(2, schema(now.Fields[0], now.Fields[1]), 2, nil, 3, "y")
	f.gone([]uint32{1}, nil)
}

// TestSeveralKeySets are read once each, and united.
func TestSeveralKeySets(t *testing.T) {
	s := schema(field(1, "id", column.Long), field(2, "name", column.String))
	f := newFixture(t, s)
	f.rowsOf(1, s, 1, "a", 2, "b", 3, "c", 4, "d")
	f.rowsOf(3, s, 1, "a", 2, "b", 4, "d")
	f.keys(2, schema(s.Fields[0]), 1)
	f.keys(3, schema(s.Fields[1]), "b")
	f.keys(4, s, 4, "d", 3, "d")
	f.gone([]uint32{0, 1, 3}, []uint32{2})
}

// avro writes an Avro file of a text and an optional int "id" by hand.
func (f *fixture) avro(ids ...any) string {
	f.Helper()
	schemaText := `{"type":"record","name":"r","fields":[{"name":"n","type":"string","field-id":9},{"name":"id","field-id":1,"type":["null","int"]}]}`
	b := append([]byte("Obj\x01\x02\x16avro.schema"), varint(len(schemaText))...)
	b = append(b, schemaText...)
	b = append(b, 0)
	b = append(b, "0123456789abcdef"...)
	var block []byte
	for _, id := range ids {
		if block = append(block, 2, 'x'); id == nil {
			block = append(block, 0)
		} else {
			block = append(block, 2, byte(2*id.(int)))
		}
	}
	b = append(b, byte(2*len(ids)), byte(2*len(block)))
	b = append(b, block...)
	b = append(b, "0123456789abcdef"...)
	path := f.path("avro")
	require.NoError(f, os.WriteFile(path, b, 0o600))
	return path
}

// TestAvroKeys reads key rows that an Avro file holds.
func TestAvroKeys(t *testing.T) {
	s := schema(field(1, "id", column.Long))
	f := newFixture(t, s)
	f.rowsOf(1, s, 1, 2, nil)
	i := f.deletes(facts.EqualityDeletes, 2, f.avro(2, nil))
	f.s.Deletes.Format[i], f.s.Deletes.FieldIDs[i] = facts.Avro, []int{1}
	f.gone([]uint32{1, 2})
}

// TestAvroData: equality and position deletes of an Avro data file.
func TestAvroData(t *testing.T) {
	s := schema(field(1, "id", column.Long), field(2, "late", column.Int))
	f := newFixture(t, s)
	path := f.avro(1, 2, nil, 3, 2)
	file := f.data(1, path, 5)
	f.s.Files.Format[file] = facts.Avro
	f.rowsOf(1, s, 2, 7, 4, nil)
	f.keys(2, schema(s.Fields[0]), 2)
	f.keys(2, s, nil, nil, 4, nil, 3, 7)
	f.positions(2, path, 3)
	f.gone([]uint32{1, 2, 3, 4}, []uint32{0, 1})
	_, report, err := f.masker.Masks(context.Background(), f.s, []File{{Ordinal: file, Tag: "another"}}, Options{})
	require.True(t, fault.Is(err, fault.Stale), "%v", err)
	require.Equal(t, path, report.Changed)
	f.s.Files.Format[file] = facts.ORC
	f.renew()
	_, _, err = f.masks(Options{})
	require.True(t, fault.Is(err, fault.Unsupported), "%v", err)
	require.Contains(t, err.Error(), path)
}

func varint(n int) []byte { return []byte{byte(2*n) | 0x80, byte(2 * n >> 7)} }

// TestRefusedDeletes: a delete file that cannot be read is an error that names it, never ignored; one that applies to no file is
// not even opened.
func TestRefusedDeletes(t *testing.T) {
	s := schema(field(1, "id", column.Long), field(2, "l", column.List))
	s.Fields[1].Type.Fields = []column.Field{field(3, "element", column.Int)}
	ids := schema(s.Fields[0])
	for name, c := range map[string]struct {
		change func(f *fixture, d *facts.Deletes)
		class  fault.Class
		say    string
	}{
		"ORC":          {func(_ *fixture, d *facts.Deletes) { d.Format[0] = facts.ORC }, fault.Unsupported, "ORC"},
		"Puffin":       {func(_ *fixture, d *facts.Deletes) { d.Format[0] = facts.Puffin }, fault.Corrupt, "format"},
		"encrypted":    {func(_ *fixture, d *facts.Deletes) { d.Encrypted[0] = true }, fault.Unsupported, "encrypted"},
		"missing":      {func(_ *fixture, d *facts.Deletes) { d.Path[0] += ".gone" }, fault.NotFound, ""},
		"damaged":      {func(f *fixture, d *facts.Deletes) { f.damage(d.Path[0]) }, fault.Corrupt, ""},
		"no ids":       {func(_ *fixture, d *facts.Deletes) { d.FieldIDs[0] = nil }, fault.Corrupt, "without field ids"},
		"unknown id":   {func(_ *fixture, d *facts.Deletes) { d.FieldIDs[0] = []int{99} }, fault.Corrupt, "field id 99"},
		"list":         {func(_ *fixture, d *facts.Deletes) { d.FieldIDs[0] = []int{2} }, fault.Unsupported, "plain value"},
		"element":      {func(_ *fixture, d *facts.Deletes) { d.FieldIDs[0] = []int{3} }, fault.Unsupported, "plain value"},
		"other column": {func(f *fixture, d *facts.Deletes) { d.FieldIDs[0] = []int{1, 4} }, fault.Corrupt, "field id 4"},
	} {
		f := newFixture(t, schema(append(s.Fields, field(4, "late", column.Int))...))
		f.rowsOf(1, ids, 1, 2)
		f.keys(2, ids, 2)
		c.change(f, &f.s.Deletes)
		f.renew()
		path := f.s.Deletes.Path[0]
		for _, o := range []Options{{}, {KeepAll: true}} {
			_, _, err := f.masks(o)
			require.True(t, fault.Is(err, c.class), "%s: %v", name, err)
			require.Contains(t, err.Error(), path, name)
			require.Contains(t, err.Error(), c.say, name)
		}
		f.s.Files.Sequence[0] = 2
		f.renew()
		f.gone(nil)
	}
}

// damage breaks the pages of a Parquet file.
func (f *fixture) damage(path string) {
	f.Helper()
	b, err := os.ReadFile(path)
	require.NoError(f, err)
	for i := 4; i < 40; i++ {
		b[i] ^= 0xff
	}
	require.NoError(f, os.WriteFile(path, b, 0o600))
}

// TestKeyMemory: keys beyond the bound are Exhausted, those of one file while it is read, those of several together.
func TestKeyMemory(t *testing.T) {
	s := schema(field(1, "id", column.Long))
	for say, files := range map[string]int{"its keys take more": 1, "the keys of 3 equality": 3} {
		f := newFixture(t, s)
		f.masker.Memory = 4000
		f.rowsOf(1, s, 1, 2)
		for i := range files {
			var keys []any
			for k := range 90 / files {
				keys = append(keys, 100*i+k)
			}
			f.keys(2, s, keys...)
		}
		_, _, err := f.masks(Options{})
		require.True(t, fault.Is(err, fault.Exhausted), "%v", err)
		require.Contains(t, err.Error(), f.dir)
		require.Contains(t, err.Error(), say)
		require.NotEmpty(t, fault.FixOf(err))
		f.masker.Memory = 10000
		f.renew()
		_, _, err = f.masks(Options{})
		require.NoError(t, err)
	}
}

// sorted is a data file of n ascending ids, and something to pad them.
func (f *fixture) sorted(sequence int64, s *column.Schema, n int) int {
	var values []any
	for i := range n {
		values = append(values, i)
	}
	return f.rowsOf(sequence, s, values...)
}

// TestPairsAreEvaluatedOnce: nothing is read a second time, a new delete file costs its own evaluation alone, and only the rows of
// interest are read.
func TestPairsAreEvaluatedOnce(t *testing.T) {
	s := schema(field(1, "id", column.Long))
	f := newFixture(t, s)
	f.sorted(1, s, 1000)
	f.sorted(1, s, 1000)
	f.keys(2, s, 5, 998)
	u, report := f.cost()
	require.Equal(t, 1, report.DeleteFiles)
	require.LessOrEqual(t, u.Waves, int64(4))
	u, report = f.cost()
	require.Zero(t, u.Requests())
	require.Zero(t, report.DeleteFiles)
	f.keys(3, s, 6)
	_, report = f.cost()
	require.Equal(t, 1, report.DeleteFiles)
	f.gone([]uint32{5, 6, 998}, []uint32{5, 6, 998})
	f.masker.Cache = NewCache(0) // nothing is kept
	u, report = f.cost()
	require.Positive(t, u.Requests())
	require.Equal(t, 2, report.DeleteFiles)
}

// TestOnlyRowsOfInterest: rows that do not matter are not read, and are read when they do.
func TestOnlyRowsOfInterest(t *testing.T) {
	s := schema(field(1, "id", column.Long))
	f := newFixture(t, s)
	file := f.sorted(1, s, 1000)
	f.keys(2, s, 5, 450, 998)
	ask := func(rows ...rowset.Range) (*rowset.Set, int64) {
		var c store.Counter
		masks, _, err := f.masker.Masks(store.WithCounter(context.Background(), &c), f.s,
			[]File{{Ordinal: file, Interest: rowset.FromRanges(1000, rows)}}, Options{})
		require.NoError(t, err)
		return masks[0].Set(1000), c.Usage().Requests()
	}
	got, _ := ask(rowset.Range{Start: 400, End: 500})
	require.Equal(t, []uint32{450}, got.Rows(nil))
	got, requests := ask(rowset.Range{Start: 420, End: 480})
	require.Equal(t, []uint32{450}, got.Rows(nil))
	require.Zero(t, requests)
	got, requests = ask(rowset.Range{Start: 0, End: 1000})
	require.Equal(t, []uint32{5, 450, 998}, got.Rows(nil))
	require.Positive(t, requests)
	_, requests = ask(rowset.Range{Start: 0, End: 1000})
	require.Zero(t, requests)
}

// TestKeysSkipRowGroups: a key column is read only where keys may occur.
func TestKeysSkipRowGroups(t *testing.T) {
	s := schema(field(1, "id", column.Long), field(2, "pad", column.String))
	f := newFixture(t, s)
	f.layout.RowsPerGroup = 5000
	f.layout.PageBytes = 1 << 12
	var values []any
	for i := range 60000 {
		values = append(values, i, "some padding that makes the file long")
	}
	f.rowsOf(1, s, values...)
	f.keys(2, schema(s.Fields[0]), 31234, 31240)
	u, _ := f.cost()
	require.Less(t, u.BytesRead, int64(200<<10), "of %d", f.s.Files.Size[0])
	f.gone([]uint32{31234, 31240})
}

// TestOverwrittenDataFile: another incarnation of a data file is evaluated anew, and a tag that does not match names the file.
func TestOverwrittenDataFile(t *testing.T) {
	s := schema(field(1, "id", column.Long))
	f := newFixture(t, s)
	file := f.rowsOf(1, s, 1, 2, 3)
	f.keys(2, s, 2)
	f.gone([]uint32{1})
	path := f.s.Files.Path[file]
	other := f.write(s, rows(s, 2, 1, 2))
	require.NoError(t, os.Rename(other, path))
	f.masker.Footers.Forget(path)
	f.gone([]uint32{0, 2})
	_, report, err := f.masker.Masks(context.Background(), f.s, []File{{Ordinal: file, Tag: "another"}}, Options{})
	require.True(t, fault.Is(err, fault.Stale), "%v", err)
	require.Equal(t, path, report.Changed)
}

// TestFooterDisagrees: a file with more rows than its manifest states is masked over all of them.
func TestFooterDisagrees(t *testing.T) {
	s := schema(field(1, "id", column.Long))
	f := newFixture(t, s)
	f.rowsOf(1, s, 1, 2, 3, 2)
	f.s.Files.Records[0] = 2
	f.keys(2, s, 2)
	masks, _, err := f.masker.Masks(context.Background(), f.s, []File{{Interest: rowset.All(2)}}, Options{})
	require.NoError(t, err)
	require.Equal(t, []uint32{1, 3}, masks[0].Set(4).Rows(nil))
	require.False(t, masks[0].Fits(2))
	require.True(t, masks[0].Fits(4))
}

// TestLargeFilesAreEvaluatedInParts: a file of many rows is read by some row groups at a time.
func TestLargeFilesAreEvaluatedInParts(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 600,000 rows")
	}
	s := schema(field(1, "id", column.Long))
	f := newFixture(t, s)
	f.layout.RowsPerGroup, f.layout.PageIndex = 300_000, false
	f.sorted(1, s, 600_000)
	f.masker.Memory = 3 << 20
	f.keys(2, s, 5, 299_999, 300_000, 599_999)
	f.gone([]uint32{5, 299_999, 300_000, 599_999})
}

// TestDeleteFilesOfOneKeySet: each is looked for where its own keys may be.
func TestDeleteFilesOfOneKeySet(t *testing.T) {
	s := schema(field(1, "id", column.Long))
	f := newFixture(t, s)
	f.sorted(1, s, 1000)
	f.keys(2, s, 5)
	f.keys(2, s, 998)
	f.keys(2, s, 450)
	f.gone([]uint32{5, 450, 998})
}

// TestKeysInThePartition: a data file without the source column of its identity partition has the partition's value in every row.
func TestKeysInThePartition(t *testing.T) {
	f := partitioned(t, column.Of(column.Long))
	ids := schema(f.s.Schema.Fields[0])
	for i, v := range []int64{7, 8} {
		value := column.IntValue(column.Long, v)
		file := f.inPartition(0, &value)
		path := f.write(ids, rows(ids, 1, 2, 3))
		f.s.Files.Path[file], f.s.Files.Stated[file], f.s.Files.Size[file], f.s.Files.Records[file] = path, path, size(t, path), 3
		key := f.keys(2, schema(f.s.Schema.Fields[1], f.s.Schema.Fields[0]), 7, 1+i)
		f.s.Deletes.SpecID[key] = 1 // global
	}
	f.renew()
	f.gone([]uint32{0, 1}, nil)
}
