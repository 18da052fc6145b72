package sketch

import (
	"math/bits"
	"strconv"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
)

const (
	name     = "sketch"
	paramK   = "k"
	defaultK = 4096 // 1.6 % standard error; what Iceberg's own statistics use
)

// Kind is the sketches. Parameter k is the hashes that theta keeps, a power of two from 512 to 65,536, by default 4,096: its standard
// error is 1/√k.
type Kind struct{}

// Check wants one primitive column, or the element of a list.
func (Kind) Check(cols []column.Path, params index.Params) error {
	if _, err := index.OneColumnOrElement(name, cols); err != nil {
		return err
	}
	if cols[0].Derived() {
		return fault.New(fault.Unsupported, cols[0].Name(), "is an expression; statistics are kept of columns")
	}
	if err := index.KnownParams(name, params, paramK); err != nil {
		return err
	}
	_, err := lgKOf(params)
	return err
}

func lgKOf(params index.Params) (uint8, error) {
	text, ok := params[paramK]
	if !ok {
		text = strconv.Itoa(defaultK)
	}
	k, err := strconv.ParseUint(text, 10, 32)
	if err != nil || bits.OnesCount64(k) != 1 || k < 1<<minLgK || k > 1<<maxLgK {
		return 0, fault.New(fault.Invalid, name, "k=%s is not a power of two from %d to %d", text, 1<<minLgK, 1<<maxLgK).
			WithFix("write for example k=%d", defaultK)
	}
	return uint8(bits.TrailingZeros64(k)), nil
}

// Says is nothing: sketches are for estimates.
func (Kind) Says([]column.Path, *predicate.Leaf) index.Power { return index.Nothing }
