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
// into the set of rows of its file, and to ask a Bloom filter or value set of one granule.
const (
	testValue = 4e-9
	takeEntry = 25e-9
	askOnce   = 400e-9
	// findPoint is to read and search the block of an exact index that one value lies in, findPlace the leaf of a file map.
	findPoint = 8e-6
	findPlace = 2e-6
	// listValue is to read one value of a dictionary that is searched from end to end.
	listValue = 40e-9
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
	// Shares is what columns take of the bytes. One that is not in it is taken to be an equal part of all Columns.
	Shares  Shares
	Columns int
	// Tail is the bytes of the read that opens a file: its footer, and what lies before it.
	Tail int64
	// Cores is how many work on a query; files and artifacts are shared out among them. 0: one.
	Cores int
}

// cores is how many of them n pieces of work keep busy.
func (s *Scene) cores(n float64) float64 { return max(1, min(float64(s.Cores), n)) }

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
	// Listed tells that a probe reads through all distinct values of its artifact.
	Listed bool
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
	cores := s.cores(artifacts)
	j.Index.add(s.Profile, 2*artifacts, artifacts*rootBytes, artifacts*values*askOnce/cores)
	if o.Exact {
		j.Index.add(s.Profile, 0, matches*entryBytes+values*blockBytes, (matches*takeEntry+values*findPoint)/cores)
	}
	if o.Listed {
		distinct := s.Known[leaves[0].Column.ID()].Distinct.Value
		j.Index.add(s.Profile, 0, 0, artifacts*min(distinct, rows/artifacts)*listValue)
	}
	skipped := none
	if o.Exact {
		skipped = 1 // the column is not read where the answer is known
	}
	opened, left := s.tails(files)
	j.Saved.add(s.Profile, files*(2*none+skipped), opened*none+s.columnBytes(leaves...)*left*skipped, rows*testValue*skipped/s.cores(files))
	return j.weigh()
}

// margin is how much more than asking takes it must be expected to save: where both are close, the scan is the surer of the two.
const margin = 4.0 / 3

// weigh decides by what asking takes and saves.
func (j Judgement) weigh() Judgement {
	if j.Ask = j.Index.Seconds*margin <= j.Saved.Seconds; !j.Ask {
		j.Why = fmt.Sprintf("some %s of the rows pass: asking would take %s and save %s", percent(j.Share), duration(j.Index.Seconds), duration(j.Saved.Seconds))
	}
	return j
}

// JudgeMap weighs asking a file map for one leaf. It saves what files and granules without a match hold.
func (s *Scene) JudgeMap(l *predicate.Leaf) Judgement {
	share, known := s.Known.joint([]*predicate.Leaf{l})
	if !known || s.Rows == 0 {
		return Judgement{Ask: true, Share: -1}
	}
	j := Judgement{Share: share}
	rows, files, values := float64(s.Rows), float64(s.Files), float64(PointsOf(l))
	matches := share * rows
	granules := max(files, rows/granuleRows, 1)
	if matches > listedGranules*files {
		granules = max(files, 1) // a value in more granules of a file than that is in all of them
	}
	j.Index.add(s.Profile, values, values*blockBytes, values*findPlace)
	noFile, noRows := math.Exp(-matches/max(files, 1)), math.Exp(-matches/granules)
	opened, left := s.tails(files)
	j.Saved.add(s.Profile, 3*files*noFile, opened*noFile+s.columnBytes(l)*left*noRows, rows*testValue*noRows/s.cores(files))
	return j.weigh()
}

// RootsPay weighs reading roots of file maps, a round trip before their leaf can be asked, against asking so many artifacts of which the
// roots are known.
func (s *Scene) RootsPay(roots int, bytes int64, artifacts int) bool {
	maps := Cost{Seconds: s.Profile.Wave}
	maps.add(s.Profile, float64(roots)+1, float64(bytes)+blockBytes, findPlace)
	var each Cost
	n := float64(artifacts)
	each.add(s.Profile, n, n*blockBytes, n*findPoint/s.cores(n))
	return maps.Seconds <= each.Seconds
}

// MostEntries is how many entries a probe of an artifact over some rows may take one by one before reading their column takes less.
func (s *Scene) MostEntries(rows int64, leaves []*predicate.Leaf) int64 {
	if s.Rows == 0 {
		return math.MaxInt64
	}
	part := float64(rows) / float64(s.Rows)
	var column, entry Cost
	column.add(s.Profile, part*float64(s.Files), part*s.columnBytes(leaves...), float64(rows)*testValue/s.cores(float64(s.Files)))
	entry.add(s.Profile, 0, entryBytes, takeEntry)
	return int64(column.Seconds / entry.Seconds / margin)
}

// Rough sizes of artifacts: rows of a segment over many files, the bytes that a row takes in an exact index, and a root with directory.
const (
	segmentRows = 4 << 20
	entryBytes  = 5
	blockBytes  = 4 << 10
	rootBytes   = 4 << 10
)

// What file maps note of a value: granules of so many rows, up to so many of them in a file.
const (
	granuleRows    = 8 << 10
	listedGranules = 8
)

// Scan is what a scan of the files left is expected to take until it knows the matching rows: the tails of the files, and the columns of the
// predicate.
func (s *Scene) Scan(t *predicate.Tree) Cost {
	columns := map[int]bool{}
	var leaves []*predicate.Leaf
	t.Leaves(func(l *predicate.Leaf) {
		columns[l.Column.ID()] = true
		leaves = append(leaves, l)
	})
	n := float64(len(columns))
	opened, left := s.tails(float64(s.Files))
	requests := float64(s.Files)
	if left > 0 {
		requests *= 1 + n
	}
	var c Cost
	c.Seconds = 3 * s.Profile.Wave
	c.add(s.Profile, requests, opened+s.columnBytes(leaves...)*left, float64(s.Rows)*testValue*n)
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
