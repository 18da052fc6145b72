package ordered

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"

	"github.com/skomerdb/skomer/internal/fault"
)

// spill is sorted runs in one temporary file, which is unlinked by close. A run is pairs in order: narrow keys as 8 bytes
// little-endian and a 4-byte row; wide keys as a uvarint length (where keys vary), the bytes and a 4-byte row.
type spill struct {
	dir  string
	file *os.File
	out  *bufio.Writer
	ends []int64
}

func (s *spill) runs() int { return len(s.ends) }

// runWriter buffers one run; its error is seen when the run ends.
type runWriter struct {
	*bufio.Writer
	n   int64
	buf [16]byte
}

func (w *runWriter) put(b []byte) {
	n, _ := w.Write(b) // a failure is sticky: Flush reports it
	w.n += int64(n)
}

func (w *runWriter) narrow(key uint64, row uint32) {
	binary.LittleEndian.PutUint64(w.buf[:], key)
	binary.LittleEndian.PutUint32(w.buf[8:], row)
	w.put(w.buf[:12])
}

func (w *runWriter) wide(size int, key []byte, row uint32) {
	if size == 0 {
		w.put(w.buf[:binary.PutUvarint(w.buf[:], uint64(len(key)))])
	}
	w.put(key)
	binary.LittleEndian.PutUint32(w.buf[:], row)
	w.put(w.buf[:4])
}

// run appends a run that write fills.
func (s *spill) run(write func(*runWriter)) error {
	if s.file == nil {
		f, err := os.CreateTemp(s.dir, "ordered-*.runs")
		if err != nil {
			return fault.Wrap(fault.Exhausted, "temporary folder of the index build", err)
		}
		s.file, s.out = f, bufio.NewWriterSize(f, 1<<18)
	}
	w := &runWriter{Writer: s.out}
	write(w)
	if err := w.Flush(); err != nil {
		return fault.Wrap(fault.Exhausted, "temporary file of the index build", err)
	}
	start := int64(0)
	if n := len(s.ends); n > 0 {
		start = s.ends[n-1]
	}
	s.ends = append(s.ends, start+w.n)
	return nil
}

func (s *spill) close() error {
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file, s.out = nil, nil
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// cursor is the least unread pair of a run.
type cursor struct {
	narrow uint64 // of a wide key its first eight bytes
	key    []byte
	row    uint32
	in     *bufio.Reader
	buf    [12]byte
}

func (c *cursor) less(d *cursor) bool {
	if c.narrow != d.narrow {
		return c.narrow < d.narrow
	}
	if order := bytes.Compare(c.key, d.key); order != 0 {
		return order < 0
	}
	return c.row < d.row
}

// next reads the next pair; ok is false at the end of the run.
func (c *cursor) next(narrow bool, size int) (ok bool, err error) {
	if narrow {
		if _, err := io.ReadFull(c.in, c.buf[:12]); err != nil {
			return false, ending(err)
		}
		c.narrow, c.row = binary.LittleEndian.Uint64(c.buf[:]), binary.LittleEndian.Uint32(c.buf[8:])
		return true, nil
	}
	if size == 0 {
		n, err := binary.ReadUvarint(c.in)
		if err != nil {
			return false, ending(err)
		}
		size = int(n)
	}
	if cap(c.key) < size {
		c.key = make([]byte, size)
	}
	c.key = c.key[:size]
	if _, err := io.ReadFull(c.in, c.key); err != nil {
		return false, ending(err)
	}
	_, err = io.ReadFull(c.in, c.buf[:4])
	c.narrow, c.row = prefixOf(c.key), binary.LittleEndian.Uint32(c.buf[:])
	return err == nil, err
}

func ending(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fault.Wrap(fault.Corrupt, "temporary file of the index build", err)
}

// merge visits the pairs of all runs in order, with memory bytes of read buffers.
func (s *spill) merge(narrow bool, size int, memory int64, visit func(uint64, []byte, uint32) error) error {
	buffer := int(min(max(memory/int64(len(s.ends)), 4<<10), 1<<20))
	var heap []*cursor
	start := int64(0)
	for _, end := range s.ends {
		c := &cursor{in: bufio.NewReaderSize(io.NewSectionReader(s.file, start, end-start), buffer)}
		start = end
		ok, err := c.next(narrow, size)
		if err != nil {
			return err
		}
		if ok {
			heap = append(heap, c)
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		siftDown(heap, i)
	}
	for len(heap) > 0 {
		c := heap[0]
		if err := visit(c.narrow, c.key, c.row); err != nil {
			return err
		}
		ok, err := c.next(narrow, size)
		if err != nil {
			return err
		}
		if !ok {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		}
		siftDown(heap, 0)
	}
	return nil
}

func siftDown(heap []*cursor, i int) {
	for {
		least := i
		for kid := 2*i + 1; kid <= 2*i+2 && kid < len(heap); kid++ {
			if heap[kid].less(heap[least]) {
				least = kid
			}
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}
