// Package scan answers: which rows of a snapshot match a filter, and what did finding them cost?
//
// Planner turns facts, a predicate and index evidence into a Plan: per data file the rows that may match and the rows that
// must, with the reason for every file ruled out. Reader turns a Plan into rows: what is unsure is rechecked by reading
// the predicate's columns alone, then the projection is read at the answer only (late materialisation). The package
// knows no ranking and no catalog.
package scan

import (
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
)

// File is one data file of a plan.
type File struct {
	Ordinal int // in facts.Files
	Path    string
	Tag     store.Tag // sent with every read when not empty
	Size    int64
	// Records is the manifest's count; Verdict is over so many rows.
	Records uint32
	Verdict rowset.Verdict
	// Indexed tells that index evidence went into Verdict, so that a changed tag means: again, without it.
	Indexed bool
	// mapped tells that a file map spoke, of bytes with mapTag; facts is the verdict without it.
	mapped bool
	mapTag store.Tag
	facts  rowset.Verdict
	// layout is where the pages of these bytes are; without places the footer is read.
	layout filemap.Layout
}

// Plan is the files to read, in the order of (path, ordinal).
type Plan struct {
	Snapshot  *facts.Snapshot
	Predicate *predicate.Tree
	Files     []File
	Decisions []Decision // one per file of the snapshot; nil unless asked for
	Report    Report
}

// Report is what planning found out.
type Report struct {
	Total    int // files of the snapshot
	Pruned   int // ruled out by manifest facts alone
	RuledOut int // ruled out by index evidence
	// Unanswered is the files left for which no index evidence spoke.
	Unanswered int
	Used       []string // index ids that spoke
	Missing    []string // index ids that would help and do not cover every file left
	Rejected   []Rejection
	// Scanned tells that the cost rule chose not to ask any index, and why.
	Scanned string
	// Unasked is indexes that the cost rule chose not to ask, and Estimate what it went by; nil where it knew nothing.
	Unasked  []Unasked
	Estimate *Estimate
}

// Rejection is an artifact that was not believed for a file.
type Rejection struct {
	Index, Bundle, File string
	Reason              string // one of few words, for counting
	Detail              string
}

// Decision is why a file is read or not, for explain.
type Decision struct {
	File      int
	Kept      bool
	By        string // what ruled it out, or how many rows are left by which evidence
	ByIndex   bool   // index evidence spoke
	Must, May int64
	Deleted   int64 // rows of the file that deletes hide, among those that may match
}

// Rows receives an answer batch of one file; it must not keep it.
type Rows func(file *File, b *column.Batch) error

// Counters is what reading a plan cost beside requests and bytes, which the store's meter counts.
type Counters struct {
	FilesOpened int
	RowGroups   int // row groups of which at least one page was read
	Pages       int // page runs fetched
	Rows        int64
	DeleteFiles int      // delete files and vectors read
	Warnings    []string // what was ignored in them
	// Changed is the files whose tag no longer matched their index and which were therefore scanned.
	Changed []string
}
