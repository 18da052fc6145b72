package valueset

import (
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
)

// TestRowGroupsWithTooManyValuesAreCounted, and those that list theirs are not.
func TestRowGroupsWithTooManyValuesAreCounted(t *testing.T) {
	long := column.Of(column.Long)
	spec := index.Spec{Columns: []column.Path{{{ID: 1, Name: "v", Type: long}}}, Params: index.Params{index.ParamCap: "600"}, Rows: 3000, RowGroups: []uint32{0, 1000, 2000}, Pages: []uint32{0, 1000, 2000}}
	b, err := Kind{}.NewBuilder(spec, index.Budget{TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	values := column.NewBuilder(long)
	for i := range int64(3000) {
		if i < 1000 {
			i %= 3
		}
		values.Append(column.IntValue(column.Long, i))
	}
	if err := b.Add([]*column.Vector{values.Finish()}); err != nil {
		t.Fatal(err)
	}
	root, reason, err := b.Finish(&counting{})
	if err != nil || root == nil {
		t.Fatal(reason, err)
	}
	r, err := Kind{}.Open(root, 3000)
	if err != nil {
		t.Fatal(err)
	}
	if silent, parts := r.(index.Limited).Silent(); silent != 2 || parts != 3 {
		t.Errorf("%d of %d", silent, parts)
	}
}

// counting is a body of which the length alone is kept.
type counting struct{ n int64 }

func (c *counting) Write(p []byte) (int, error) { c.n += int64(len(p)); return len(p), nil }
func (c *counting) Offset() int64               { return c.n }
