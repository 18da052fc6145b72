package mask

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// Archive keeps what deletes hide across processes, one object a mask under a prefix of the overlay:
//
//	magic     "SKMD" and a version byte, 1
//	key       length (varint) and bytes: everything the mask was made from, as text
//	rows      varint: rows of the data file on which an equality delete was evaluated; 0 for positions
//	warnings  count (varint), then length and bytes of each
//	bitmap    length (varint) and bytes: positions as a 32-bit roaring bitmap in portable serialisation
//	crc       4 bytes: CRC-32C of all before
//
// An object's name is the SHA-256 of its key, cut to 128 bits, in hexadecimal. Objects are written once, by a sync. They are a
// cache: one that is missing, damaged or of another key is as if it had never been, and any may be deleted at any time. It is safe for
// concurrent use.
type Archive struct {
	store  store.Store
	prefix string

	mu     sync.Mutex
	listed time.Time
	names  map[string]bool
}

const (
	archiveMagic   = "SKMD"
	archiveVersion = 1
	// maxArchived is how many objects are listed; an archive of more is not used.
	maxArchived = 200_000
	maxObject   = maxVector
	archivePage = 1000
	archiveAge  = time.Minute // how old the list may be
)

// NewArchive keeps masks under prefix of st.
func NewArchive(st store.Store, prefix string) *Archive {
	return &Archive{store: st, prefix: strings.TrimRight(prefix, "/") + "/"}
}

// archived is a mask as the archive holds it.
type archived struct {
	key      string
	rows     uint32
	warnings []string
	bitmap   *roaring.Bitmap
}

func archiveName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// text is everything that a mask of merged positions depends on.
func (k positionKey) text() string {
	return fmt.Sprintf("positions\x00%s\x00%s\x00%d\x00%s", k.Stated, k.File.Path, k.File.Size, k.Deletes)
}

// text is everything that a pair's mask depends on.
func (k pairKey) text() string {
	return fmt.Sprintf("equality\x00%s\x00%d\x00%s\x00%s\x00%d\x00%s", k.Data.Path, k.Data.Size, k.Tag, k.Delete.Path, k.Delete.Size, k.Columns)
}

// present lists the archive, unless that was done lately, and tells which keys it holds.
func (a *Archive) present(ctx context.Context, keys []string) []bool {
	out := make([]bool, len(keys))
	if a == nil || len(keys) == 0 {
		return out
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.listed) > archiveAge {
		a.names, a.listed = a.list(ctx), time.Now()
	}
	for i, k := range keys {
		out[i] = a.names[archiveName(k)]
	}
	return out
}

func (a *Archive) list(ctx context.Context) map[string]bool {
	names := map[string]bool{}
	for after := ""; len(names) < maxArchived; {
		page, err := a.store.List(ctx, a.prefix, after, archivePage)
		if err != nil {
			return map[string]bool{}
		}
		for _, in := range page {
			names[strings.TrimPrefix(in.Key, a.prefix)] = true
		}
		if len(page) < archivePage {
			return names
		}
		after = page[len(page)-1].Key
	}
	return map[string]bool{}
}

// load reads masks in one wave; what cannot be believed is nil.
func (a *Archive) load(ctx context.Context, keys []string) []*archived {
	out := make([]*archived, len(keys))
	if len(keys) == 0 {
		return out
	}
	reads := make([]store.Read, len(keys))
	for i, k := range keys {
		reads[i] = store.Read{Key: a.prefix + archiveName(k), Max: maxObject}
	}
	for i, res := range a.store.Fetch(ctx, reads) {
		if res.Err != nil {
			continue
		}
		if m, err := parseArchived(reads[i].Key, res.Data[0]); err == nil && m.key == keys[i] {
			out[i] = m
		}
	}
	return out
}

// save writes a mask unless it is there.
func (a *Archive) save(ctx context.Context, m *archived) error {
	b, err := m.bytes()
	if err != nil {
		return err
	}
	_, err = a.store.PutNew(ctx, a.prefix+archiveName(m.key), bytes.NewReader(b))
	if err != nil && !fault.Is(err, fault.Conflict) {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.names != nil {
		a.names[archiveName(m.key)] = true
	}
	return nil
}

func (m *archived) bytes() ([]byte, error) {
	bitmap, err := m.bitmap.ToBytes()
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, m.key, err)
	}
	var w bytescan.Writer
	w.Bytes([]byte(archiveMagic))
	w.U8(archiveVersion)
	w.String(m.key)
	w.Uvarint(uint64(m.rows))
	w.Uvarint(uint64(len(m.warnings)))
	for _, text := range m.warnings {
		w.String(text)
	}
	w.Blob(bitmap)
	w.U32(bytescan.CRC32C(w.Buf))
	return w.Buf, nil
}

func parseArchived(name string, b []byte) (*archived, error) {
	r := bytescan.NewReader(name, b)
	if magic := r.Bytes(len(archiveMagic)); string(magic) != archiveMagic {
		r.Fail("does not begin with %q", archiveMagic)
	}
	if v := r.U8(); r.Err() == nil && v != archiveVersion {
		return nil, fault.New(fault.Unsupported, name, "mask of format version %d", v)
	}
	if r.Left() < 4 {
		r.Fail("%d bytes are too few for a mask", len(b))
		return nil, r.Err()
	}
	end := len(b) - 4
	crc := bytescan.NewReader(name, b[end:]).U32()
	if err := bytescan.CheckCRC(name, b[:end], crc); err != nil {
		return nil, err
	}
	m := &archived{key: r.String(maxObject)}
	rows := r.Uvarint()
	if rows > 1<<32-1 {
		r.Fail("%d rows", rows)
	}
	m.rows = uint32(rows)
	for range r.Count(1<<20, 1) {
		m.warnings = append(m.warnings, r.String(maxObject))
	}
	bitmap := r.Blob(maxObject)
	r.U32()
	if err := r.Done(); err != nil {
		return nil, err
	}
	var used int
	var err error
	if m.bitmap, used, err = parseRoaring(bitmap); err != nil || used != len(bitmap) {
		return nil, fault.New(fault.Corrupt, name, "bad roaring bitmap").WithCause(err)
	}
	return m, nil
}
