package ngram

import (
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
)

const name = "ngram"

var textEncoding = index.Encoding{Kind: column.String}

// Kind is the trigram index. It takes no parameters.
type Kind struct{ sizes }

// sizes is what a writer cuts by; the zero value means the constants of format.go. Readers do not depend on it.
type sizes struct{ block, inside, copied int }

func (s sizes) orDefault() sizes {
	if s.block == 0 {
		s.block, s.inside = blockTarget, blockTarget
	}
	if s.copied == 0 {
		s.copied = copiedRows
	}
	return s
}

// Check wants one string column outside lists and maps.
func (Kind) Check(cols []column.Path, params index.Params) error {
	if _, err := oneText(name, cols); err != nil {
		return err
	}
	return index.KnownParams(name, params)
}

func oneText(kind string, cols []column.Path) (index.Encoding, error) {
	e, err := index.OneColumn(kind, cols)
	if err == nil && e.Kind != column.String {
		err = fault.New(fault.Unsupported, cols[0].Name(), "is a %s; %s holds pieces of text", cols[0].Leaf().Type, kind).
			WithFix("index a string column, or use ordered or bloom")
	}
	return e, err
}

// Says is superset for what is asked of a text that must hold three bytes or more in a row, and exact for null tests. Absence of
// trigrams says nothing of a negation.
func (Kind) Says(cols []column.Path, leaf *predicate.Leaf) index.Power {
	switch {
	case !index.About(cols, leaf):
		return index.Nothing
	case leaf.Op == predicate.IsNull:
		return index.Exact
	case leaf.Negated || queryOf(leaf).op == all:
		return index.Nothing
	default:
		return index.Superset
	}
}
