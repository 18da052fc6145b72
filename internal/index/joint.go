package index

import (
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/predicate"
)

// Joint is a kind that answers some leaves of one conjunction together better than one by one: a range with two ends, an equality of
// the first column and a test of the second. Its readers are JointReaders.
type Joint interface {
	// Joins picks the leaves that one probe of an artifact on these columns would answer together; fewer than two: none.
	Joins(cols []column.Path, leaves []*predicate.Leaf) []*predicate.Leaf
}

// JointReader answers a conjunction.
type JointReader interface {
	// ProbeAll starts the answer to the conjunction of leaves; its verdict is about rows that pass all of them.
	ProbeAll(leaves []*predicate.Leaf) Probe
}
