package index

import (
	"errors"
	"io"
	"sync"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// Source is an artifact to be merged.
type Source struct {
	Root []byte      // whose checksum the caller has verified
	Rows uint32      // of its segment
	Body io.ReaderAt // Size bytes; the units in it are verified as they are read
	Size int64
}

// Unit reads and verifies a unit of the body into buf, which grows where it must. what names the artifact in faults.
func (s *Source) Unit(what string, u Unit, buf []byte) ([]byte, error) {
	buf, err := s.Bytes(what, u.Span, buf)
	if err != nil {
		return nil, err
	}
	return buf, u.check(what, buf)
}

// Bytes reads a span of the body as Unit does; what is in it remains to be verified.
func (s *Source) Bytes(what string, at Span, buf []byte) ([]byte, error) {
	if at.Off < 0 || at.Len < 0 || at.Off > s.Size-at.Len {
		return nil, Broken(what, "%d bytes at %d of a body of %d", at.Len, at.Off, s.Size)
	}
	if int64(cap(buf)) < at.Len {
		buf = make([]byte, at.Len)
	}
	buf = buf[:at.Len]
	if n, err := s.Body.ReadAt(buf, at.Off); n < len(buf) {
		if errors.Is(err, io.EOF) {
			return nil, Broken(what, "body ends within %d bytes at %d", at.Len, at.Off)
		}
		return nil, fault.About(what, err)
	}
	return buf, nil
}

// Ahead reads units of a source that mostly follow each other, a window at a time.
type Ahead struct {
	from   *Source
	most   int64              // bytes of a window
	memory *[aheadWindow]byte // shared, of windows that take most of it
	window []byte             // in memory, or of its own where a unit is larger
	at     int64
}

// aheadWindow is the bytes of a window that is worth its memory.
const aheadWindow = 128 << 10

var aheadPool = sync.Pool{New: func() any { return new([aheadWindow]byte) }}

// NewAhead reads units of a source. Close it to let others have its memory.
func NewAhead(s *Source) *Ahead { return NewAheadOf(s, aheadWindow) }

// NewAheadOf is NewAhead with windows of so many bytes at most, or of one unit where that has more.
func NewAheadOf(s *Source, bytes int64) *Ahead { return &Ahead{from: s, most: min(bytes, aheadWindow)} }

// Close ends the views that Unit gave.
func (a *Ahead) Close() {
	if a.memory != nil {
		aheadPool.Put(a.memory)
		a.memory, a.window = nil, nil
	}
}

// Unit is Source.Unit; the bytes are a view that the next call ends.
func (a *Ahead) Unit(what string, u Unit) ([]byte, error) {
	if u.Off < 0 || u.Len < 0 || u.Off > a.from.Size-u.Len {
		return nil, Broken(what, "%d bytes at %d of a body of %d", u.Len, u.Off, a.from.Size)
	}
	if u.Off < a.at || u.Off+u.Len > a.at+int64(len(a.window)) {
		if err := a.turnTo(what, u.Span); err != nil {
			return nil, err
		}
	}
	b := a.window[u.Off-a.at:][:u.Len]
	return b, u.check(what, b)
}

// turnTo makes the window begin with a span. What it already holds is not read again.
func (a *Ahead) turnTo(what string, to Span) error {
	n := min(max(a.most, to.Len), a.from.Size-to.Off)
	var next []byte
	switch {
	case int64(cap(a.window)) >= n:
		next = a.window[:0]
	case a.most == aheadWindow && n > aheadWindow/2 && n <= aheadWindow:
		if a.memory == nil {
			a.memory = aheadPool.Get().(*[aheadWindow]byte)
		}
		next = a.memory[:0]
	default:
		next = make([]byte, 0, n)
	}
	if at := to.Off - a.at; at >= 0 && at < int64(len(a.window)) {
		next = append(next, a.window[at:]...)
	}
	had := int64(len(next))
	rest, err := a.from.Bytes(what, Span{Off: to.Off + had, Len: n - had}, next[had:])
	a.window, a.at = next[:had+int64(len(rest))], to.Off
	return err
}

// CopyUnits copies a whole body that consists of the units, in order and without gaps.
func CopyUnits(what string, from *Source, units []Unit, body Sink) error {
	read, at := NewAhead(from), int64(0)
	defer read.Close()
	for _, u := range units {
		if u.Len == 0 {
			continue
		}
		if u.Off != at {
			return Broken(what, "unit at %d, the one before ends at %d", u.Off, at)
		}
		b, err := read.Unit(what, u)
		if err != nil {
			return err
		}
		if _, err := body.Write(b); err != nil {
			return err
		}
		at += u.Len
	}
	if at != from.Size {
		return Broken(what, "units end at %d of a body of %d", at, from.Size)
	}
	return nil
}

// Mergeable checks what every merge of artifacts over one column needs: a sealed map over exactly these sources and onto the rows of
// spec. It returns the spec's encoding; the sources' own may be one that it was promoted from.
func Mergeable(kind string, spec *Spec, sources []Source, m *OrdinalMap, encoding func(string, []column.Path) (Encoding, error)) (Encoding, error) {
	e, err := encoding(kind, spec.Columns)
	if err != nil {
		return e, err
	}
	if !m.sealed || len(sources) != m.Sources() || spec.Rows != m.Rows() {
		return e, fault.New(fault.Invalid, kind, "%d sources and %d rows to merge by a map of %d and %d", len(sources), spec.Rows, m.Sources(), m.Rows())
	}
	for i := range sources {
		if sources[i].Rows != m.SourceRows(i) {
			return e, fault.New(fault.Invalid, kind, "source %d has %d rows, its map %d", i, sources[i].Rows, m.SourceRows(i))
		}
	}
	return e, nil
}

// OpenSources opens every source with open, of which of tells the encoding and the bytes of the body. It returns the encoding that all
// share; a reason not to merge where they do not, or where it does not widen to e, that of the present column.
func OpenSources[R any](kind string, sources []Source, e Encoding, open func(root []byte, rows uint32) (R, error), of func(R) (Encoding, int64)) (readers []R, shared Encoding, reason string, err error) {
	shared = e
	for i := range sources {
		r, err := open(sources[i].Root, sources[i].Rows)
		if err != nil {
			return nil, e, "", err
		}
		enc, size := of(r)
		if size != sources[i].Size {
			return nil, e, "", Broken(kind, "body of %d bytes, its root says %d", sources[i].Size, size)
		}
		if i == 0 {
			shared = enc
		}
		if enc != shared || !enc.WidensTo(e) {
			return nil, e, "the values of its artifacts were taken in different encodings", nil
		}
		readers = append(readers, r)
	}
	return readers, shared, "", nil
}
