package valueset

import (
	"fmt"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
)

// writer gathers finished row groups and writes their artifact.
type writer struct {
	enc    index.Encoding
	ofList bool
	inline int
	cap    int
	groups []group
	small  int             // bytes of the sets that a root may still hold, -1: they are too many
	sets   *index.Overflow // only the end may write a body
	kept   int64           // bytes in it
}

func (k Kind) newWriter(e index.Encoding, ofList bool, values int, budget index.Budget) writer {
	inline := k.inline
	if inline == 0 {
		inline = inlineRoot
	}
	return writer{enc: e, ofList: ofList, inline: inline, cap: values, sets: index.NewOverflow(budget.TempDir, budget.Bytes()/4)}
}

// add takes the next row group with the bytes of its set, none where it has too many values or none at all.
func (w *writer) add(g group, set []byte) error {
	g.unit = index.Unit{Span: index.Span{Off: w.kept, Len: int64(len(set))}, CRC: bytescan.CRC32C(set)}
	if w.small >= 0 {
		g.set = set
		if w.small += len(set); w.small > w.inline {
			w.dropSmall()
			g.set = nil
		}
	}
	w.groups = append(w.groups, g)
	w.kept += g.unit.Len
	return w.sets.Keep(set)
}

// dropSmall gives up on a root with every set in it.
func (w *writer) dropSmall() {
	for i := range w.groups {
		w.groups[i].set = nil
	}
	w.small = -1
}

// seal writes the body and returns the root.
func (w *writer) seal(body index.Sink) ([]byte, string, error) {
	if w.useless() {
		return nil, fmt.Sprintf("every row group has more than %d distinct values or %d bytes of them", w.cap, byteCap(w.cap)), nil
	}
	if w.small >= 0 {
		if root := w.root(0, formInline); len(root) <= w.inline {
			return root, "", nil
		}
	}
	root := w.root(w.kept, formUnits)
	if len(root) > maxRoot {
		return nil, fmt.Sprintf("the root takes %d bytes, above the limit of %d: too many row groups", len(root), maxRoot), nil
	}
	return root, "", w.sets.CopyTo(body)
}

// useless reports whether no row group lists its values.
func (w *writer) useless() bool {
	for i := range w.groups {
		if !w.groups[i].tooMany {
			return false
		}
	}
	return len(w.groups) > 0
}

func (w *writer) root(bodySize int64, form uint8) []byte {
	out := index.StartRoot(version, w.enc)
	index.AppendShape(out, w.ofList)
	out.Uvarint(uint64(bodySize))
	out.Uvarint(uint64(len(w.groups)))
	out.U8(form)
	for i := range w.groups {
		w.groups[i].append(out, w.enc, w.ofList, form)
	}
	return out.Buf
}
