package filemap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
)

// Collector gathers the fingerprints of one column of some files, each file's rows in order: Start, Add as often as needed, and so
// on with the next file. Beyond its budget it spills sorted parts to temporary files.
type Collector struct {
	enc      index.Encoding
	ofList   bool
	elements *index.Elements // of lists; else only its keys are used
	files    []File
	row      uint32 // next row of the file at hand
	entries  []entry
	limit    int // entries to hold
	dir      string
	parts    []*os.File
	recent   [1 << recentBits]entry // what was added last, by hash
	ids      [1 << recentBits]int   // the numbers of the values of recent
	values   *valuesOf              // nil: they are too many, or not wanted
	key      []byte
}

const (
	recentBits = 12
	entrySize  = 16
)

// NewCollector makes a collector for a column, or for the element of a list; with values, of its values as well.
func NewCollector(col column.Path, values bool, budget index.Budget) (*Collector, error) {
	e, err := index.OneColumnOrElement("file map", []column.Path{col})
	if err != nil {
		return nil, err
	}
	// sorting takes as much again
	limit := int(max(budget.Bytes()/(2*entrySize), 1<<12))
	c := &Collector{enc: e, ofList: index.OfList(col), elements: index.NewElements(e, col), limit: limit, dir: budget.TempDir}
	if values {
		c.values = newValuesOf(e)
	}
	for i := range c.recent {
		c.recent[i].place = place(tooMany, wholeFile) // where no row is: a hash may be 0
	}
	return c, nil
}

// Start begins a file. pages is the first rows of its pages, ascending from 0; where they are of one length, granules are pages.
func (c *Collector) Start(f File, pages []uint32) error {
	if len(c.files) == maxFiles || f.Records > math.MaxUint32 || len(f.Tag) > maxTag {
		return fault.New(fault.Unsupported, "file map", "file %d of %d rows", len(c.files), f.Records)
	}
	f.Stride = strideOf(uint32(f.Records), pages)
	c.files, c.row = append(c.files, f), 0
	return nil
}

// usualStride is the rows of a granule where pages are of many lengths.
const usualStride = 8192

func strideOf(rows uint32, pages []uint32) uint32 {
	least := max(uint32((uint64(rows)+maxGranules-1)/maxGranules), 1)
	if len(pages) > 1 && pages[1] >= least {
		equal := true
		for i, p := range pages {
			equal = equal && uint64(p) == uint64(i)*uint64(pages[1])
		}
		if equal && uint64(len(pages))*uint64(pages[1]) >= uint64(rows) {
			return pages[1]
		}
	}
	return max(least, usualStride)
}

// Add takes the values of the file's next rows.
func (c *Collector) Add(v *column.Vector) error {
	f := &c.files[len(c.files)-1]
	if int64(c.row)+int64(v.Len) > f.Records {
		return fault.New(fault.Invalid, "file map", "fed more than the %d rows announced", f.Records)
	}
	if c.ofList {
		if err := c.elements.Load(v); err != nil {
			return err
		}
	} else if err := c.elements.Keys.Load(v); err != nil {
		return err
	}
	for i := 0; i < v.Len; {
		granule := c.row / f.Stride
		n := int(min(uint64(v.Len-i), uint64(granule+1)*uint64(f.Stride)-uint64(c.row)))
		c.take(i, i+n, place(uint32(len(c.files)-1), uint8(granule)))
		i, c.row = i+n, c.row+uint32(n)
		if len(c.entries) >= c.limit {
			if err := c.spill(); err != nil {
				return err
			}
		}
	}
	return nil
}

// take adds the values of rows i to j.
func (c *Collector) take(i, j int, place uint32) {
	if !c.ofList {
		c.takeKeys(i, j, place)
		return
	}
	for ; i < j; i++ {
		from, to, _ := c.elements.Row(i)
		c.takeKeys(from, to, place)
	}
}

func (c *Collector) takeKeys(i, j int, place uint32) {
	k := c.elements.Keys
	for ; i < j; i++ {
		switch {
		case k.Null(i):
			c.takeNull(place >> 8)
		case c.enc.Narrow():
			c.key = c.enc.AppendNarrow(c.key[:0], k.Narrow[i])
			c.insert(i, c.key, place)
		default:
			c.insert(i, k.Wide(i), place)
		}
	}
}

