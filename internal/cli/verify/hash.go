package verify

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
)

// rowHash is a hash of rows in order, whatever batches they come in.
type rowHash struct {
	to  hash.Hash
	buf []byte
}

const hashBlock = 64 << 10

func newRowHash() *rowHash { return &rowHash{to: sha256.New()} }

func (h *rowHash) add(b *skomer.Batch) error {
	for row := range b.Rows {
		for _, col := range b.Cols {
			h.value(col, row)
		}
		if len(h.buf) > hashBlock {
			h.to.Write(h.buf)
			h.buf = h.buf[:0]
		}
	}
	return nil
}

// value appends a null as 0, a boolean as 1 or 2, and anything else as 3, its length and its bytes.
func (h *rowHash) value(v *skomer.Vector, i int) {
	switch {
	case v.Type.Kind == column.Unknown || v.Null(i):
		h.buf = append(h.buf, 0)
	case v.Type.Kind == column.Bool:
		x, _ := v.Value(i)
		h.buf = append(h.buf, byte(1+x.Lo))
	default:
		raw := v.Raw(i)
		h.buf = binary.AppendUvarint(append(h.buf, 3), uint64(len(raw)))
		h.buf = append(h.buf, raw...)
	}
}

func (h *rowHash) sum() [sha256.Size]byte {
	h.to.Write(h.buf)
	h.buf = nil
	return [sha256.Size]byte(h.to.Sum(nil))
}
