package maintain

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/build"
	"github.com/skomerdb/skomer/internal/overlay"
)

const (
	// unitRows is the size that segments of expensive kinds are built at, where the files allow it.
	unitRows = 4 << 20
	// unitFiles bounds the files of a unit, and so the footers and artifacts held while it is built.
	unitFiles = 512
	// unitTime is how long a unit is built before it ends with the file at hand and is published, so that a kill loses no more.
	unitTime = 10 * time.Second
	// largeBytes is the size from which a data file is large, whatever its rows; one of unitRows is.
	largeBytes = 1 << 30
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

// units cuts files into units. A large file may take longer than a process lives or than a limit allows, so that the indexes of each of its columns
// are a unit of their own, and what was published is not built again. These come last and in random order: one that always takes too long does not
// keep processes which die on it from the others for good.
func (r *run) units(files []work) []unit {
	var rest []work
	var large []unit
	for _, w := range files {
		if w.rows < r.large() && r.snapshot.Files.Size[w.ordinal] < largeBytes {
			rest = append(rest, w)
			continue
		}
		for _, missing := range r.apart(w.missing) {
			w.missing = missing
			large = append(large, unit{files: []work{w}, missing: missing, rows: w.rows})
		}
	}
	rand.Shuffle(len(large), func(i, j int) { large[i], large[j] = large[j], large[i] })
	return append(cut(rest), large...)
}

// count enters the units of a round into the progress, each file once.
func (r *run) count(units []unit) {
	r.busy = 0
	r.progress.FilesTotal, r.progress.RowsTotal = r.progress.FilesDone, r.progress.RowsDone
	seen := maps.Clone(r.counted)
	for _, u := range units {
		for _, w := range u.files {
			if path := r.snapshot.Files.Stated[w.ordinal]; !seen[path] {
				seen[path] = true
				r.progress.FilesTotal++
			}
		}
		r.progress.RowsTotal += u.rows
	}
	r.tell()
}

// firsts is how many of the files that a build covers are covered by no earlier one of the run: there may be many of a file.
func (r *run) firsts(in build.Unit, res *build.Result) (n int) {
	if res.Files == 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range in.Files {
		_, skipped := res.Skipped[f.Path]
		later := slices.ContainsFunc(res.Later, func(l build.File) bool { return l.Stated == f.Stated })
		if !skipped && !later && !r.counted[f.Stated] {
			r.counted[f.Stated] = true
			n++
		}
	}
	return n
}

func (r *run) large() int64 {
	if r.largeRows > 0 {
		return r.largeRows
	}
	return unitRows
}

// apart sorts indexes into sets that have no column in common: to build one after the other reads no column twice.
func (r *run) apart(indexes []overlay.Definition) (out [][]overlay.Definition) {
	var columns []map[int]bool // of each set
	for _, d := range indexes {
		set, own := []overlay.Definition{d}, map[int]bool{}
		x, _ := r.index(d)
		for _, c := range x.Columns {
			own[c.Base().Leaf().ID] = true
		}
		for i := len(out) - 1; i >= 0; i-- {
			if !meet(own, columns[i]) {
				continue
			}
			set = append(slices.Clone(out[i]), set...)
			maps.Copy(own, columns[i])
			out, columns = slices.Delete(out, i, i+1), slices.Delete(columns, i, i+1)
		}
		out, columns = append(out, set), append(columns, own)
	}
	return out
}

func meet(a, b map[int]bool) bool {
	for id := range a {
		if b[id] {
			return true
		}
	}
	return false
}

func lacks(w work) string {
	ids := make([]string, len(w.missing))
	for i, d := range w.missing {
		ids[i] = d.ID
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}
