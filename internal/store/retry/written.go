package retry

import (
	"bytes"
	"context"
	"io"

	"github.com/skomerdb/skomer/internal/store"
)

// piece is how many bytes of an object are compared at a time.
const piece = 8 << 20

// written reports whether the object holds exactly the bytes of r, and its tag. What cannot be found out counts as no.
func (s *Store) written(ctx context.Context, key string, r io.ReadSeeker) (store.Tag, bool) {
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return "", false
	}
	info := s.Stat(ctx, []string{key})[0]
	if info.Err != nil || info.Size != size {
		return "", false
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return "", false
	}
	want := make([]byte, min(piece, size))
	for off := int64(0); off < size; off += piece {
		n := min(piece, size-off)
		if _, err := io.ReadFull(r, want[:n]); err != nil {
			return "", false
		}
		res := s.Fetch(ctx, []store.Read{{Key: key, Tag: info.Tag, Spans: []store.Span{{Off: off, Len: n}}}})[0]
		if res.Err != nil || !bytes.Equal(res.Data[0], want[:n]) {
			return "", false
		}
	}
	return info.Tag, true
}
