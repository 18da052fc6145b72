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
// (column.AppendKey), which variable-length kinds precede by their varint length. A row of a list is 0 for null; else 1, the
// varint number of elements, and each element in the form above. A hash is SHA-256 cut to 128 bits.
type columnHash struct {
	lists *index.Elements // of a list's element; else only its keys are used
	list  bool
	sums  []string
	buf   []byte
	rows  int
	// follow makes it write rows and cut nothing; ends is then where each row ends in buf.
	follow bool
	ends   []int
}

func newColumnHash(path column.Path) (*columnHash, error) {
	e, err := index.EncodingOf(path.Leaf().Type)
	if err != nil {
		return nil, err
	}
	return &columnHash{lists: index.NewElements(e, path), list: index.OfList(path)}, nil
}

func (h *columnHash) add(v *column.Vector) error {
	if !h.list {
		if err := h.lists.Keys.Load(v); err != nil {
			return err
		}
		for i := range v.Len {
			h.value(i)
			h.endRow()
		}
		return nil
	}
	if err := h.lists.Load(v); err != nil {
		return err
	}
	for i := range v.Len {
		from, to, null := h.lists.Row(i)
		if null {
			h.buf = append(h.buf, 0)
		} else {
			h.buf = binary.AppendUvarint(append(h.buf, 1), uint64(to-from))
		}
		for ; from < to; from++ {
			h.value(from)
		}
		h.endRow()
	}
	return nil
}

// value writes value i of the keys.
func (h *columnHash) value(i int) {
	k := h.lists.Keys
	switch {
	case k.Null(i):
		h.buf = append(h.buf, 0)
	case k.Encoding.Narrow():
		h.buf = k.Encoding.AppendNarrow(append(h.buf, 1), k.Narrow[i])
	default:
		key := k.Wide(i)
		h.buf = append(h.buf, 1)
		if k.Encoding.Size() == 0 {
			h.buf = binary.AppendUvarint(h.buf, uint64(len(key)))
		}
		h.buf = append(h.buf, key...)
	}
}

func (h *columnHash) endRow() {
	if h.follow {
		h.ends = append(h.ends, len(h.buf))
		return
	}
	if h.rows++; h.rows == blockRows {
		h.cut()
	}
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
