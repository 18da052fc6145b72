package build

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
)

// blockRows is the rows that one hash of a column's values covers.
const blockRows = 65536

// columnHash hashes a column's values block by block, so that a rewrite of the table can be proven to hold the same values in
// the same order without keeping them. A block is, row by row: 0 for null; else 1 and the key-v1 bytes of the value
// (column.AppendKey), which variable-length kinds precede by their varint length. A hash is SHA-256 cut to 128 bits.
type columnHash struct {
	keys *index.Keys
	sums []string
	buf  []byte
	rows int
}

func newColumnHash(t column.Type) (*columnHash, error) {
	e, err := index.EncodingOf(t)
	if err != nil {
		return nil, err
	}
	return &columnHash{keys: index.NewKeys(e)}, nil
}

func (h *columnHash) add(v *column.Vector) error {
	k := h.keys
	if err := k.Load(v); err != nil {
		return err
	}
	narrow, sized := k.Encoding.Narrow(), k.Encoding.Size() == 0
	for i := range v.Len {
		switch {
		case k.Null(i):
			h.buf = append(h.buf, 0)
		case narrow:
			h.buf = k.Encoding.AppendNarrow(append(h.buf, 1), k.Narrow[i])
		default:
			key := k.Wide(i)
			h.buf = append(h.buf, 1)
			if sized {
				h.buf = binary.AppendUvarint(h.buf, uint64(len(key)))
			}
			h.buf = append(h.buf, key...)
		}
		if h.rows++; h.rows == blockRows {
			h.cut()
		}
	}
	return nil
}

func (h *columnHash) cut() {
	sum := sha256.Sum256(h.buf)
	h.sums = append(h.sums, hex.EncodeToString(sum[:16]))
	h.buf, h.rows = h.buf[:0], 0
}

// finish closes the last block and returns the hashes in order.
func (h *columnHash) finish() []string {
	if h.rows > 0 {
		h.cut()
	}
	return h.sums
}
