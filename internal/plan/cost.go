package plan

import (
	"fmt"
	"math"

	"github.com/skomerdb/skomer/internal/predicate"
)

// Profile is what reading takes of a store.
type Profile struct {
	Name           string
	Wave           float64 // seconds until the first byte of a wave of requests
	Request        float64 // seconds that each request adds to its wave
	BytesPerSecond float64
}

// The profiles of files and of object storage (a median of 30 ms to the first byte, 90 MB/s a connection, some 16 of them).
var (
	LocalStore  = Profile{Name: "local files", Wave: 50e-6, Request: 15e-6, BytesPerSecond: 2e9}
	ObjectStore = Profile{Name: "object storage", Wave: 30e-3, Request: 2e-3, BytesPerSecond: 1e9}
)

// Seconds of one core, measured on the event table of row 16 of the bench: to decode and test a value, to take a row from an exact index
// and pick it from decoded pages, and to ask a Bloom filter or value set of one granule.
const (
	testValue = 4e-9
	takeEntry = 60e-9
	askOnce   = 400e-9
	// findPoint is to read and search the block of an exact index that one value lies in.
	findPoint = 15e-6
)

// Cost is what a way to answer is expected to take, in requests, bytes and seconds on one core.
type Cost struct {
	Requests float64 `json:"requests"`
	Bytes    float64 `json:"bytes"`
	Seconds  float64 `json:"seconds"`
}

func (c *Cost) add(p Profile, requests, bytes, cpu float64) {
	c.Requests += requests
	c.Bytes += bytes
	c.Seconds += requests*p.Request + bytes/p.BytesPerSecond + cpu
}

// Add adds another cost.
func (c *Cost) Add(o Cost) {
	c.Requests += o.Requests
	c.Bytes += o.Bytes
	c.Seconds += o.Seconds
}

// Scene is what the cost rule looks at: the files that manifests leave, and what is known of their columns.
type Scene struct {
	Profile Profile
	// MinSelectivity is the share of rows, from 0 to 1, above which no index is asked; 0: never.
	MinSelectivity float64
	Known          Known
	// Files, Bytes and Rows are those left after pruning.
	Files       int
	Bytes, Rows int64
	// Columns is the number of columns of the table, of which the bytes of one are taken to be an equal part.
	Columns int
}

// columnBytes is an estimate of the bytes of one column.
func (s *Scene) columnBytes() float64 { return float64(s.Bytes) / float64(max(s.Columns, 1)) }

// Broad is why the whole predicate keeps so many rows that no index is worth asking, or "".
func (s *Scene) Broad(t *predicate.Tree) (share float64, known bool, why string) {
	share, known = s.Known.Share(t)
	if known && s.MinSelectivity > 0 && share > s.MinSelectivity {
		why = fmt.Sprintf("some %s of the rows match, more than %s: a scan is cheaper", percent(share), percent(s.MinSelectivity))
	}
	return share, known, why
}

// Offer is an index that could be asked about leaves of one conjunction.
type Offer struct {
	Exact   bool
	PerFile bool // one artifact a file, else one over many
	// Values is how many values are asked for one by one; ranges count as one.
	Values int
}

// Judgement is the outcome of the cost rule for one index.
type Judgement struct {
	Ask   bool
	Share float64 // of the rows that pass the leaves; negative: unknown
	// Index is what asking takes, Saved what reading then takes less.
	Index, Saved Cost
	Why          string
}

// Judge weighs asking an index about leaves of one conjunction against reading their columns. Where nothing is known of the values, it is
// asked.
func (s *Scene) Judge(leaves []*predicate.Leaf, o Offer) Judgement {
	share, known := s.Known.joint(leaves)
	if !known || s.Rows == 0 {
		return Judgement{Ask: true, Share: -1}
	}
	j := Judgement{Share: share}
	rows, files := float64(s.Rows), float64(s.Files)
	matches := share * rows
	// Matching rows lie anywhere: bounds that showed where they do not lie have ruled those files out already.
	none := math.Exp(-matches / max(files, 1)) // part of the files without a match
	artifacts := files
	if !o.PerFile {
		artifacts = math.Ceil(rows / segmentRows)
	}
	values := float64(max(o.Values, 1))
	j.Index.add(s.Profile, 2*artifacts, artifacts*rootBytes, artifacts*values*askOnce)
	if o.Exact {
		j.Index.add(s.Profile, 0, matches*entryBytes+values*blockBytes, matches*takeEntry+values*findPoint)
	}
	skipped := none
	if o.Exact {
		skipped = 1 // the column is not read where the answer is known
	}
	j.Saved.add(s.Profile, files*(2*none+skipped), s.columnBytes()*skipped, rows*testValue*skipped)
	j.Ask = j.Index.Seconds <= j.Saved.Seconds
	if !j.Ask {
		j.Why = fmt.Sprintf("some %s of the rows pass: asking would take %s and save %s", percent(share), duration(j.Index.Seconds), duration(j.Saved.Seconds))
	}
	return j
}

// Rough sizes of artifacts: rows of a segment over many files, the bytes that a row takes in an exact index, and a root with directory.
const (
	segmentRows = 4 << 20
	entryBytes  = 5
	blockBytes  = 4 << 10
	rootBytes   = 4 << 10
)

// Scan is what a scan of the files left is expected to take: footers and the columns of the predicate.
func (s *Scene) Scan(t *predicate.Tree) Cost {
	columns := map[int]bool{}
	t.Leaves(func(l *predicate.Leaf) { columns[l.Column.ID()] = true })
	n := float64(len(columns))
	var c Cost
	c.Seconds = 3 * s.Profile.Wave
	c.add(s.Profile, float64(s.Files)*(1+n), s.columnBytes()*n, float64(s.Rows)*testValue*n)
	return c
}

// percent is a share for people.
func percent(x float64) string {
	switch x *= 100; {
	case x >= 10:
		return fmt.Sprintf("%.0f %%", x)
	case x >= 0.1:
		return fmt.Sprintf("%.1f %%", x)
	default:
		return fmt.Sprintf("%.2g %%", x)
	}
}

// duration is seconds for people.
func duration(s float64) string {
	switch {
	case s >= 1:
		return fmt.Sprintf("%.1f s", s)
	case s >= 1e-3:
		return fmt.Sprintf("%.1f ms", s*1e3)
	default:
		return fmt.Sprintf("%.0f µs", s*1e6)
	}
}

// PointsOf is the number of values that a leaf asks for one by one.
func PointsOf(l *predicate.Leaf) int {
	if l.Op == predicate.In {
		return len(l.Values)
	}
	return 1
}
