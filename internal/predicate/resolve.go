package predicate

import (
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// Resolve finds the column that the parts of a dotted name mean. A part may hold dots itself. It tries, in this order,
// the exact parts, the exact full name, and, with anyCase, the same without regard to case, which must then have one
// match only.
func Resolve(s *column.Schema, parts []string, anyCase bool) (Column, error) {
	name := strings.Join(parts, ".")
	equals := []func(a, b string) bool{func(a, b string) bool { return a == b }}
	if anyCase {
		equals = append(equals, strings.EqualFold)
	}
	for _, equal := range equals {
		for _, same := range []func(column.Path) bool{
			func(p column.Path) bool { return samePath(p, parts, equal) },
			func(p column.Path) bool { return equal(p.Name(), name) },
		} {
			hits := matches(s, same)
			if len(hits) == 1 {
				return Column{Path: hits[0]}, nil
			}
			if len(hits) > 1 {
				return Column{}, ambiguous(name, hits)
			}
		}
	}
	return Column{}, unknownColumn(s, name)
}

func samePath(p column.Path, parts []string, equal func(a, b string) bool) bool {
	return len(p) == len(parts) && slices.EqualFunc(p, parts, func(f column.Field, part string) bool { return equal(f.Name, part) })
}

func matches(s *column.Schema, same func(column.Path) bool) []column.Path {
	var hits []column.Path
	s.Walk(func(p column.Path) bool {
		if same(p) {
			hits = append(hits, slices.Clone(p))
		}
		return true
	})
	return hits
}

func ambiguous(name string, hits []column.Path) error {
	names := make([]string, len(hits))
	for i, h := range hits {
		names[i] = Column{h}.sqlName()
	}
	return fault.New(fault.Invalid, name, "the name fits several columns: %s", strings.Join(names, ", ")).
		WithFix("write one of them exactly")
}

func unknownColumn(s *column.Schema, name string) error {
	e := fault.New(fault.Invalid, name, "no such column")
	best, distance := "", len(name)/2+1
	var names []string
	s.Walk(func(p column.Path) bool {
		full := p.Name()
		if len(p) == 1 {
			names = append(names, Column{p}.sqlName())
		}
		if d := editDistance(strings.ToLower(name), strings.ToLower(full), distance); d < distance {
			best, distance = Column{slices.Clone(p)}.sqlName(), d
		}
		return true
	})
	switch {
	case best != "":
		e.Fix = "did you mean " + best + "?"
	case len(names) > 0:
		const most = 20
		e.Fix = "the columns are " + strings.Join(names[:min(len(names), most)], ", ")
		if len(names) > most {
			e.Fix += ", …"
		}
	}
	return e
}

// editDistance is the Levenshtein distance in bytes, or limit if it is not below limit.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit || len(a) > 200 {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return min(row[len(b)], limit)
}
