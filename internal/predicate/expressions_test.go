package predicate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/predicate"
)

// TestFieldsOfStructsInLists: a null list is unknown, and so is one without a match and with a null struct or a null field in it.
func TestFieldsOfStructsInLists(t *testing.T) {
	s := docsSchema()
	items := s.ByID(22)
	skus := column.NewBuilder(column.Of(column.String))
	for _, sku := range []string{"a", "b", "", "a", "c"} {
		if sku == "" {
			skus.AppendNull()
		} else {
			skus.Append(column.StringValue(sku))
		}
	}
	structs := &column.Vector{Type: items.Leaf().Type.Fields[0].Type, Len: 5, Valid: []uint64{0b10111}, Kids: []*column.Vector{skus.Finish()}}
	// [a b] [null field] [null struct] null [] [c]
	lists := &column.Vector{Type: items.Leaf().Type, Len: 6, Valid: []uint64{0b110111}, Off: []uint32{0, 2, 3, 4, 4, 4, 5}, Kids: []*column.Vector{structs}}
	for text, want := range map[string]uint64{
		"contains(items.sku, 'a')": 0b000001, "NOT contains(items.sku, 'a')": 0b110000, "contains(items.sku, 'c')": 0b100000, "NOT contains(items.sku, 'x')": 0b110001,
	} {
		e := predicate.Compile(sql(t, s, text))
		require.Equal(t, items.Name(), e.Reads()[0].Name())
		require.Equal(t, []uint64{want}, e.Rows(&column.Batch{Rows: 6, Cols: []*column.Vector{lists}}), text)
	}
}

// TestExpressionsShareABatch: leaves on one expression and on its column read one vector, and one evaluator takes batch after batch.
func TestExpressionsShareABatch(t *testing.T) {
	s := docsSchema()
	e := predicate.Compile(sql(t, s, "payload -> '$.a' = '1' OR payload -> '$.a' IS NULL AND payload IS NOT NULL OR contains_token(payload, 'disk') OR payload = 'x'"))
	require.Len(t, e.Reads(), 1)
	for range 3 {
		for text, want := range map[string]uint64{`{"a":1}`: 1, `{"a":2}`: 0, `{"b":2}`: 1, `{"a":"disk full"}`: 1, "x": 1, "": 1} {
			b := column.NewBuilder(column.Of(column.String))
			b.Append(column.StringValue(text))
			b.AppendNull()
			require.Equal(t, []uint64{want}, e.Rows(&column.Batch{Rows: 2, Cols: []*column.Vector{b.Finish()}}), text)
		}
	}
	absent := &column.Vector{Type: column.Of(column.Unknown), Len: 2}
	require.Equal(t, []uint64{0}, e.Rows(&column.Batch{Rows: 2, Cols: []*column.Vector{absent}}))
}
