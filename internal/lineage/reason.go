package lineage

// Reason names the step of the check that rejected an artifact, or Valid. Its text is a metric label and never changes.
type Reason uint8

// The reasons, in the order in which the check looks for them.
const (
	Valid               Reason = iota
	OldFormat                  // a loose sidecar without lineage (format version 1)
	NewerFormat                // written by a newer Skomer
	OtherTable                 // another table's UUID
	FromFuture                 // built from a sequence number that the table has not reached
	TooManyRows                // a segment of 2³² rows or more
	PathMismatch               // manifest identity: path
	SizeMismatch               // manifest identity: file size
	RecordCountMismatch        // manifest identity: record count
	FooterRowsMismatch         // the Parquet footer and the manifest count rows differently
	TagUnrecorded              // the build recorded no entity tag
	TagUnknown                 // strict: the file's present tag was not looked up
	TagMismatch                // entity identity: the file was overwritten
	HashUnknown                // content identity was demanded and no hash can be compared
	ContentMismatch            // content identity: the bytes differ
	LeafMismatch               // the column is found elsewhere in the file, or in another way, than when built
	EncodingMismatch           // the values were taken in another encoding or type
	AbsentMismatch             // rows of files without the column held another value
	reasonCount
)

var reasonNames = [reasonCount]string{
	"valid", "old_format", "newer_format", "other_table", "from_future", "too_many_rows", "path_mismatch", "size_mismatch",
	"record_count_mismatch", "footer_rows_mismatch", "tag_unrecorded", "tag_unknown", "tag_mismatch", "hash_unknown",
	"content_mismatch", "leaf_mismatch", "encoding_mismatch", "absent_mismatch",
}

// String is the reason as metrics and explain spell it.
func (r Reason) String() string {
	if r < reasonCount {
		return reasonNames[r]
	}
	return "unknown"
}

// Reasons lists every reason for a rejection.
func Reasons() []Reason {
	out := make([]Reason, 0, reasonCount-1)
	for r := Valid + 1; r < reasonCount; r++ {
		out = append(out, r)
	}
	return out
}

// Verdict is the outcome of a check. The zero value is valid.
type Verdict struct {
	Reason  Reason
	Message string // one line for logs and explain; "" if valid
	// Restamp is set where the tag changed and the content is proven equal: the artifact may speak, and its recorded tag
	// should be replaced.
	Restamp bool
}

// OK reports whether the artifact may speak for the file.
func (v Verdict) OK() bool { return v.Reason == Valid }
