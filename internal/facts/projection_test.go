package facts_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
)

// TestIn: identity partition values stand in for columns at any depth of structs, each file its own; other transforms, other specs
// and unknown values do not, and the paths that were asked for stay as they are.
func TestIn(t *testing.T) {
	seven := column.IntValue(column.Int, 7)
	a := column.Field{ID: 1, Name: "a", Type: column.Of(column.Int), Initial: &seven}
	b := column.Field{ID: 3, Name: "b", Type: column.Of(column.String)}
	s := column.Field{ID: 2, Name: "s", Type: column.Type{Kind: column.Struct, Fields: []column.Field{b}}}
	snap := &facts.Snapshot{
		Specs: map[int]*facts.Spec{
			0: {ID: 0, Fields: []facts.PartitionField{
				{ID: 1000, SourceID: 1, Transform: "identity"}, {ID: 1001, SourceID: 3, Transform: "identity"},
			}},
			1: {ID: 1, Fields: []facts.PartitionField{{ID: 1002, SourceID: 1, Transform: "bucket[4]"}}},
		},
		Files: facts.Files{
			SpecID: []int32{0, 0, 1, 0, 9},
			Partition: map[int]*facts.PartitionColumn{
				1000: {
					Known: []bool{true, true, false, false}, Null: []bool{false, true, false, false},
					Value: []column.Value{column.IntValue(column.Long, 5), {}, {}, {}}, // of the promoted type
				},
				1001: {Known: []bool{true, true}, Null: []bool{false, false}, Value: []column.Value{column.StringValue("x"), column.StringValue("y")}},
				1002: {Known: []bool{false, false, true}, Null: []bool{false, false, false}, Value: []column.Value{{}, {}, column.IntValue(column.Int, 3)}},
			},
		},
	}
	paths := []column.Path{{a}, {s}, {s, b}}
	five, x, y := column.IntValue(column.Int, 5), column.StringValue("x"), column.StringValue("y")
	for file, want := range [][2]*column.Value{{&five, &x}, {nil, &y}, {&seven, nil}, {&seven, nil}, {&seven, nil}} {
		got := snap.In(file, paths)
		require.Equal(t, want[0], got[0].Leaf().Initial, "file %d", file)
		require.Equal(t, want[1], got[1].Leaf().Type.Fields[0].Initial, "file %d", file)
		require.Equal(t, want[1], got[2].Leaf().Initial, "file %d", file)
	}
	require.Equal(t, &seven, paths[0].Leaf().Initial)
	require.Nil(t, s.Type.Fields[0].Initial)
	require.Nil(t, paths[2].Leaf().Initial)
}

func TestMaps(t *testing.T) {
	m := []facts.MappedField{{ID: 1, Names: []string{"a"}, Fields: []facts.MappedField{{ID: 3, Names: []string{"b"}}}}, {ID: 2, Names: []string{}}}
	for id, want := range map[int]bool{1: true, 2: false, 3: true, 4: false} {
		require.Equal(t, want, facts.Maps(m, id), "%d", id)
	}
}
