package kinds

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// nearest is the candidate with the fewest edits to name, "" if none is near (at most a third of its letters).
func nearest(name string, candidates []string) string {
	best, distance := "", utf8.RuneCountInString(name)/3+1
	for _, c := range candidates {
		if d := edits(strings.ToLower(name), strings.ToLower(c)); d < distance {
			best, distance = c, d
		}
	}
	return best
}

// edits is the Levenshtein distance in runes.
func edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			cost := diagonal
			if x[i] != y[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(y)]
}

// position is the 1-based character at byte offset at.
func position(text string, at int) string {
	return strconv.Itoa(utf8.RuneCountInString(text[:min(at, len(text))]) + 1)
}
