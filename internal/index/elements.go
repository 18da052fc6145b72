package index

import (
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/predicate"
)

// OfList reports whether a path runs through one list or map and ends at its element, key or value, or at a field of structs in it. An
// index of it is fed vectors of lists or maps.
func OfList(path column.Path) bool {
	at, ok := predicate.Column{Path: path}.Around()
	if !ok {
		return false
	}
	for _, f := range path[at+1:] {
		if f.Type.Kind == column.List || f.Type.Kind == column.Map {
			return false
		}
	}
	return true
}

// OneColumnOrElement is OneColumn for kinds that take the element of a list too.
func OneColumnOrElement(kind string, cols []column.Path) (Encoding, error) {
	switch {
	case len(cols) == 1 && cols[0].Repeated() && !OfList(cols[0]):
		return Encoding{}, fault.New(fault.Unsupported, cols[0].Name(), "is more than one list or map deep; %s takes values that are at most one deep", kind).
			WithFix("index a column, a field of a struct, the elements of a list of plain values or structs, or the keys or values of a map")
	case len(cols) != 1 || !OfList(cols[0]):
		return OneColumn(kind, cols)
	}
	e, err := EncodingOf(cols[0].Leaf().Type)
	return e, fault.About(cols[0].Name(), err)
}

// EqualElement is the test of an element that a Contains leaf, without its sign, makes: it is true of a row where it is true of some
// element. It is SQL's in both dialects: a NaN equals nothing.
func EqualElement(leaf *predicate.Leaf) *predicate.Leaf {
	path := leaf.Column.Path
	return &predicate.Leaf{Column: predicate.Column{Path: path[len(path)-1:]}, Op: predicate.Equal, Values: leaf.Values}
}

// Elements turns vectors of lists or maps into keys of their elements. Load, then ask for each row, then Keys for each element.
type Elements struct {
	Keys  *Keys
	side  int         // which of the vector's Kids holds the elements
	below column.Path // from an element that is a struct to the field
	rows  *column.Vector
	lists *column.Vector // rows, or their dictionary
}

// NewElements makes keys of encoding e of the values of a column. Of one that is no list (OfList) only Keys is used.
func NewElements(e Encoding, col column.Path) *Elements {
	x := &Elements{Keys: NewKeys(e)}
	if at, ok := (predicate.Column{Path: col}).Around(); ok {
		x.below = col[at+2:]
		if around := col[at].Type; around.Kind == column.Map && around.Fields[1].ID == col[at+1].ID {
			x.side = 1
		}
	}
	return x
}

// Load takes a vector of lists whose elements Keys.Load takes. The vector must stay valid while the keys are used.
func (x *Elements) Load(v *column.Vector) error {
	x.rows, x.lists = v, v
	if v.Dict != nil {
		x.lists = v.Dict
	}
	switch {
	case v.Type.Kind == column.Unknown || v.Nulls() == v.Len:
		x.lists = nil
		return nil
	case x.lists.Type.Kind != column.List && x.lists.Type.Kind != column.Map || x.lists.Dict != nil || len(x.lists.Kids) <= x.side:
		return fault.New(fault.Unsupported, v.Type.String(), "vector does not hold the lists of the index")
	}
	elements := x.lists.Kids[x.side].Descend(x.below)
	if elements == nil {
		return fault.New(fault.Unsupported, v.Type.String(), "vector does not hold the structs of the index")
	}
	return x.Keys.Load(elements)
}

// Row is the elements of row i, numbered for Keys; null: there is no list.
func (x *Elements) Row(i int) (from, to int, null bool) {
	if x.lists == nil || x.rows.Null(i) {
		return 0, 0, true
	}
	if x.rows.Dict != nil {
		if i = int(x.rows.Idx[i]); x.lists.Null(i) {
			return 0, 0, true
		}
	}
	return int(x.lists.Off[i]), int(x.lists.Off[i+1]), false
}
