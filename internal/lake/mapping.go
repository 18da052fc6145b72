package lake

import (
	"strings"

	"github.com/skomerdb/skomer/internal/fault"
)

// Rule moves the locations below From to To.
type Rule struct{ From, To string }

// Mapping moves locations that were written elsewhere. The longest From that is a prefix ending at a path boundary wins; a
// location that no rule covers stays as it is. Nothing is decoded or cleaned.
type Mapping []Rule

// ParseRule reads FROM=TO, cut at the last equals sign: FROM may hold some, as partition folders do, TO may not.
func ParseRule(text string) (Rule, error) {
	i := strings.LastIndexByte(text, '=')
	if i < 0 || i == len(text)-1 {
		return Rule{}, fault.New(fault.Invalid, "--map "+text, "expected FROM=TO").
			WithFix("for example --map s3://bucket/table=/data/table")
	}
	return Rule{From: text[:i], To: text[i+1:]}, nil
}

// Apply is where a stated location is found.
func (m Mapping) Apply(location string) string {
	best, bestLen := "", -1
	for _, r := range m {
		from := trimSlash(r.From)
		if len(from) <= bestLen || !below(location, from) {
			continue
		}
		bestLen = len(from)
		rest := location[len(from):]
		if from == "" && !strings.HasPrefix(rest, "/") {
			rest = "/" + rest
		}
		best = trimSlash(r.To) + rest
	}
	if bestLen < 0 {
		return location
	}
	return best
}

// below reports whether location is from or lies under it. The empty prefix covers locations without a scheme.
func below(location, from string) bool {
	if from == "" {
		return !hasScheme(location)
	}
	if !strings.HasPrefix(location, from) {
		return false
	}
	rest := location[len(from):]
	return rest == "" || rest[0] == '/' || strings.HasSuffix(from, "/")
}

// trimSlash drops one trailing slash, but not of "scheme://".
func trimSlash(s string) string {
	if strings.HasSuffix(s, "://") {
		return s
	}
	return strings.TrimSuffix(s, "/")
}
