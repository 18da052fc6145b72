// Package inspect answers: what is in this file?
//
// It tells a Puffin file of any writer (our bundles among them), an Iceberg manifest and a manifest list apart by their bytes and
// not by their names. It needs no table.
package inspect

import (
	"context"
	"fmt"
	"path"

	"github.com/skomerdb/skomer/internal/bundle"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/manifest"
	"github.com/skomerdb/skomer/internal/store"
)

// Report describes one file. Only the part of its format is set.
type Report struct {
	File   string `json:"file"`
	Format string `json:"format"` // puffin, manifest, manifest list
	Size   int64  `json:"size"`

	Puffin *bundle.Description `json:"puffin,omitempty"`

	Content   string     `json:"content,omitempty"` // of a manifest: data or deletes
	Files     []File     `json:"files,omitempty"`
	Manifests []Manifest `json:"manifests,omitempty"`
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

// maxAvro is the largest manifest that is read for a look.
const maxAvro = 256 << 20

// Look describes the object under a key. deep also reads the bodies of artifacts and verifies their checksums.
func Look(ctx context.Context, s store.Store, key string, deep bool) (*Report, error) {
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
		r.Format = "puffin"
		r.Puffin, err = bundle.Describe(ctx, s, key, deep)
		return r, err
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
	m, err := manifest.Read(r.File, text, func(int) bool { return false })
	if err != nil {
		return err
	}
	r.Format, r.Content = "manifest", "data"
	if m.Deletes {
		r.Content = "deletes"
	}
	for i := range m.N {
		f := m.File(i)
		r.Files = append(r.Files, File{Path: f.Path, Added: f.Added, Records: f.Records, Size: f.Size})
	}
	return nil
}

// Section is a part of a report as a table: a header and rows.
type Section struct {
	Header []any
	Rows   [][]any
}

// Sections is the report as tables.
func (r *Report) Sections() []Section {
	switch r.Format {
	case "puffin":
		return puffinSections(r.Puffin)
	case "manifest list":
		out := Section{Header: []any{"manifest", "deletes", "bytes", "sequence", "added", "existing"}}
		for _, m := range r.Manifests {
			out.Rows = append(out.Rows, []any{m.Path, m.Deletes, m.Length, m.Sequence, known(m.Added), known(m.Existing)})
		}
		return []Section{out}
	default:
		out := Section{Header: []any{"file", "rows", "bytes"}}
		for _, f := range r.Files {
			out.Rows = append(out.Rows, []any{f.Path, f.Records, f.Size})
		}
		return []Section{out}
	}
}

func puffinSections(d *bundle.Description) []Section {
	blobs := Section{Header: []any{"blob", "fields", "snapshot", "offset", "length", "codec"}}
	for _, b := range d.Blobs {
		blobs.Rows = append(blobs.Rows, []any{b.Type, fmt.Sprint(b.Fields), b.SnapshotID, b.Offset, b.Length, b.Codec})
	}
	artifacts := Section{Header: []any{"artifact", "root", "body", "files", "first file", "problem"}}
	for _, a := range d.Artifacts {
		files, first := 0, ""
		if a.Lineage != nil && len(a.Lineage.Files) > 0 {
			files, first = len(a.Lineage.Files), path.Base(a.Lineage.Files[0].Path)
		}
		artifacts.Rows = append(artifacts.Rows, []any{a.IndexID, a.RootLength, a.BodyLength, files, first, a.Problem})
	}
	return []Section{blobs, artifacts}
}

func known(n int64) any {
	if n == facts.Unknown {
		return "?"
	}
	return n
}
