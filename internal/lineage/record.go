package lineage

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/skomerdb/skomer/internal/fault"
)

// MaxRecord is the largest encoded record that Parse accepts, in bytes.
const MaxRecord = 16 << 20

// Place is a byte range of a bundle and the CRC32C of its bytes.
type Place struct {
	Off, Len int64
	CRC      uint32
}

// End is the offset behind the range.
func (p Place) End() int64 { return p.Off + p.Len }

// Encode is the canonical JSON of a record: fields in the order of the type, map keys ascending, no white space, no
// HTML escapes. Equal records have equal bytes.
func Encode(r *Record) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return nil, fault.Wrap(fault.Invalid, "lineage record of "+r.IndexID, err)
	}
	if buf.Len() > MaxRecord {
		return nil, fault.New(fault.Exhausted, "lineage record of "+r.IndexID, "%d bytes, limit %d", buf.Len(), MaxRecord)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// Parse reads a record. Unknown fields are ignored: later versions may add some.
func Parse(b []byte) (*Record, error) {
	if len(b) > MaxRecord {
		return nil, fault.New(fault.Corrupt, "lineage record", "%d bytes, limit %d", len(b), MaxRecord)
	}
	var r Record
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fault.Wrap(fault.Corrupt, "lineage record", err)
	}
	return &r, nil
}

// Digest is the SHA-256, in lower-case hex, of a record's canonical JSON: what a Puffin blob's properties carry.
func Digest(encoded []byte) string {
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:])
}
