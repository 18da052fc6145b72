package parquetio

import (
	"slices"
	"sort"

	"github.com/skomerdb/skomer/internal/store"
)

// Held is the byte ranges of one object that are already in memory. The zero value is empty. No heldRun contains another, so
// that offsets and ends both ascend.
type Held struct{ runs []heldRun }

type heldRun struct {
	off  int64
	data []byte
}

func (p heldRun) end() int64 { return p.off + int64(len(p.data)) }

// from is the index of the first heldRun that starts after off.
func (h *Held) from(off int64) int {
	return sort.Search(len(h.runs), func(i int) bool { return h.runs[i].off > off })
}

// Add keeps the bytes at off; they must not change.
func (h *Held) Add(off int64, data []byte) {
	n := heldRun{off, data}
	if _, ok := h.Get(store.Span{Off: off, Len: int64(len(data))}); ok {
		return
	}
	at := sort.Search(len(h.runs), func(i int) bool { return h.runs[i].off >= off })
	end := at
	for end < len(h.runs) && h.runs[end].end() <= n.end() {
		end++
	}
	h.runs = slices.Replace(h.runs, at, end, n)
}

// Get is the bytes of a span if one heldRun holds them all.
func (h *Held) Get(s store.Span) ([]byte, bool) {
	if s.Len == 0 {
		return nil, true
	}
	i := h.from(s.Off) - 1
	if i < 0 || h.runs[i].end() < s.End() {
		return nil, false
	}
	p := h.runs[i]
	return p.data[s.Off-p.off : s.End()-p.off : s.End()-p.off], true
}

// Clone is a copy that can grow by itself; the bytes are shared.
func (h *Held) Clone() Held { return Held{slices.Clone(h.runs)} }

// Missing is the spans that must be fetched.
func (h *Held) Missing(spans []store.Span) []store.Span {
	var out []store.Span
	for _, s := range spans {
		if _, ok := h.Get(s); !ok {
			out = append(out, s)
		}
	}
	return out
}

// All is the bytes of every span; ok is false if any is missing.
func (h *Held) All(spans []store.Span) (data [][]byte, ok bool) {
	data = make([][]byte, len(spans))
	for i, s := range spans {
		if data[i], ok = h.Get(s); !ok {
			return nil, false
		}
	}
	return data, true
}
