package overlay

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
)

// The body of a version. Integers are little-endian, varints unsigned LEB128:
//
//	"SKOV", version u8 = 2, u8 = 1 if it is signed, two zero bytes
//	u32 length of the header, header: JSON
//	varint number of chunks; per chunk, oldest first:
//	    varint length and bytes of the name below chunks/
//	    varint artifacts, varint files
//	    varint length of the hot part, u32 its CRC32C
//	    varint length of the wide part, u32 its CRC32C
//	    SHA-256 of the object, 32 bytes
//	    tombstones: form u8 = 1, varint count, per artifact the varint distance from the one before (the first from 0)
//	                form u8 = 2, varint count of words, u64 words, a bit per artifact, least significant first
//	varint number of lists of derived objects; per list, oldest first:
//	    varint length and bytes of the name below chunks/
//	    varint entries, varint length, u32 CRC32C, SHA-256
//	    tombstones, a bit per entry
//	varint number of erased incarnations, 16 bytes each, ascending
//	if signed: HMAC-SHA-256 of everything before it, 32 bytes
//	u32 CRC32C of everything before it
//
// Version 1 ended after the chunks.
// An artifact speaks if its index is among the header's indexes and it has no tombstone: dropping an index touches no chunk.
const (
	bodyMagic   = "SKOV"
	bodyVersion = 2
	maxBody     = 64 << 20
	maxHeader   = 16 << 20
	maxChunks   = 64
	maxName     = 1024
	minChunkRef = 47 // bytes of the shortest chunk in a body
	maxDropped  = 256
	flagSigned  = 1
)

// header is the JSON of a version body.
type header struct {
	Version     uint64       `json:"version"`
	Commit      string       `json:"commit"`   // UUID of the commit that made this version
	Previous    string       `json:"previous"` // and of the version before
	CommittedMs int64        `json:"committed_ms"`
	Mounted     bool         `json:"mounted"`
	Table       Table        `json:"table"`
	Upstream    Upstream     `json:"upstream"`
	Indexes     []Definition `json:"indexes"`
	Dropped     []Dropped    `json:"dropped,omitempty"` // the last ones

	Vacuumed    uint64        `json:"vacuumed,omitempty"`  // the version that the last vacuum committed
	Expired     uint64        `json:"expired,omitempty"`   // versions up to this one are not kept
	ErasedIn    uint64        `json:"erased_in,omitempty"` // the version of the last erasure
	Revoked     []Revoked     `json:"revoked,omitempty"`
	Quarantined []Quarantined `json:"quarantined,omitempty"`

	Complete *Complete `json:"complete,omitempty"`
	Pace     *Pace     `json:"pace,omitempty"`
	Lowered  uint64    `json:"lowered,omitempty"` // the last version that may lack something that the one before had
}

// Dropped is a dropped index.
type Dropped struct {
	ID      string `json:"id"`
	Version uint64 `json:"version"`          // the first one without it
	Purged  bool   `json:"purged,omitempty"` // its artifacts were deleted, from earlier versions too
}

// chunkRef names a chunk in a version.
type chunkRef struct {
	name             string
	artifacts, files int
	hotLen, wideLen  int64
	hotCRC, wideCRC  uint32
	sha              [32]byte
	dead             bitset // tombstones
}

type body struct {
	format int // that it was written in
	header header
	chunks []chunkRef
	lists  []listRef
	erased erasedSet

	mac    []byte // nil: not signed
	signed []byte // the bytes that mac is of
}

// encode signs with the key, if there is one.
func (b *body) encode(key []byte) ([]byte, error) {
	head, err := json.Marshal(&b.header)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "overlay version", err)
	}
	if len(head) > maxHeader || len(b.chunks) > maxChunks || len(b.lists) > maxLists || len(b.header.Indexes) > maxIndexes {
		return nil, fault.New(fault.Exhausted, "overlay version", "%d header bytes, %d chunks, %d lists, %d indexes",
			len(head), len(b.chunks), len(b.lists), len(b.header.Indexes))
	}
	b.format = bodyVersion
	var w bytescan.Writer
	w.Bytes([]byte(bodyMagic))
	flags := byte(0)
	if len(key) > 0 {
		flags = flagSigned
	}
	w.Bytes([]byte{bodyVersion, flags, 0, 0})
	w.U32(uint32(len(head)))
	w.Bytes(head)
	w.Uvarint(uint64(len(b.chunks)))
	for _, c := range b.chunks {
		w.String(c.name)
		w.Uvarint(uint64(c.artifacts))
		w.Uvarint(uint64(c.files))
		w.Uvarint(uint64(c.hotLen))
		w.U32(c.hotCRC)
		w.Uvarint(uint64(c.wideLen))
		w.U32(c.wideCRC)
		w.Bytes(c.sha[:])
		c.dead.encode(&w)
	}
	w.Uvarint(uint64(len(b.lists)))
	for i := range b.lists {
		b.lists[i].encode(&w)
	}
	b.erased.encode(&w)
	if len(key) > 0 {
		b.signed = w.Buf
		b.mac = macOf(key, b.signed)
		w.Bytes(b.mac)
	}
	w.U32(bytescan.CRC32C(w.Buf))
	return w.Buf, nil
}

