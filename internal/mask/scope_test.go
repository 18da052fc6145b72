package mask

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
)

// scopeOf is the deletes that apply to a data file.
func scopeOf(t *testing.T, f *fixture, file int) applied {
	t.Helper()
	sc, err := newScope(f.s, f.masker.Map)
	require.NoError(t, err)
	a, err := sc.of(file)
	require.NoError(t, err)
	return a
}

// TestO27Sequences: equality deletes apply to strictly older data files, position deletes and vectors to equally old ones too.
func TestO27Sequences(t *testing.T) {
	for _, c := range []struct {
		data, delete              int64
		equality, position, point bool
	}{{5, 4, false, false, false}, {5, 5, false, true, true}, {5, 6, true, true, true}, {0, 0, false, true, true}} {
		f := newFixture(t, schema(field(1, "id", column.Long)))
		file := f.data(c.data, "/t/a.parquet", 2)
		eq := f.deletes(facts.EqualityDeletes, c.delete, "/t/eq")
		f.s.Deletes.FieldIDs[eq] = []int{1}
		pos := f.deletes(facts.PositionDeletes, c.delete, "/t/pos")
		named := f.deletes(facts.PositionDeletes, c.delete, "/t/named")
		f.s.Deletes.Referenced[named] = "/t/a.parquet"
		a := scopeOf(t, f, file)
		require.Equal(t, c.equality, len(a.equality) == 1, "%+v", c)
		require.Equal(t, c.position, len(a.positions) == 2, "%+v", c)
		require.Equal(t, int32(-1), a.vector)
		dv := f.deletes(facts.DeletionVector, c.delete, "/t/dv")
		f.s.Deletes.Referenced[dv] = "/t/a.parquet"
		a = scopeOf(t, f, file)
		require.Equal(t, c.point, a.vector == int32(dv), "%+v", c)
		require.Equal(t, c.equality, len(a.equality) == 1)
		_ = pos
	}
}

// partitioned gives a fixture the identity partition spec 0 on field 2, an empty spec 1 and a spec 2 with only a void field.
func partitioned(t *testing.T, typ column.Type) *fixture {
	f := newFixture(t, schema(field(1, "id", column.Long), column.Field{ID: 2, Name: "p", Type: typ}))
	f.s.Specs = map[int]*facts.Spec{
		0: {ID: 0, Fields: []facts.PartitionField{{ID: 1000, SourceID: 2, Name: "p", Transform: "identity"}}},
		1: {ID: 1},
		2: {ID: 2, Fields: []facts.PartitionField{{ID: 1001, SourceID: 2, Name: "p_void", Transform: "void"}}},
		3: {ID: 3, Fields: []facts.PartitionField{{ID: 1000, SourceID: 2, Name: "p", Transform: "identity"}}},
	}
	f.s.Files.Partition[1000] = &facts.PartitionColumn{Type: typ}
	return f
}

func (f *fixture) inPartition(spec int32, v *column.Value) int {
	i := f.data(1, "/t/"+string(rune('a'+f.s.Files.Len())), 2)
	f.s.Files.SpecID[i] = spec
	p := f.s.Files.Partition[1000]
	p.Known, p.Null = append(p.Known, spec == 0 || spec == 3), append(p.Null, v == nil)
	if v == nil {
		v = &column.Value{}
	}
	p.Value = append(p.Value, *v)
	return i
}

func (f *fixture) deletePartition(kind facts.DeleteKind, spec int32, values ...facts.PartitionValue) int {
	i := f.deletes(kind, 2, "/t/del")
	f.s.Deletes.SpecID[i], f.s.Deletes.Partition[i], f.s.Deletes.FieldIDs[i] = spec, values, []int{1}
	return i
}

// TestO28GlobalEqualityDeletes: written under a spec without fields, or with void ones only, they apply to every partition of every
// spec; position deletes never do.
func TestO28GlobalEqualityDeletes(t *testing.T) {
	f := partitioned(t, column.Of(column.Long))
	one, two := column.IntValue(column.Long, 1), column.IntValue(column.Long, 2)
	files := []int{f.inPartition(0, &one), f.inPartition(0, &two), f.inPartition(3, &one), f.inPartition(1, nil)}
	f.deletePartition(facts.EqualityDeletes, 1)
	f.deletePartition(facts.EqualityDeletes, 2, facts.PartitionValue{Null: true})
	f.deletePartition(facts.EqualityDeletes, 0, facts.PartitionValue{Value: one})
	f.deletePartition(facts.PositionDeletes, 1)
	f.deletePartition(facts.PositionDeletes, 0, facts.PartitionValue{Value: one})
	for i, want := range [][2][]int32{{{0, 1, 2}, {4}}, {{0, 1}, nil}, {{0, 1}, nil}, {{0, 1}, {3}}} {
		a := scopeOf(t, f, files[i])
		require.Equal(t, want[0], a.equality, "file %d", i)
		require.Equal(t, want[1], a.positions, "file %d", i)
	}
}

