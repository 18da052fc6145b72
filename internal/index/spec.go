package index

import (
	"slices"
	"strconv"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/predicate"
)

// OneColumn is the check of kinds that index exactly one primitive column: its encoding, or why it cannot be indexed.
func OneColumn(kind string, cols []column.Path) (Encoding, error) {
	if len(cols) != 1 || len(cols[0]) == 0 {
		return Encoding{}, fault.New(fault.Invalid, kind, "takes one column, got %d", len(cols)).
			WithFix("declare one %s index per column: %s(a), %s(b)", kind, kind, kind)
	}
	path := cols[0]
	if path.Repeated() {
		return Encoding{}, fault.New(fault.Unsupported, path.Name(), "lies inside a list or map, of which %s holds one value a row", kind).
			WithFix("index a top-level column or a struct field")
	}
	e, err := EncodingOf(path.Leaf().Type)
	if err != nil {
		return Encoding{}, fault.About(path.Name(), err)
	}
	return e, nil
}

// ExprParam is the key under which a definition's parameters hold the expression of its column. It is no parameter of a kind.
const ExprParam = "expr"

// ParamCap is the key of the parameter that CapParam reads.
const ParamCap = "cap"

// KnownParams fails when params has a key that is not among known, ExprParam apart.
func KnownParams(kind string, params Params, known ...string) error {
	keys := make([]string, 0, len(params))
	for k := range params {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if slices.Contains(known, k) || k == ExprParam {
			continue
		}
		err := fault.New(fault.Invalid, kind, "has no parameter %q", k)
		if len(known) == 0 {
			return err.WithFix("%s takes no parameters", kind)
		}
		return err.WithFix("parameters of %s: %v", kind, known)
	}
	return nil
}

// CapParam is the most distinct values that a kind keeps where it has such a parameter: 1 to most, or without a word def. Columns
// with more are better served by the kind instead.
func CapParam(kind string, params Params, def, most int, instead string) (int, error) {
	text, ok := params[ParamCap]
	if !ok {
		return def, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, fault.New(fault.Invalid, kind, "%s=%s is not a number of values from 1 to %d", ParamCap, text, most).
			WithFix("write for example %s=%d; columns with more values are better served by %s", ParamCap, def, instead)
	}
	return n, nil
}

// About reports whether the leaf tests the one indexed column.
func About(cols []column.Path, leaf *predicate.Leaf) bool {
	return len(cols) == 1 && len(cols[0]) > 0 && len(leaf.Column.Path) > 0 && cols[0].Leaf().ID == leaf.Column.ID()
}

// Granules returns the starts of RowGroups and Pages, made strictly ascending (empty granules dropped). It fails unless both
// start at row 0 and stay below Rows, and Pages contains RowGroups.
func (s *Spec) Granules() (groups, pages []uint32, err error) {
	groups, pages = dropEmpty(s.RowGroups, s.Rows), dropEmpty(s.Pages, s.Rows)
	for _, starts := range [][]uint32{groups, pages} {
		if s.Rows > 0 && (len(starts) == 0 || starts[0] != 0 || !slices.IsSorted(starts) || starts[len(starts)-1] >= s.Rows) {
			return nil, nil, fault.New(fault.Invalid, "granules", "do not cut %d rows: starts are not ascending from 0", s.Rows)
		}
	}
	for _, g := range groups {
		if _, ok := slices.BinarySearch(pages, g); !ok {
			return nil, nil, fault.New(fault.Invalid, "granules", "no page starts at row %d, where a row group does", g)
		}
	}
	return groups, pages, nil
}

func dropEmpty(starts []uint32, rows uint32) []uint32 {
	out := slices.Compact(slices.Clone(starts))
	for len(out) > 0 && out[len(out)-1] == rows {
		out = out[:len(out)-1]
	}
	return out
}

// RowCount checks that a builder is fed exactly the rows of its Spec.
type RowCount struct{ Want, Got uint32 }

// Add counts n more rows and fails when there are too many.
func (c *RowCount) Add(n int) error {
	if n < 0 || uint64(n) > uint64(c.Want-c.Got) {
		return fault.New(fault.Invalid, "index build", "fed more than the %d rows announced", c.Want)
	}
	c.Got += uint32(n)
	return nil
}

// Done fails when rows are missing.
func (c *RowCount) Done() error {
	if c.Got != c.Want {
		return fault.New(fault.Invalid, "index build", "fed %d rows of the %d announced", c.Got, c.Want)
	}
	return nil
}

// Cut ends the segment after the rows that were counted, which are rows.
func (c *RowCount) Cut(rows uint32) error {
	if c.Got != rows {
		return fault.New(fault.Invalid, "index build", "a segment of %d rows cannot end with %d", c.Got, rows)
	}
	c.Want = rows
	return nil
}

// defaultMemory is what a build may hold when its budget does not say.
const defaultMemory = 256 << 20

// Bytes is the memory of the budget, a default where none is stated.
func (b Budget) Bytes() int64 {
	if b.Memory <= 0 {
		return defaultMemory
	}
	return b.Memory
}
