package zonemap

import (
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
)

const name = "zonemap"

// Kind is the zone map. It takes no parameters.
type Kind struct{ sizes }

// sizes is what a builder cuts by; the zero value means the constants of format.go. Readers do not depend on it.
type sizes struct{ inline, block int }

func (s sizes) orDefault() sizes {
	if s == (sizes{}) {
		return sizes{inline: inlineRoot, block: blockTarget}
	}
	return s
}

// Check wants one primitive column outside lists and maps.
func (Kind) Check(cols []column.Path, params index.Params) error {
	if _, err := index.OneColumn(name, cols); err != nil {
		return err
	}
	return index.KnownParams(name, params)
}

// Says is superset for everything that bounds and counts speak of. A page where no row or every row matches is settled, the rest
// is rechecked.
func (Kind) Says(cols []column.Path, leaf *predicate.Leaf) index.Power {
	if !index.About(cols, leaf) || leaf.Op == predicate.Contains || leaf.Op == predicate.ILike || leaf.Op == predicate.Match {
		return index.Nothing
	}
	return index.Superset
}
