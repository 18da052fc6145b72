package mask

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// content is what a position delete file deletes, by data file as its rows name it.
type content struct {
	paths []string
	rows  []*roaring.Bitmap
	index map[string]int
	nulls int64    // rows without a path
	words []uint64 // room to gather positions in; zeros
}

func newContent() *content { return &content{index: map[string]int{}} }

func (c *content) reset() { *c = *newContent() }

// add takes a batch of paths and positions.
func (c *content) add(b *column.Batch) error {
	path, pos := b.Cols[0], b.Cols[1].Flatten()
	for from := 0; from < b.Rows; {
		to := sameFile(path, from, b.Rows)
		if path.Null(from) {
			c.nulls += int64(to - from)
		} else if err := c.addRun(b, pos, from, to); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// sameFile is the end of the run of rows, from row from on, that name the same data file or all none.
func sameFile(path *column.Vector, from, n int) int {
	to := from + 1
	switch {
	case path.Null(from):
		for to < n && path.Null(to) {
			to++
		}
	case path.Dict != nil && path.Valid == nil:
		files := path.Idx[from:n]
		to = n
		if i := slices.IndexFunc(files, func(file uint32) bool { return file != files[0] }); i > 0 {
			to = from + i
		}
	default:
		for file := path.Raw(from); to < n && !path.Null(to) && bytes.Equal(path.Raw(to), file); {
			to++
		}
	}
	return to
}

// addRun takes the positions of rows that name the same data file.
func (c *content) addRun(b *column.Batch, pos *column.Vector, from, to int) error {
	file := b.Cols[0].Raw(from)
	for i := from; pos.Valid != nil && i < to; i++ {
		if pos.Null(i) {
			return fault.New(fault.Corrupt, "", "row %d names %q and no position", b.Position(i), file)
		}
	}
	run := pos.Int64s()[from:to]
	top, signs := int64(0), int64(0)
	for _, p := range run {
		top, signs = max(top, p), signs|p
	}
	if signs < 0 {
		i := slices.IndexFunc(run, func(p int64) bool { return p < 0 })
		return fault.New(fault.Corrupt, "", "row %d deletes position %d", b.Position(from+i), run[i])
	}
	rows := c.rows[c.at(file)]
	if len(run) >= denseRun && top < denseSpan*int64(len(run)) {
		c.addDense(rows, run, top)
		return nil
	}
	few := make([]uint32, 0, len(run))
	for _, p := range run {
		if p < math.MaxUint32 { // above it the position dangles: no file has so many rows
			few = append(few, uint32(p))
		}
	}
	rows.AddMany(few)
	return nil
}

// Positions are gathered as bits where there are denseRun or more, one or more in denseSpan rows of their data file.
const (
	denseRun  = 64
	denseSpan = 256
)

// addDense adds positions, the largest of which is top.
func (c *content) addDense(rows *roaring.Bitmap, run []int64, top int64) {
	n := int(top>>6) + 1
	if n > len(c.words) {
		c.words = make([]uint64, n)
	}
	words := c.words[:n]
	first := n
	for _, p := range run {
		w := int(p >> 6)
		words[w] |= 1 << (p & 63)
		first = min(first, w)
	}
	rows.Or(roaring.FromDense(words, true))
	clear(words[first:])
}

// at is where the rows of a data file are.
func (c *content) at(path []byte) int {
	at, ok := c.index[string(path)]
	if !ok {
		at = len(c.paths)
		c.paths = append(c.paths, string(path))
		c.rows = append(c.rows, roaring.New())
		c.index[c.paths[at]] = at
	}
	return at
}

// bytes is about the memory that it takes.
func (c *content) bytes() int64 {
	n := int64(64)
	for i, p := range c.paths {
		n += int64(2*len(p)) + 64 + int64(c.rows[i].GetSizeInBytes())
	}
	return n
}

// warning is what was ignored in a delete file, "" if nothing.
func (c *content) warning(path string) string {
	if c.nulls == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %d rows without a file path are ignored", path, c.nulls)
}
