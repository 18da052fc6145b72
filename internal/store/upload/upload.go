// Package upload answers: which bytes does a write send, in which parts, and whose fault is it if they cannot be read? It is what
// the backends for object storage have in common.
package upload

import (
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/skomerdb/skomer/internal/fault"
)

// Source marks the errors of the caller's reader, to tell them from those of the connection.
type Source struct{ io.ReadSeeker }

// Whole is size bytes of a reader, whose last ones are withheld until the reader has said that it ends there: a server that has got
// as many bytes as were announced makes an object of them, whatever happens then.
type Whole struct {
	io.ReadSeeker
	size, at int64
}

// NewWhole is size bytes of r, from its start.
func NewWhole(r io.ReadSeeker, size int64) *Whole { return &Whole{ReadSeeker: r, size: size} }

// Read implements io.Reader.
func (w *Whole) Read(b []byte) (int, error) {
	n, err := w.ReadSeeker.Read(b)
	w.at += int64(n)
	for w.at == w.size && err == nil {
		var more int
		more, err = w.ReadSeeker.Read(make([]byte, 1))
		w.at += int64(more)
	}
	if w.at > w.size {
		err = io.EOF
	}
	switch {
	case err == io.EOF && w.at != w.size: //nolint:errorlint // readers give it bare
		return 0, &sourceError{fmt.Errorf("the reader has %d bytes, not %d", w.at, w.size)}
	case err != nil && err != io.EOF: //nolint:errorlint // readers give it bare
		return 0, err
	}
	return n, err
}

// Seek implements io.Seeker.
func (w *Whole) Seek(offset int64, whence int) (int64, error) {
	at, err := w.ReadSeeker.Seek(offset, whence)
	w.at = at
	return at, err
}

type sourceError struct{ error }

func (e *sourceError) Unwrap() error { return e.error }

// Read implements io.Reader.
func (s Source) Read(b []byte) (int, error) {
	n, err := s.ReadSeeker.Read(b)
	if err != nil && err != io.EOF { //nolint:errorlint // readers give it bare
		err = &sourceError{err}
	}
	return n, err
}

// Unsent classifies an error of a request that has no answer: the reader of its body failed, which does not pass, or the connection. Of the
// address only the host is told: what follows it may hold a signature.
func Unsent(key string, err error) error {
	var source *sourceError
	if errors.As(err, &source) {
		return fault.About(key, source.error)
	}
	e := fault.New(fault.Unreachable, key, "no answer").WithCause(err).WithRetry().
		WithFix("check the endpoint, the network and the proxy")
	var sent *url.Error
	if !errors.As(err, &sent) {
		return e
	}
	if at, bad := url.Parse(sent.URL); bad == nil {
		e.Reason = "no answer from " + at.Host
		e = e.WithFix("check that %s is the right endpoint and can be reached from here: the server, the network, the proxy", at.Host)
	}
	return e.WithCause(sent.Err)
}

// Window is some bytes of a reader, to be sent as one part.
type Window struct {
	of        io.ReadSeeker
	off, size int64
	at        int64 // the position in the window; negative: the reader stands elsewhere
}

// NewWindow is size bytes of r from off on. Windows of one reader are used one after another.
func NewWindow(r io.ReadSeeker, off, size int64) *Window {
	return &Window{of: r, off: off, size: size, at: -1}
}

// Read implements io.Reader.
func (w *Window) Read(b []byte) (int, error) {
	if w.at < 0 {
		if _, err := w.Seek(0, io.SeekStart); err != nil {
			return 0, err
		}
	}
	if w.at >= w.size {
		return 0, io.EOF
	}
	n, err := w.of.Read(b[:min(int64(len(b)), w.size-w.at)])
	w.at += int64(n)
	return n, err
}

// Seek implements io.Seeker.
func (w *Window) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += max(w.at, 0)
	case io.SeekEnd:
		offset += w.size
	}
	if offset < 0 || offset > w.size {
		return 0, errors.New("seek outside of a part")
	}
	if _, err := w.of.Seek(w.off+offset, io.SeekStart); err != nil {
		return 0, err
	}
	w.at = offset
	return offset, nil
}

// Close implements io.Closer; the reader stays open.
func (w *Window) Close() error { return nil }
