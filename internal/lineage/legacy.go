package lineage

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/fault"
)

// Legacy is what a record of format version 1 says of a loose sidecar: one object with one index of one data file, listed by a JSON
// manifest. It has no lineage that could be checked, and the bytes of its payload are described nowhere: only its declaration is used.
type Legacy struct {
	FormatVersion  int    `json:"format_version"`
	IndexID        string `json:"index_id"`
	IndexCategory  string `json:"index_category"` // vector, lexical, scalar, composite, bloom
	Algorithm      string `json:"algorithm"`      // such as roaring_bitmap_v1
	ColumnName     string `json:"column_name"`
	SnapshotID     int64  `json:"source_snapshot_id"`
	DataChecksum   string `json:"source_data_checksum"` // SHA-256 of the data file; "" where it has no lineage
	Records        int64  `json:"source_record_count"`
	IndexChecksum  string `json:"index_checksum"` // SHA-256 of the sidecar
	FilePath       string `json:"file_path"`      // of the sidecar
	BlobType       string `json:"blob_type"`
	BlobOffset     *int64 `json:"blob_offset"`
	BlobLength     *int64 `json:"blob_length"`
	Compression    string `json:"compression"`
	SourceDataFile string `json:"-"` // the data file under which the record was listed, "" where none is named
}

const (
	// MaxLegacy bounds a manifest of sidecars.
	MaxLegacy   = 64 << 20
	legacyDepth = 32
)

// ParseLegacy reads the records in a JSON manifest, wherever they stand in it: an object with index_id, algorithm and column_name is one.
// Objects around it that name a data_file, or a file_path beside index_files, tell the data file.
func ParseLegacy(name string, raw []byte) ([]Legacy, error) {
	if len(raw) > MaxLegacy {
		return nil, fault.New(fault.Exhausted, name, "%d bytes of sidecar records, limit %d", len(raw), MaxLegacy)
	}
	var out []Legacy
	err := gatherLegacy(raw, "", 0, &out)
	return out, fault.Wrap(fault.Corrupt, name, err)
}

func gatherLegacy(raw json.RawMessage, file string, depth int, out *[]Legacy) error {
	if depth > legacyDepth {
		return fault.New(fault.Exhausted, "sidecar records", "are nested deeper than %d", legacyDepth)
	}
	text := strings.TrimLeft(string(raw[:min(len(raw), 64)]), " \t\r\n")
	switch {
	case strings.HasPrefix(text, "["):
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil {
			return err
		}
		for _, x := range items {
			if err := gatherLegacy(x, file, depth+1, out); err != nil {
				return err
			}
		}
		return nil
	case !strings.HasPrefix(text, "{"):
		var plain any
		return json.Unmarshal(raw, &plain)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	if fields["index_id"] != nil && fields["algorithm"] != nil && fields["column_name"] != nil {
		x := Legacy{FormatVersion: FormatVersion, SourceDataFile: file} // what states no version is of the later one
		if err := json.Unmarshal(raw, &x); err != nil {
			return err
		}
		*out = append(*out, x)
		return nil
	}
	for _, key := range []string{"data_file", "file_path"} {
		var path string
		if (key == "data_file" || fields["index_files"] != nil) && fields[key] != nil && json.Unmarshal(fields[key], &path) == nil {
			file = path
			break
		}
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if err := gatherLegacy(fields[key], file, depth+1, out); err != nil {
			return err
		}
	}
	return nil
}

// Kind is the kind of index that answers what the record's does, "" and the reason where this build has none.
func (x *Legacy) Kind() (kind, reason string) {
	named := strings.ToLower(x.Algorithm)
	for _, rule := range []struct{ part, kind string }{
		{"bloom", "bloom"},
		{"roaring", "bitmap"},
		{"bitmap", "bitmap"},
		{"inverted", "ordered"},
		{"btree", "ordered"},
		{"sorted", "ordered"},
		{"zone", "zonemap"},
		{"minmax", "zonemap"},
		{"ngram", "ngram"},
		{"trigram", "ngram"},
	} {
		if strings.Contains(named, rule.part) && x.IndexCategory != "vector" && x.IndexCategory != "lexical" {
			return rule.kind, ""
		}
	}
	if x.IndexCategory == "bloom" {
		return "bloom", ""
	}
	return "", "no kind of this build answers what " + x.Algorithm + " does"
}
