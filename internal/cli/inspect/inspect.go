// Package inspect answers: what is in this file?
//
// It opens a Puffin file of any writer (our bundles among them), an Iceberg manifest or a manifest list, by its first bytes and
// not by its name, and describes it. It needs no table.
package inspect

import (
	"context"
	"encoding/json"
	"path"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/manifest"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/puffin"
	"github.com/skomerdb/skomer/internal/store"
)

// Report describes one file. Only the part of its format is set.
type Report struct {
	File   string `json:"file"`
	Format string `json:"format"` // puffin, manifest, manifest list
	Size   int64  `json:"size"`

	Blobs      []Blob            `json:"blobs,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`

	Content   string     `json:"content,omitempty"` // of a manifest: data or deletes
	Files     []File     `json:"files,omitempty"`
	Manifests []Manifest `json:"manifests,omitempty"`
}

// Blob is one blob of a Puffin file.
type Blob struct {
	Type       string            `json:"type"`
	Fields     []int32           `json:"fields"`
	SnapshotID int64             `json:"snapshot_id"`
	Sequence   int64             `json:"sequence_number"`
	Offset     int64             `json:"offset"`
	Length     int64             `json:"length"`
	Codec      string            `json:"compression,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
	Lineage    *lineage.Record   `json:"lineage,omitempty"` // of a lineage blob
}

// File is one live entry of a manifest. Counts that are not stated are -1.
type File struct {
	Path    string `json:"path"`
	Added   bool   `json:"added"`
	Records int64  `json:"records"`
	Size    int64  `json:"size"`
}

// Manifest is one entry of a manifest list.
type Manifest struct {
	Path     string `json:"path"`
	Deletes  bool   `json:"deletes"`
	Length   int64  `json:"length"`
	Sequence int64  `json:"sequence_number"`
	Added    int64  `json:"added_files"`
	Existing int64  `json:"existing_files"`
}

// Limits on what is read for a look.
const (
	maxAvro    = 256 << 20
	maxLineage = 64 << 20
	tailBytes  = 64 << 10
)

// lineageType is the blob type of lineage records.
const lineageType = "skomer.lineage.v1"

// Look describes the object under a key.
func Look(ctx context.Context, s store.Store, key string) (*Report, error) {
	info := s.Stat(ctx, []string{key})[0]
	if info.Err != nil {
		return nil, fault.About(key, info.Err)
	}
	if info.Size < 4 {
		return nil, fault.New(fault.Unsupported, key, "%d bytes are too few for any format", info.Size)
	}
	head, err := read(ctx, s, key, store.Span{Len: 4})
	if err != nil {
		return nil, err
	}
	r := &Report{File: key, Size: info.Size}
	switch {
	case string(head) == "PFA1":
		return r, r.puffin(ctx, s)
	case string(head) == "Obj\x01":
		return r, r.avro(ctx, s)
	case string(head) == "PAR1":
		return nil, fault.New(fault.Unsupported, key, "this is a Parquet file").WithFix("skomer describe TABLE")
	case head[0] == '{':
		return nil, fault.New(fault.Unsupported, key, "this is JSON").WithFix("skomer describe %s, if it is a metadata.json", path.Base(key))
	default:
		return nil, fault.New(fault.Unsupported, key, "starts like no Puffin or Avro file: % x", head)
	}
}

func read(ctx context.Context, s store.Store, key string, span store.Span) ([]byte, error) {
	result := s.Fetch(ctx, []store.Read{{Key: key, Spans: []store.Span{span}}})[0]
	if result.Err != nil {
		return nil, fault.About(key, result.Err)
	}
	return result.Data[0], nil
}

func (r *Report) puffin(ctx context.Context, s store.Store) error {
	r.Format = "puffin"
	var footer *puffin.Footer
	for need := int64(tailBytes); footer == nil; {
		tail, err := read(ctx, s, r.File, store.Suffix(need))
		if err != nil {
			return err
		}
		if footer, need, err = puffin.ParseFooter(r.File, tail, r.Size); err != nil {
			return err
		}
	}
	r.Properties = footer.Properties
	for _, b := range footer.Blobs {
		blob := Blob{
			Type: b.Type, Fields: b.Fields, SnapshotID: b.SnapshotID, Sequence: b.SequenceNumber,
			Offset: b.Offset, Length: b.Length, Codec: b.Codec, Properties: b.Properties,
		}
		if b.Type == lineageType {
			stored, err := read(ctx, s, r.File, store.Span{Off: b.Offset, Len: b.Length})
			if err != nil {
				return err
			}
			text, err := puffin.Decode(r.File, b, stored, maxLineage)
			if err != nil {
				return err
			}
			if blob.Lineage, err = lineage.Parse(text); err != nil {
				return fault.About(r.File, err)
			}
		}
		r.Blobs = append(r.Blobs, blob)
	}
	return nil
}

// avro tells a manifest list from a manifest by trying: each has fields that the other lacks.
func (r *Report) avro(ctx context.Context, s store.Store) error {
	if r.Size > maxAvro {
		return fault.New(fault.Exhausted, r.File, "%d bytes, the limit is %d", r.Size, maxAvro)
	}
	text, err := read(ctx, s, r.File, store.Span{Len: r.Size})
	if err != nil {
		return err
	}
	if list, err := manifest.ReadList(r.File, text); err == nil {
		r.Format = "manifest list"
		for _, e := range list {
			r.Manifests = append(r.Manifests, Manifest{
				Path: e.Path, Deletes: e.Deletes, Length: e.Length, Sequence: e.Sequence, Added: e.Added, Existing: e.Existing,
			})
		}
		return nil
	}
	m, err := manifest.Read(r.File, text)
	if err != nil {
		return err
	}
	r.Format, r.Content = "manifest", "data"
	if m.Deletes {
		r.Content = "deletes"
	}
	for _, f := range m.Files {
		r.Files = append(r.Files, File{Path: f.Path, Added: f.Added, Records: f.Records, Size: f.Size})
	}
	return nil
}

// Rows is what a table of the report's parts shows: a header, and a row for each part.
func (r *Report) Rows() (header []string, rows [][]any) {
	switch r.Format {
	case "puffin":
		header = []string{"type", "fields", "snapshot", "offset", "length", "codec"}
		for _, b := range r.Blobs {
			fields, err := json.Marshal(b.Fields)
			if err != nil { // integers always marshal
				continue
			}
			rows = append(rows, []any{b.Type, string(fields), b.SnapshotID, b.Offset, b.Length, b.Codec})
		}
	case "manifest list":
		header = []string{"manifest", "deletes", "bytes", "sequence", "added", "existing"}
		for _, m := range r.Manifests {
			rows = append(rows, []any{m.Path, m.Deletes, m.Length, m.Sequence, known(m.Added), known(m.Existing)})
		}
	default:
		header = []string{"file", "records", "bytes"}
		for _, f := range r.Files {
			rows = append(rows, []any{f.Path, f.Records, f.Size})
		}
	}
	return header, rows
}

func known(n int64) any {
	if n == facts.Unknown {
		return "?"
	}
	return n
}
