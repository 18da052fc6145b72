package plan

import (
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/predicate"
)

// Shares is the part of the bytes of data files, 0 to 1, that each column takes, by field id.
type Shares map[int]float64

// textWidth is what a value without a fixed width is taken to have, in bytes.
const textWidth = 16

// SharesOf takes the column sizes that manifests state. Where they state none, columns are taken to be as wide as their values.
func SharesOf(s *facts.Snapshot) Shares {
	widths := s.Files.Stored
	if len(widths) == 0 {
		widths = map[int]float64{}
		s.Schema.Walk(func(p column.Path) bool {
			if t := p.Leaf().Type; !t.Kind.Nested() {
				widths[p.Leaf().ID] = widthOf(t)
			}
			return true
		})
	}
	total := 0.0
	for _, w := range widths {
		total += w
	}
	out := Shares{}
	for id, w := range widths {
		out[id] = w / total
	}
	return out
}

func widthOf(t column.Type) float64 {
	switch n := t.Size(); {
	case t.Kind == column.Bool:
		return 1.0 / 8
	case n > 0:
		return float64(n)
	default:
		return textWidth
	}
}

// columnBytes is an estimate of the bytes of the columns that leaves are on.
func (s *Scene) columnBytes(leaves ...*predicate.Leaf) float64 {
	share := 0.0
	seen := map[int]bool{}
	for _, l := range leaves {
		id := l.Column.ID()
		if seen[id] {
			continue
		}
		seen[id] = true
		part, known := s.Shares[id]
		if !known {
			part = 1 / float64(max(s.Columns, 1))
		}
		share += part
	}
	return float64(s.Bytes) * min(share, 1)
}

// tails is the bytes that opening n of the files takes, and what is left to read of their columns then: all (1), or nothing (0) of files that
// are no longer than a tail.
func (s *Scene) tails(n float64) (bytes, left float64) {
	size := float64(s.Bytes) / float64(max(s.Files, 1))
	if size <= float64(s.Tail) {
		return n * size, 0
	}
	return n * float64(s.Tail), 1
}
