// Package store answers: which bytes are under this key, and may I put some there?
//
// Objects are read by waves: one Fetch issues all its requests together and is one dependent round trip. A store
// classifies its errors with fault (NotFound, Denied, Stale, Conflict, Exhausted; Retry where the same call may succeed later).
// It knows nothing of tables, Parquet or indexes. Backends live in local, mem, s3, …; decorators in cache, meter, retry,
// limit; storetest is the one conformance suite.
package store

import (
	"context"
	"io"
	"time"
)

// Tag identifies the content of an object: an ETag, a generation, or for local files inode + size + mtime + ctime.
// Empty means unknown (in answers) or any (in requests).
type Tag string

// Span is a byte range. A negative Off is a suffix: the last -Off bytes (fewer if the object is shorter), Len is then ignored.
type Span struct{ Off, Len int64 }

// Suffix is the last n bytes of an object.
func Suffix(n int64) Span { return Span{Off: -n} }

// End is the offset behind the span.
func (s Span) End() int64 { return s.Off + s.Len }

// Read asks for spans of one object. A non-empty Tag must match the object (If-Match), else the result is a Stale fault.
// No spans means the whole object. A read that would bring more than Max bytes, gaps included, is Exhausted and allocates
// nothing; 0 means MaxRead. Gap, if not 0, is the most that is read between spans to save a request, where the store would read more.
type Read struct {
	Key   string
	Tag   Tag
	Spans []Span
	Max   int64
	Gap   int64
}

// MaxRead is the largest read, in bytes, that does not set its own limit.
const MaxRead = 4 << 30

// Result answers a Read. Data runs parallel to Read.Spans (one element for a whole object); each is complete or Err is set:
// a span past the end is a Corrupt fault, never a short slice. Data is read-only and may be shared.
type Result struct {
	Data [][]byte
	Tag  Tag
	Size int64 // of the whole object; -1 if the store did not say
	Err  error
}

// Info describes an object. Err is set (NotFound, Denied, …) when it could not be described.
type Info struct {
	Key      string
	Size     int64
	Tag      Tag
	Modified time.Time // by the store's clock
	Err      error
}

// Store is object storage. All methods are safe for concurrent use. Keys are opaque: what the backend documents, verbatim,
// never URL-encoded or cleaned.
type Store interface {
	// Fetch issues one wave and waits for all of it. Spans of one object that lie within the store's coalescing gap are
	// read by one request. Results run parallel to reads. A cancelled context gives its error in every unfinished result.
	Fetch(ctx context.Context, reads []Read) []Result
	// PutNew creates an object atomically; a Conflict fault if the key exists. r may be read again from its start.
	PutNew(ctx context.Context, key string, r io.ReadSeeker) (Tag, error)
	// PutIf replaces an object atomically if its tag is still old; an empty old means "must not exist". Conflict otherwise.
	PutIf(ctx context.Context, key string, old Tag, b []byte) (Tag, error)
	// Stat describes objects, in the order of keys.
	Stat(ctx context.Context, keys []string) []Info
	// List returns up to max objects whose key has the prefix and is greater than after, in ascending byte order.
	List(ctx context.Context, prefix, after string, max int) ([]Info, error)
	// Delete removes objects; missing ones are no error.
	Delete(ctx context.Context, keys []string) error
}

// Identity is who a store speaks as.
type Identity struct {
	Name    string    // of the key, account or principal, if it is known; never a secret
	Source  string    // where the credentials come from
	Expires time.Time // of the credentials; zero: never, or unknown
}

// Identified is a store that knows who it speaks as. Asking may get credentials, but reads and writes nothing.
type Identified interface {
	Identity(ctx context.Context) (Identity, error)
}

// Decorator is a store that passes operations on.
type Decorator interface{ Inner() Store }

// IdentityOf is who a store, or what it decorates, speaks as; ok is false if it does not know.
func IdentityOf(ctx context.Context, s Store) (id Identity, ok bool, err error) {
	for s != nil {
		if known, is := s.(Identified); is {
			id, err = known.Identity(ctx)
			return id, true, err
		}
		d, is := s.(Decorator)
		if !is {
			break
		}
		s = d.Inner()
	}
	return Identity{}, false, nil
}
