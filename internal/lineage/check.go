package lineage

import (
	"fmt"
	"math"
	"strings"
)

// MaxRows is the number of rows that a segment must stay below: ordinals are uint32.
const MaxRows = int64(math.MaxUint32) + 1

// Unknown is a count that the caller does not know.
const Unknown int64 = -1

// Claim is what an artifact states of itself, apart from its files.
type Claim struct {
	Index          string // what messages call it: the bundle, or index and bundle
	FormatVersion  int
	TableUUID      string
	SnapshotID     int64
	SequenceNumber int64
	Rows           int64 // of its segment
}

// ClaimOf is the claim of a whole record.
func ClaimOf(r *Record) Claim {
	c := Claim{Index: r.FilePath, FormatVersion: r.FormatVersion, TableUUID: r.TableUUID, SnapshotID: r.SnapshotID, SequenceNumber: r.SequenceNumber}
	for i := range r.Files {
		c.Rows += max(0, r.Files[i].Records)
		if c.Rows >= MaxRows {
			return c
		}
	}
	return c
}

// Current is a data file as the reader knows it now.
type Current struct {
	File                // path, size and records as the snapshot's manifest states them; tag and hashes where known
	FooterRecords int64 // by the Parquet footer, or Unknown
}

// Options are what the check needs to know of the table and the operator.
type Options struct {
	TableUUID         string
	TableLastSequence int64 // of the table, not of a time-travelled snapshot
	ActiveSnapshotID  int64 // for messages
	// Strict rejects unless the file's present tag was looked up.
	Strict bool
	// RequireHash rejects unless a content hash could be compared: strict reads of local files.
	RequireHash bool
	// AllowUnverified lets an artifact speak that has no lineage or no recorded tag.
	AllowUnverified bool
}

// Check runs every step for one data file of an artifact. recorded is the file as its build read it.
func Check(c Claim, recorded File, now Current, o Options) Verdict {
	if v := CheckClaim(c, o); !v.OK() {
		return v
	}
	return CheckFile(c, recorded, now, o)
}

// CheckClaim runs the steps that concern the artifact as a whole; once per artifact is enough.
func CheckClaim(c Claim, o Options) Verdict {
	switch {
	case c.FormatVersion > FormatVersion:
		return reject(c, NewerFormat, "format version %d is newer than %d", c.FormatVersion, FormatVersion)
	case c.FormatVersion < FormatVersion && !(o.AllowUnverified && c.FormatVersion == 1):
		return reject(c, OldFormat, "format version %d carries no lineage", c.FormatVersion)
	case c.Rows < 0 || c.Rows >= MaxRows:
		return reject(c, TooManyRows, "segment of %d rows (limit %d)", c.Rows, MaxRows-1)
	case c.FormatVersion == 1:
		return Verdict{}
	case !strings.EqualFold(c.TableUUID, o.TableUUID):
		return reject(c, OtherTable, "table UUID mismatch (expected %s, got %s)", orNone(o.TableUUID), orNone(c.TableUUID))
	case c.SequenceNumber > o.TableLastSequence:
		return reject(c, FromFuture, "from future snapshot %d (active %d): sequence number %d is above the table's last, %d",
			c.SnapshotID, o.ActiveSnapshotID, c.SequenceNumber, o.TableLastSequence)
	}
	return Verdict{}
}

// CheckFile runs the identity steps for one data file: manifest, entity, content.
func CheckFile(c Claim, recorded File, now Current, o Options) Verdict {
	switch {
	case recorded.Path != now.Path:
		return reject(c, PathMismatch, "path mismatch (expected %s, got %s)", now.Path, recorded.Path)
	case recorded.Size != now.Size && !(c.FormatVersion == 1 && recorded.Size == 0):
		return reject(c, SizeMismatch, "size mismatch (expected %d, got %d)", now.Size, recorded.Size)
	case now.FooterRecords != Unknown && now.FooterRecords != now.Records:
		return reject(c, FooterRowsMismatch, "footer rows mismatch (manifest %d, footer %d)", now.Records, now.FooterRecords)
	case recorded.Records != now.Records:
		return reject(c, RecordCountMismatch, "record count mismatch (expected %d, got %d)", now.Records, recorded.Records)
	case now.Records < 0 || now.Records >= MaxRows:
		return reject(c, TooManyRows, "file of %d rows (limit %d)", now.Records, MaxRows-1)
	}
	return checkContent(c, recorded, now.File, o)
}

