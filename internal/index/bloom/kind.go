package bloom

import (
	"strconv"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
)

const (
	name       = "bloom"
	paramFPP   = "fpp"
	defaultFPP = 0.01
	minFPP     = 0.0001
	worstFPP   = 0.2
)

// Kind is the Bloom filter. Parameter fpp is the false-positive rate per row group, 0.0001 to 0.2, by default 0.01.
type Kind struct {
	maxBlocks int // the largest filter; 0: the constant of format.go
}

// Check wants one primitive column, or the element of a list.
func (Kind) Check(cols []column.Path, params index.Params) error {
	if _, err := index.OneColumnOrElement(name, cols); err != nil {
		return err
	}
	if err := index.KnownParams(name, params, paramFPP); err != nil {
		return err
	}
	_, err := rate(params)
	return err
}

func rate(params index.Params) (float64, error) {
	text, ok := params[paramFPP]
	if !ok {
		return defaultFPP, nil
	}
	fpp, err := strconv.ParseFloat(text, 64)
	if err != nil || !(fpp >= minFPP && fpp <= worstFPP) {
		return 0, fault.New(fault.Invalid, name, "fpp=%s is not a false-positive rate from %v to %v", text, minFPP, worstFPP).
			WithFix("write for example fpp=%v; smaller is larger on disk", defaultFPP)
	}
	return fpp, nil
}

// Says is superset for =, IN and Contains and nothing else: absence of a value says nothing of its negation, of order or of nulls.
func (Kind) Says(cols []column.Path, leaf *predicate.Leaf) index.Power {
	if index.About(cols, leaf) && answers(leaf) {
		return index.Superset
	}
	return index.Nothing
}

func answers(leaf *predicate.Leaf) bool {
	return !leaf.Negated && (leaf.Op == predicate.Equal || leaf.Op == predicate.In || leaf.Op == predicate.Contains)
}
