package build

import (
	"slices"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index/indextest"
)

var text = column.Of(column.String)

func hashOf(t *testing.T, vectors ...*column.Vector) []string {
	t.Helper()
	h, err := newColumnHash(indextest.ListPath(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		if err := h.add(v); err != nil {
			t.Fatal(err)
		}
	}
	return h.finish()
}

// lists is rows of one-letter elements; a "-" is a null list.
func lists(rows ...string) *column.Vector {
	b := column.NewBuilder(text)
	v := &column.Vector{Type: indextest.ListPath(text)[0].Type, Len: len(rows), Valid: []uint64{0}, Off: []uint32{0}}
	for i, row := range rows {
		if row == "-" {
			row = ""
		} else {
			v.Valid[0] |= 1 << i
		}
		for _, c := range row {
			b.Append(column.StringValue(string(c)))
		}
		v.Off = append(v.Off, v.Off[i]+uint32(len(row)))
	}
	v.Kids = []*column.Vector{b.Finish()}
	return v
}

func TestHashesOfLists(t *testing.T) {
	whole := hashOf(t, lists("ab", "", "-", "c"))
	if again := hashOf(t, lists("ab", ""), lists("-", "c")); !slices.Equal(whole, again) {
		t.Error("the hash depends on the batches")
	}
	dict := lists("c", "ab", "", "-")
	if again := hashOf(t, &column.Vector{Type: dict.Type, Len: 4, Dict: dict, Idx: []uint32{1, 2, 3, 0}}); !slices.Equal(whole, again) {
		t.Error("the hash depends on the vector's form")
	}
	for _, other := range []*column.Vector{lists("a", "b", "-", "c"), lists("ab", "-", "", "c"), lists("ba", "", "-", "c"), lists("ab", "", "c", "-")} {
		if slices.Equal(whole, hashOf(t, other)) {
			t.Errorf("other lists have the same hash: %v", other.Off)
		}
	}
}
