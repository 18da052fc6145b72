package facts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A field is found by name only if everything that it lies in is.
func TestMapsNeedsEveryName(t *testing.T) {
	m := []MappedField{
		{ID: 1, Names: []string{"a"}},
		{ID: 2, Names: []string{}},
		{ID: 3, Names: []string{"s"}, Fields: []MappedField{{ID: 4, Names: []string{"x"}}, {ID: 5}}},
		{ID: 6, Names: nil, Fields: []MappedField{{ID: 7, Names: []string{"x"}, Fields: []MappedField{{ID: 8, Names: []string{"y"}}}}}},
	}
	for id, mapped := range map[int]bool{1: true, 2: false, 3: true, 4: true, 5: false, 6: false, 7: false, 8: false, 9: false} {
		require.Equal(t, mapped, Maps(m, id), "field %d", id)
	}
}
