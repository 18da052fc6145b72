package valueset

import (
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
)

const (
	name = "valueset"
	// defaultCap lists the values of a category, a status or a day. Sets larger than this are seldom without the value asked for,
	// and cost more to read than a Bloom filter's 4 KiB unit.
	defaultCap = 1024
)

// Kind is the value set. Parameter cap is the most distinct values of a row group, 1 to 16,384, by default 1,024.
type Kind struct {
	inline int // the largest root that holds sets; 0: the constant of format.go
}

// Check wants one primitive column, or the element of a list.
func (Kind) Check(cols []column.Path, params index.Params) error {
	if _, err := index.OneColumnOrElement(name, cols); err != nil {
		return err
	}
	if err := index.KnownParams(name, params, index.ParamCap); err != nil {
		return err
	}
	_, err := valueCap(params)
	return err
}

func valueCap(params index.Params) (int, error) {
	return index.CapParam(name, params, defaultCap, maxCap, "bloom")
}

// ListsValues is true.
func (Kind) ListsValues() bool { return true }

// Says is superset for everything that can be asked of the column: of a list's element that is Contains alone. A row group whose values all fail is ruled out, one whose values all pass is
// claimed, the rest is rechecked. LIKE is tried on every value.
func (Kind) Says(cols []column.Path, leaf *predicate.Leaf) index.Power {
	if !index.About(cols, leaf) || (leaf.Op == predicate.Contains) != index.OfList(cols[0]) {
		return index.Nothing
	}
	return index.Superset
}
