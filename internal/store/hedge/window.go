package hedge

import (
	"slices"
	"time"

	"github.com/skomerdb/skomer/internal/store"
)

const (
	classes = 4  // of reads by their bytes
	recent  = 64 // reads of a class that are remembered
	least   = 16 // reads of a class before anything is sent twice
	percent = 95 // of reads that are faster than a slow one
)

// bounds are the most bytes of each class. Larger reads are never sent twice.
var bounds = [classes]int64{256 << 10, 1 << 20, 4 << 20, 16 << 20}

// classOf is the class of a read by the bytes that it asks for, or -1 for one of unknown or large size.
func classOf(r store.Read) int {
	var n int64
	for _, s := range r.Spans {
		if s.Off < 0 {
			n += min(-max(s.Off, -bounds[classes-1]-1), bounds[classes-1]+1)
		} else {
			n += min(s.Len, bounds[classes-1]+1)
		}
		if n > bounds[classes-1] {
			return -1
		}
	}
	if len(r.Spans) == 0 {
		return -1
	}
	c, _ := slices.BinarySearch(bounds[:], n)
	return c
}

// window is how long the last reads of a class took.
type window struct {
	last [recent]time.Duration
	n    int // ever
}

func (w *window) add(d time.Duration) {
	w.last[w.n%recent] = d
	w.n++
}

// high is the duration that 95 of a hundred reads stay below.
func (w *window) high() (time.Duration, bool) {
	if w.n < least {
		return 0, false
	}
	all := w.last
	some := all[:min(w.n, recent)]
	slices.Sort(some)
	return some[len(some)*percent/100], true
}