func checkContent(c Claim, recorded, now File, o Options) Verdict {
	proven, differ := compareHashes(recorded, now)
	if differ != "" {
		return reject(c, ContentMismatch, "checksum mismatch (%s)", differ)
	}
	if o.RequireHash && !proven {
		return reject(c, HashUnknown, "no content hash to compare")
	}
	switch {
	case proven:
		return Verdict{Restamp: now.Tag != "" && now.Tag != recorded.Tag}
	case o.Strict && now.Tag == "":
		return reject(c, TagUnknown, "entity tag of the data file was not looked up")
	case recorded.Tag == "" && !o.AllowUnverified:
		return reject(c, TagUnrecorded, "no entity tag was recorded for the data file")
	case recorded.Tag != "" && now.Tag != "" && recorded.Tag != now.Tag:
		return reject(c, TagMismatch, "entity tag mismatch (expected %s, got %s)", now.Tag, recorded.Tag)
	}
	return Verdict{}
}

// compareHashes compares every hash that both sides have. The content is proven by the hash of the whole file, or by those
// of the footer and of the indexed columns together.
func compareHashes(recorded, now File) (proven bool, differ string) {
	equal := func(part, was, is string) bool {
		if was == "" || is == "" {
			return false
		}
		if !strings.EqualFold(was, is) && differ == "" {
			differ = fmt.Sprintf("%s: expected %s, got %s", part, is, was)
		}
		return true
	}
	whole := equal("file", recorded.FileSHA256, now.FileSHA256)
	footer := equal("footer", recorded.FooterSHA256, now.FooterSHA256)
	columns := equal("columns", recorded.ColumnsSHA256, now.ColumnsSHA256)
	return differ == "" && (whole || footer && columns), differ
}

// CheckColumns compares how the indexed columns were found and encoded with how the reader finds them now. Columns the
// reader does not name, and its empty fields, are not compared.
func CheckColumns(c Claim, recorded, now []Column) Verdict {
	for i := range now {
		n := &now[i]
		var was *Column
		for j := range recorded {
			if recorded[j].FieldID == n.FieldID {
				was = &recorded[j]
			}
		}
		if was == nil {
			return reject(c, LeafMismatch, "field %d (%s) is not among its columns", n.FieldID, n.Name)
		}
		if v := checkColumn(c, was, n); !v.OK() {
			return v
		}
	}
	return Verdict{}
}

func checkColumn(c Claim, was, now *Column) Verdict {
	differs := func(a, b string) bool { return b != "" && a != b }
	switch {
	case differs(was.Resolved, now.Resolved) || now.Resolved != "" && was.LeafPath != now.LeafPath:
		return reject(c, LeafMismatch, "field %d leaf mismatch (expected %q by %s, got %q by %s)",
			now.FieldID, now.LeafPath, now.Resolved, was.LeafPath, orNone(was.Resolved))
	case differs(was.Mapping, now.Mapping):
		return reject(c, LeafMismatch, "field %d name mapping mismatch (expected %s, got %s)", now.FieldID, now.Mapping, orNone(was.Mapping))
	case differs(was.Expr, now.Expr):
		return reject(c, EncodingMismatch, "field %d expression mismatch (expected %s, got %s)", now.FieldID, now.Expr, orNone(was.Expr))
	case differs(was.Encoding, now.Encoding):
		return reject(c, EncodingMismatch, "field %d encoding mismatch (expected %s, got %s)", now.FieldID, now.Encoding, orNone(was.Encoding))
	case differs(was.Physical, now.Physical):
		return reject(c, EncodingMismatch, "field %d physical type mismatch (expected %s, got %s)", now.FieldID, now.Physical, orNone(was.Physical))
	case differs(was.Absent, now.Absent):
		return reject(c, AbsentMismatch, "field %d value of absent rows mismatch (expected %s, got %s)", now.FieldID, now.Absent, orNone(was.Absent))
	}
	return Verdict{}
}

func reject(c Claim, r Reason, format string, args ...any) Verdict {
	return Verdict{Reason: r, Message: "Index " + c.Index + " rejected: " + fmt.Sprintf(format, args...)}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