func parseBody(name string, raw []byte) (*body, error) {
	r := bytescan.NewReader(name, raw)
	if len(raw) < 16 || len(raw) > maxBody {
		r.Fail("%d bytes are no overlay version", len(raw))
		return nil, r.Err()
	}
	if string(r.Bytes(len(bodyMagic))) != bodyMagic {
		r.Fail("no overlay version")
		return nil, r.Err()
	}
	format := int(r.U8())
	if format < 1 || format > bodyVersion {
		return nil, newerFormat(name, format, bodyVersion)
	}
	end := len(raw) - 4
	if err := bytescan.CheckCRC(name, raw[:end], bytescan.NewReader(name, raw[end:]).U32()); err != nil {
		return nil, err
	}
	b := &body{format: format}
	if format > 1 && raw[len(bodyMagic)+1]&flagSigned != 0 {
		end -= sha256Size
		if end < 16 {
			r.Fail("%d bytes are no signed overlay version", len(raw))
			return nil, r.Err()
		}
		b.mac, b.signed = raw[end:end+sha256Size], raw[:end]
	}
	r = bytescan.NewReader(name, raw[:end])
	r.Bytes(8)
	head := r.Bytes(int(min(r.U32(), maxHeader+1)))
	if len(head) > maxHeader {
		r.Fail("header of more than %d bytes", maxHeader)
	}
	if r.Err() == nil {
		if err := json.Unmarshal(head, &b.header); err != nil {
			r.Fail("header: %v", err)
		}
	}
	if len(b.header.Indexes) > maxIndexes {
		r.Fail("%d indexes, limit %d", len(b.header.Indexes), maxIndexes)
	}
	b.chunks = make([]chunkRef, r.Count(maxChunks, minChunkRef))
	for i := range b.chunks {
		b.chunks[i] = parseChunkRef(r)
	}
	if format > 1 {
		b.lists = make([]listRef, r.Count(maxLists, minListRef))
		for i := range b.lists {
			b.lists[i] = parseListRef(r)
		}
		b.erased = parseErased(r)
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	return b, nil
}

func (s erasedSet) encode(w *bytescan.Writer) {
	w.Uvarint(uint64(len(s)))
	for _, k := range s {
		w.Bytes(k[:])
	}
}

func parseErased(r *bytescan.Reader) erasedSet {
	raw := r.Bytes(r.Count(maxErased, len(eraseKey{})) * len(eraseKey{}))
	var out erasedSet
	for ; len(raw) > 0; raw = raw[len(eraseKey{}):] {
		k := eraseKey(raw)
		if n := len(out); n > 0 && compareEraseKeys(out[n-1], k) >= 0 {
			r.Fail("erased incarnations out of order")
			return nil
		}
		out = append(out, k)
	}
	return out
}

func parseChunkRef(r *bytescan.Reader) chunkRef {
	c := chunkRef{name: chunkName(r)}
	c.artifacts = r.Count(math.MaxInt32, 0)
	c.files = r.Count(math.MaxInt32, 0)
	c.hotLen, c.hotCRC = int64(r.Count(maxChunkHot, 0)), r.U32()
	c.wideLen, c.wideCRC = int64(r.Count(maxChunkWide, 0)), r.U32()
	if int64(c.artifacts)*artifactSize > c.hotLen || int64(c.files)*fileSize > c.hotLen {
		r.Fail("chunk %q: %d artifacts and %d files in %d bytes", c.name, c.artifacts, c.files, c.hotLen)
	}
	copy(c.sha[:], r.Bytes(sha256Size))
	if r.Err() == nil {
		c.dead = decodeBits(r, c.artifacts)
	}
	return c
}

// chunkName reads the name of an object below chunks/.
func chunkName(r *bytescan.Reader) string {
	name := r.String(maxName)
	if r.Err() == nil && (name == "" || strings.Contains(name, "/")) {
		r.Fail("chunk named %q", name)
	}
	return name
}

// newerFormat is the error for bytes of a later format.
func newerFormat(what string, got, known int) error {
	return fault.New(fault.Unsupported, what, "format version %d, this build reads %d", got, known).WithFix("upgrade skomer")
}

// versionName is the object name of a version: the newest comes first in a listing.
func versionName(version uint64) string { return fmt.Sprintf("%020d", math.MaxUint64-version) }

// versionNumber is the version with the object name, or 0.
func versionNumber(name string) uint64 {
	if len(name) != 20 {
		return 0
	}
	n, err := strconv.ParseUint(name, 10, 64)
	if err != nil {
		return 0
	}
	return math.MaxUint64 - n
}
