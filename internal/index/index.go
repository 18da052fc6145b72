// Package index answers: what is an index kind, and what must it promise?
//
// A kind turns column values into an artifact (a small root and a body) and answers leaves from it. Kinds live in folders
// below (zonemap, bloom, ordered, …); index/kinds is the one table of them. A kind knows no store and no Iceberg: it says
// which spans of its body it needs and is fed bytes, so that all probes of a query advance together, wave by wave.
//
// The one law: a verdict may be as vague as it likes, but a row outside May must not match and a row inside Must has to.
// Whatever a reader cannot parse, verify or convert exactly is rowset.Maybe.
package index

import (
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Span is a byte range of an artifact's body.
type Span struct{ Off, Len int64 }

// Power is the most that a kind can say of a leaf.
type Power uint8

// The powers, weakest first.
const (
	Nothing  Power = iota
	Superset       // May excludes rows; the rest is rechecked
	Exact          // Must equals May
)

// String names the power as docs/format tables do.
func (p Power) String() string { return [...]string{"nothing", "superset", "exact"}[p] }

// Scope is how many data files one artifact of a kind covers.
type Scope uint8

// The scopes.
const (
	PerFile Scope = iota // cheap to build: one artifact a data file
	Tiered               // one artifact over a segment of several files, merged as the table grows
)

// Params are an index declaration's key=value pairs.
type Params map[string]string

// Spec is what a builder is told before the first value.
type Spec struct {
	Columns []column.Path // from top level to the indexed primitive field; most kinds take one
	Params  Params
	Rows    uint32 // rows of the segment
	// RowGroups and Pages are the first ordinals of each row group and of each page of the first column, ascending, from 0. Pages
	// contains RowGroups; where the file has no page index the two are equal.
	RowGroups, Pages []uint32
}

// Budget bounds a build.
type Budget struct {
	Memory  int64  // bytes the builder may hold
	TempDir string // where it may spill; the caller removes it
}

// Sink takes an artifact's body in order.
type Sink interface {
	Write(p []byte) (int, error)
	Offset() int64 // bytes of this body written so far, 0 at first
}

// Cutter is a builder whose segment may end before the rows that its Spec announced.
type Cutter interface {
	// Cut makes the rows that were added, so many, all that there are. Finish makes what it would if the Spec had said so.
	Cut(rows uint32) error
}

// Builder makes one artifact.
type Builder interface {
	// Add takes the values of the next rows, in ordinal order without gaps; cols runs parallel to Spec.Columns. The vectors are
	// only valid during the call.
	Add(cols []*column.Vector) error
	// Finish writes the body and returns the root. It fails unless exactly Spec.Rows rows were added. A nil root without an
	// error means that the artifact is not worth keeping (a Bloom filter above its fill limit): nothing is published and
	// reason says why.
	Finish(body Sink) (root []byte, reason string, err error)
	// Close releases memory and spill files; it may follow Finish or replace it.
	Close() error
}

// Kind is one index algorithm.
type Kind interface {
	// Check tells why an index of these columns and parameters cannot be declared (an Invalid or Unsupported fault), or nil.
	Check(cols []column.Path, params Params) error
	// Says is the most that an artifact on these columns can say of the leaf.
	Says(cols []column.Path, leaf *predicate.Leaf) Power
	// NewBuilder starts an artifact.
	NewBuilder(spec Spec, budget Budget) (Builder, error)
	// Open reads a root, whose checksum the caller has verified, of an artifact over rows rows. A damaged root is a Corrupt fault.
	Open(root []byte, rows uint32) (Reader, error)
	// Merge writes the artifact over the rows that m keeps of the sources; spec describes the new segment. What it answers is what an
	// artifact built from those rows may answer: rows that m drops never come back, nulls and NaNs move with the values, and what a
	// source has too many of stays too many. A nil root with a reason means that these artifacts cannot be merged faithfully, or are
	// not worth it: build the new one from the data. A damaged source is a Corrupt fault.
	Merge(spec Spec, sources []Source, m *OrdinalMap, budget Budget, body Sink) (root []byte, reason string, err error)
}

// Reader answers leaves from one artifact. It is immutable, safe for concurrent use, and holds no more memory than a small
// multiple of its root.
type Reader interface {
	// Probe starts the answer to a leaf on the artifact's column. The leaf's values are of the column's present type, which may
	// be wider than when the artifact was built.
	Probe(leaf *predicate.Leaf) Probe
}

// Steps is work that needs bytes wave by wave.
type Steps interface {
	// Need is the spans of the body wanted next; empty: done.
	Need() []Span
	// Feed takes exactly the needed spans, in order. An error (a bad checksum, a broken block) ends the steps: what they
	// answer is then "maybe".
	Feed(data [][]byte) error
}

// Probe is the steps that lead to a verdict.
type Probe interface {
	Steps
	// Verdict is the answer so far, sound at any moment: rowset.Maybe before the first byte and after a failed Feed.
	Verdict() rowset.Verdict
}

// Counted is a probe that can tell, before it reads them, about how many rows it will take from its body one by one. 0: none, or not known
// yet.
type Counted interface {
	Entries() int64
}

// Listing is a kind whose probes may read through all distinct values of an artifact.
type Listing interface {
	ListsValues() bool
}

// Limited is a reader of a kind that gives up on values where there are too many: of parts, which are row groups or the whole artifact,
// silent ones answer no test of a value.
type Limited interface {
	Silent() (silent, parts int)
}

// Settled is a probe that needs no bytes.
type Settled rowset.Verdict

// Need is empty.
func (Settled) Need() []Span { return nil }

// Feed takes nothing.
func (Settled) Feed([][]byte) error { return nil }

// Verdict returns the verdict.
func (s Settled) Verdict() rowset.Verdict { return rowset.Verdict(s) }