// TestO28Doubt: equality deletes of a partitioned spec without a partition may be global or not; that is reported, and only where
// it matters.
func TestO28Doubt(t *testing.T) {
	f := partitioned(t, column.Of(column.Long))
	one := column.IntValue(column.Long, 1)
	old, young := f.inPartition(0, &one), f.inPartition(0, &one)
	f.s.Files.Sequence[young] = 2
	f.deletePartition(facts.EqualityDeletes, 0)
	sc, err := newScope(f.s, nil)
	require.NoError(t, err)
	_, err = sc.of(old)
	require.True(t, fault.Is(err, fault.Corrupt), "%v", err)
	require.Contains(t, err.Error(), "/t/del")
	require.Contains(t, err.Error(), "spec 0")
	a, err := sc.of(young)
	require.NoError(t, err)
	require.True(t, a.none())
}

// TestPartitionsCompare: null is a partition, NaN is one, and zeros of either sign are two.
func TestPartitionsCompare(t *testing.T) {
	f := partitioned(t, column.Of(column.Double))
	values := []*column.Value{nil}
	for _, x := range []float64{math.NaN(), 0, math.Copysign(0, -1), 1} {
		v := column.DoubleValue(x)
		values = append(values, &v)
	}
	other := column.Value{Kind: column.Double, Lo: math.Float64bits(math.NaN()) | 1<<63}
	for _, v := range values {
		f.inPartition(0, v)
	}
	for _, v := range values {
		p := facts.PartitionValue{Null: v == nil}
		if v != nil {
			p.Value = *v
			if v.IsNaN() {
				p.Value = other
			}
		}
		f.deletePartition(facts.PositionDeletes, 0, p)
	}
	for i := range values {
		require.Equal(t, []int32{int32(i)}, scopeOf(t, f, i).positions)
	}
}

// TestVectorTakesThePlaceOfPositions: where a vector applies, position deletes do not.
func TestVectorTakesThePlaceOfPositions(t *testing.T) {
	f := newFixture(t, schema(field(1, "id", column.Long)))
	a, b := f.data(3, "/t/a", 9), f.data(3, "/t/b", 9)
	named := f.deletes(facts.PositionDeletes, 4, "/t/named")
	f.s.Deletes.Referenced[named] = "/t/a"
	pos := f.deletes(facts.PositionDeletes, 4, "/t/pos")
	dv := f.deletes(facts.DeletionVector, 4, "/t/dv")
	f.s.Deletes.Referenced[dv] = "/t/a"
	stale := f.deletes(facts.DeletionVector, 2, "/t/stale") // older than its file: applies to none, and takes no place
	f.s.Deletes.Referenced[stale] = "/t/b"
	gone := f.deletes(facts.DeletionVector, 4, "/t/dangling")
	f.s.Deletes.Referenced[gone] = "/t/gone"
	require.Equal(t, applied{vector: int32(dv)}, scopeOf(t, f, a))
	require.Equal(t, applied{vector: -1, positions: []int32{int32(pos)}}, scopeOf(t, f, b))
}

func TestTwoVectorsAreCorrupt(t *testing.T) {
	f := newFixture(t, schema(field(1, "id", column.Long)))
	f.data(3, "/t/a", 9)
	for i, path := range []string{"/t/one", "/t/two"} {
		dv := f.deletes(facts.DeletionVector, 4+int64(i), path)
		f.s.Deletes.Referenced[dv] = "/t/a"
	}
	_, _, err := f.masks(Options{})
	require.True(t, fault.Is(err, fault.Corrupt), "%v", err)
	for _, name := range []string{"/t/a", "/t/one", "/t/two"} {
		require.Contains(t, err.Error(), name)
	}
}

// TestNamedDeletesStayInTheirPartition: naming a file does not take a position delete file out of its partition.
func TestNamedDeletesStayInTheirPartition(t *testing.T) {
	f := partitioned(t, column.Of(column.Long))
	one, two := column.IntValue(column.Long, 1), column.IntValue(column.Long, 2)
	file := f.inPartition(0, &one)
	for _, v := range []column.Value{one, two} {
		i := f.deletePartition(facts.PositionDeletes, 0, facts.PartitionValue{Value: v})
		f.s.Deletes.Referenced[i] = f.s.Files.Stated[file]
	}
	require.Equal(t, []int32{0}, scopeOf(t, f, file).positions)
}