// takeNull notes that a file holds a null; those of elements say nothing of their lists.
func (c *Collector) takeNull(file uint32) {
	if c.values != nil && !c.ofList {
		c.values.null.add(file)
	}
}

// insert adds value i of the keys unless it was added a short while ago. Two values may share a hash.
func (c *Collector) insert(i int, key []byte, place uint32) {
	e := entry{Hash(key), place}
	at := e.hash >> (64 - recentBits)
	known := c.recent[at] == e
	if known && (c.values == nil || c.values.distinct.Key(c.ids[at]) == string(key)) {
		return
	}
	if !known {
		c.recent[at] = e
		c.entries = append(c.entries, e)
	}
	if c.values == nil {
		return
	}
	var fits bool
	if c.ids[at], fits = c.values.add(c.elements.Keys, i, place>>8); !fits {
		c.values = nil
	}
}

// spill sorts what is held and writes it to a temporary file.
func (c *Collector) spill() error {
	sortEntries(c.entries)
	f, err := os.CreateTemp(c.dir, "filemap-*.part")
	if err != nil {
		return fault.Wrap(fault.Exhausted, "temporary folder of the build", err)
	}
	c.parts = append(c.parts, f)
	w := bufio.NewWriterSize(f, 1<<18)
	var rec [12]byte
	last := entry{}
	for i, e := range c.entries {
		if i > 0 && e == last {
			continue
		}
		last = e
		binary.LittleEndian.PutUint64(rec[:], e.hash)
		binary.LittleEndian.PutUint32(rec[8:], e.place)
		_, _ = w.Write(rec[:]) // sticky: Flush returns it
	}
	c.entries = c.entries[:0]
	if err := w.Flush(); err != nil {
		return fault.Wrap(fault.Exhausted, f.Name(), err)
	}
	return nil
}

// Run writes the run of what was collected.
func (c *Collector) Run(out Sink) (root []byte, keys uint64, err error) {
	for i := range c.files {
		if i == len(c.files)-1 && int64(c.row) != c.files[i].Records {
			return nil, 0, fault.New(fault.Invalid, "file map", "fed %d rows of the %d announced", c.row, c.files[i].Records)
		}
	}
	sortEntries(c.entries)
	in := []stream{&memory{c.entries}}
	n := uint64(len(c.entries))
	for _, f := range c.parts {
		size, err := f.Seek(0, io.SeekEnd)
		if err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err != nil {
			return nil, 0, fault.Wrap(fault.Exhausted, f.Name(), err)
		}
		n += uint64(size / 12)
		in = append(in, &spilled{f.Name(), bufio.NewReaderSize(f, 1<<18)})
	}
	files, slots := arrange([][]File{c.files})
	for i := range in {
		in[i] = &renumbered{in[i], slots[0]}
	}
	var values *valueMap
	if c.values != nil {
		values = c.values.finish(slots[0])
	}
	return write(c.enc, files, n, widthFor(n), in, values, out)
}

// Close removes temporary files.
func (c *Collector) Close() error {
	var errs []error
	for _, f := range c.parts {
		errs = append(errs, f.Close(), os.Remove(f.Name()))
	}
	c.parts, c.entries = nil, nil
	return errors.Join(errs...)
}

// memory streams sorted entries.
type memory struct{ entries []entry }

func (m *memory) next() (e entry, ok bool, err error) {
	if len(m.entries) == 0 {
		return e, false, nil
	}
	e, m.entries = m.entries[0], m.entries[1:]
	return e, true, nil
}

// spilled streams a spilled part.
type spilled struct {
	name string
	r    *bufio.Reader
}

func (s *spilled) next() (e entry, ok bool, err error) {
	var rec [12]byte
	switch _, err := io.ReadFull(s.r, rec[:]); {
	case errors.Is(err, io.EOF):
		return e, false, nil
	case err != nil:
		return e, false, fault.Wrap(fault.Exhausted, s.name, err)
	}
	return entry{binary.LittleEndian.Uint64(rec[:]), binary.LittleEndian.Uint32(rec[8:])}, true, nil
}
