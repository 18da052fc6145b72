package bitmap

import (
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
)

const (
	name = "bitmap"
	// defaultCap is where the sets of a file of a million rows hold some 250 rows each: beyond it they are lists of single rows,
	// which the ordered index keeps smaller.
	defaultCap = 4096
)

// Kind is the bitmap index. Parameter cap is the most distinct values of a file, 1 to 16,384, by default 4,096.
type Kind struct{ sizes }

// sizes is what a builder cuts by; the zero value means the constants of format.go. Readers do not depend on it.
type sizes struct{ inline, page, copied int }

func (s sizes) orDefault() sizes {
	if s.inline == 0 {
		s.inline, s.page = inlineRoot, pageTarget
	}
	if s.copied == 0 {
		s.copied = copiedBytes
	}
	return s
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
	return index.CapParam(name, params, defaultCap, maxCap, "ordered")
}

// ListsValues is true.
func (Kind) ListsValues() bool { return true }

// Says is exact for everything that can be asked of the column: of a list's element that is Contains alone. LIKE is tried on every value. A file with too many values answers null and NaN tests
// alone, and a verdict that would read more than the probe limit is weaker too.
func (Kind) Says(cols []column.Path, leaf *predicate.Leaf) index.Power {
	switch {
	case !index.About(cols, leaf) || (leaf.Op == predicate.Contains) != index.OfList(cols[0]):
		return index.Nothing
	case leaf.Op == predicate.In && len(leaf.Values) == 0 && index.PassesNaN(leaf):
		return index.Superset
	default:
		return index.Exact
	}
}
