package index

import (
	"errors"
	"io"
	"os"

	"github.com/skomerdb/skomer/internal/fault"
)

// Overflow keeps bytes in order until a body may be written: the newest in memory up to a limit, all older ones in a temporary file.
type Overflow struct {
	dir   string
	limit int64
	mem   []byte
	file  *os.File
}

// NewOverflow keeps at most limit bytes in memory (and what one Write brings); dir is where the file goes.
func NewOverflow(dir string, limit int64) *Overflow { return &Overflow{dir: dir, limit: limit} }

// Keep appends b.
func (o *Overflow) Keep(b []byte) error {
	if o.mem = append(o.mem, b...); int64(len(o.mem)) <= o.limit {
		return nil
	}
	if o.file == nil {
		f, err := os.CreateTemp(o.dir, "index-*.body")
		if err != nil {
			return fault.Wrap(fault.Exhausted, "temporary folder of the index build", err)
		}
		o.file = f
	}
	_, err := o.file.Write(o.mem)
	o.mem = o.mem[:0]
	return fault.Wrap(fault.Exhausted, "temporary file of the index build", err)
}

// CopyTo writes all that was kept, in order.
func (o *Overflow) CopyTo(w io.Writer) error {
	if o.file != nil {
		if _, err := o.file.Seek(0, io.SeekStart); err != nil {
			return fault.Wrap(fault.Exhausted, "temporary file of the index build", err)
		}
		if _, err := io.Copy(w, o.file); err != nil {
			return err
		}
	}
	_, err := w.Write(o.mem)
	return err
}

// Close removes the file.
func (o *Overflow) Close() error {
	if o.file == nil {
		return nil
	}
	f := o.file
	o.file, o.mem = nil, nil
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
