package predicate

import (
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// Names finds the columns of a schema by name.
type Names struct {
	schema *column.Schema
	// The spellings of a name in the order of preference; every map is from a key of the name to the paths that have it.
	spellings []spelling
}

type spelling struct {
	key   func(parts []string) string
	paths map[string][]column.Path
}

// NewNames indexes a schema. With anyCase a name that is nobody's exactly may match in another case.
func NewNames(s *column.Schema, anyCase bool) *Names {
	n := &Names{schema: s}
	add := func(key func([]string) string) {
		n.spellings = append(n.spellings, spelling{key, map[string][]column.Path{}})
	}
	exact := func(parts []string) string { return strings.Join(parts, "\x00") }
	full := func(parts []string) string { return strings.Join(parts, ".") }
	add(exact)
	add(full)
	if anyCase {
		add(func(parts []string) string { return fold(exact(parts)) })
		add(func(parts []string) string { return fold(full(parts)) })
	}
	s.Walk(func(p column.Path) bool {
		parts := make([]string, len(p))
		for i, f := range p {
			parts[i] = f.Name
		}
		p = slices.Clone(p)
		for _, x := range n.spellings {
			x.paths[x.key(parts)] = append(x.paths[x.key(parts)], p)
		}
		return true
	})
	n.addShort(s, anyCase)
	return n
}

// addShort lets fields of structs in lists be named without the element between them: items.sku for items.element.sku.
func (n *Names) addShort(s *column.Schema, anyCase bool) {
	keys := []func([]string) string{func(parts []string) string { return strings.Join(parts, ".") }}
	if anyCase {
		keys = append(keys, func(parts []string) string { return fold(strings.Join(parts, ".")) })
	}
	for _, key := range keys {
		x := spelling{key, map[string][]column.Path{}}
		s.Walk(func(p column.Path) bool {
			var parts []string
			for i, f := range p {
				if i == 0 || i+1 == len(p) || p[i-1].Type.Kind != column.List {
					parts = append(parts, f.Name)
				}
			}
			if len(parts) < len(p) {
				x.paths[key(parts)] = append(x.paths[key(parts)], slices.Clone(p))
			}
			return true
		})
		n.spellings = append(n.spellings, x)
	}
}

// fold makes names that differ in case only equal.
func fold(s string) string { return strings.ToLower(strings.ToUpper(s)) }

// Column finds the column that the parts of a dotted name mean. A part may hold dots itself. The exact parts come first,
// then the exact full name, then the same in any case, which must then have one match only, then names without the elements of lists.
func (n *Names) Column(parts []string) (Column, error) {
	name := strings.Join(parts, ".")
	for _, x := range n.spellings {
		switch hits := x.paths[x.key(parts)]; len(hits) {
		case 0:
		case 1:
			return Column{Path: hits[0]}, nil
		default:
			return Column{}, ambiguous(name, hits)
		}
	}
	return Column{}, unknownColumn(n.schema, name)
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
