package scan

import (
	"slices"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/predicate"
)

// Outdated tells why a build now would find the artifact's columns elsewhere in its files, or put other values for absent ones: building
// it anew helps.
func Outdated(a *overlay.ArtifactInfo, s *facts.Snapshot) lineage.Verdict {
	if v := lineage.CheckColumns(a.Claim(), a.Columns, absentNow(a, s)); !v.OK() {
		return v
	}
	if why := Renamed(a, s); why != "" {
		return lineage.Verdict{Reason: lineage.LeafMismatch, Message: why}
	}
	return lineage.Verdict{}
}

// columnsMoved is why the artifact's columns would be found elsewhere in its files now, or "".
func columnsMoved(a *overlay.ArtifactInfo, s *facts.Snapshot) string {
	for _, c := range a.Columns {
		if path := s.Schema.ByID(c.FieldID); c.Resolved == parquetio.Absent.String() && identitySource(s, path) {
			return "column " + c.Name + " is not in its files and has the value of their partition"
		}
	}
	return Renamed(a, s)
}

// absentNow is what rows of files without the artifact's columns hold by the snapshot's schema, for those that lacked them. Values
// of the files' own partitions are columnsMoved's to judge.
func absentNow(a *overlay.ArtifactInfo, s *facts.Snapshot) []lineage.Column {
	var out []lineage.Column
	for _, c := range a.Columns {
		path := s.Schema.ByID(c.FieldID)
		if c.Absent == "" || path == nil || identitySource(s, path) {
			continue
		}
		read := predicate.Column{Path: path}.Read()
		out = append(out, lineage.Column{FieldID: c.FieldID, Name: c.Name, Absent: facts.AbsentState(read.Leaf().Initial)})
	}
	return out
}

// Renamed is why an index build would find the artifact's columns elsewhere in its files now, or "". Columns found by field id
// cannot move. In files without ids and without a name mapping, nested fields go by name.
func Renamed(a *overlay.ArtifactInfo, s *facts.Snapshot) string {
	for _, c := range a.Columns {
		path := s.Schema.ByID(c.FieldID)
		switch {
		case c.Mapping == "":
		case c.Mapping != facts.MappingDigest(s.NameMapping):
			return "the table's name mapping changed since column " + c.Name + " was indexed"
		case s.NameMapping == nil && len(path) > 1 && path.Name() != c.Name:
			return "column " + c.Name + " is called " + path.Name() + " in this snapshot, and its files find nested fields by name"
		}
	}
	return ""
}

func identitySource(s *facts.Snapshot, path column.Path) bool {
	for _, spec := range s.Specs {
		if slices.ContainsFunc(spec.Fields, func(f facts.PartitionField) bool {
			return f.Transform == "identity" && slices.ContainsFunc(path, func(p column.Field) bool { return p.ID == f.SourceID })
		}) {
			return true
		}
	}
	return false
}
