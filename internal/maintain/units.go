package maintain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/overlay"
)

const (
	// unitRows is the size that segments of expensive kinds are built at, where the files allow it.
	unitRows = 4 << 20
	// unitFiles bounds the files of a unit, and so the footers and artifacts held while it is built.
	unitFiles = 512
	// unitTime is how long a unit is built before it ends with the file at hand and is published, so that a kill loses no more.
	unitTime = 10 * time.Second
)

// work is a data file and the indexes that do not cover it.
type work struct {
	ordinal int // in facts.Files
	path    string
	rows    int64
	missing []overlay.Definition
}

// unit is files that lack the same indexes: what is built and published together.
type unit struct {
	files   []work
	missing []overlay.Definition
	rows    int64
}

// cut groups files by what they lack and then by path, so that a segment holds neighbours and the same work always
// makes the same units.
func cut(files []work) []unit {
	slices.SortStableFunc(files, func(a, b work) int {
		return cmp.Or(strings.Compare(lacks(a), lacks(b)), strings.Compare(a.path, b.path))
	})
	var out []unit
	for _, w := range files {
		if n := len(out); n == 0 || lacks(out[n-1].files[0]) != lacks(w) || out[n-1].rows >= unitRows ||
			len(out[n-1].files) == unitFiles || out[n-1].rows+w.rows >= 1<<32 {
			out = append(out, unit{missing: w.missing})
		}
		u := &out[len(out)-1]
		u.files = append(u.files, w)
		u.rows += w.rows
	}
	return out
}

func lacks(w work) string {
	ids := make([]string, len(w.missing))
	for i, d := range w.missing {
		ids[i] = d.ID
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}
