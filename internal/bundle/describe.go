package bundle

import (
	"context"
	"encoding/hex"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/store"
)

// Description is what a Puffin file, ours or not, says of itself.
type Description struct {
	Key        string            `json:"key"`
	Size       int64             `json:"size"`
	Ours       bool              `json:"ours"` // a bundle with artifacts
	Properties map[string]string `json:"properties,omitempty"`
	Blobs      []BlobLine        `json:"blobs"`
	Artifacts  []ArtifactLine    `json:"artifacts,omitempty"`
	// Problem tells why the directory cannot be believed; the artifacts are then what the lineage blob alone tells.
	Problem string `json:"problem,omitempty"`
}

// BlobLine is one blob as the footer lists it.
type BlobLine struct {
	Type           string            `json:"type"`
	Fields         []int32           `json:"fields"`
	SnapshotID     int64             `json:"snapshot_id"`
	SequenceNumber int64             `json:"sequence_number"`
	Offset         int64             `json:"offset"`
	Length         int64             `json:"length"`
	Codec          string            `json:"compression_codec,omitempty"`
	Properties     map[string]string `json:"properties,omitempty"`
}

// ArtifactLine is one artifact. Problem tells what about it cannot be believed.
type ArtifactLine struct {
	IndexID     string          `json:"index_id"`
	BlobType    string          `json:"blob_type"`
	BodyOffset  int64           `json:"body_offset"`
	BodyLength  int64           `json:"body_length"`
	RootOffset  int64           `json:"root_offset"`
	RootLength  int64           `json:"root_length"`
	BodySHA256  string          `json:"body_sha256"`
	Lineage     *lineage.Record `json:"lineage,omitempty"`
	Problem     string          `json:"problem,omitempty"`
	LineageSize int64           `json:"lineage_length"`
}

// Describe reads footer, directory and lineage of a Puffin file. bodies says whether bodies are read and verified too.
func Describe(ctx context.Context, st store.Store, key string, bodies bool) (*Description, error) {
	b := &Bundle{Key: key, store: st}
	tail, err := b.openFooter(ctx)
	if err != nil {
		return nil, err
	}
	damage := b.openDirectory(ctx, tail)
	d := &Description{Key: key, Size: b.Size, Ours: b.roots != nil, Properties: b.Footer.Properties}
	for _, x := range b.Footer.Blobs {
		d.Blobs = append(d.Blobs, BlobLine{x.Type, x.Fields, x.SnapshotID, x.SequenceNumber, x.Offset, x.Length, x.Codec, x.Properties})
	}
	if damage != nil {
		d.Problem = damage.Error()
		d.Artifacts = b.survivors(ctx)
		return d, nil //nolint:nilerr // damage is described, not an error
	}
	all := make([]int, len(b.Artifacts))
	for i := range all {
		all[i] = i
	}
	recs, errs := b.Lineages(ctx, all)
	for i := range all {
		d.Artifacts = append(d.Artifacts, b.line(ctx, i, recs[i], errs[i], bodies))
	}
	if ctx.Err() != nil {
		return nil, fault.About(key, context.Cause(ctx))
	}
	return d, nil
}

// survivors is the artifacts that the lineage blob tells of.
func (b *Bundle) survivors(ctx context.Context) (out []ArtifactLine) {
	for _, blob := range b.Footer.Blobs {
		if blob.Type != LineageType || blob.Codec != "" || blob.Length > maxLineage {
			continue
		}
		raw, err := b.read(ctx, blob.Offset, blob.Length)
		if err != nil {
			return nil
		}
		places, _ := frames(b.Key, raw, blob.Offset) // those before the damage
		for _, p := range places {
			rec, err := ParseLineage(b.Key, p, raw[p.Off-blob.Offset:p.End()-blob.Offset])
			if err != nil {
				continue
			}
			out = append(out, ArtifactLine{
				IndexID: rec.IndexID, BlobType: rec.BlobType, BodyOffset: rec.BlobOffset, BodyLength: rec.BlobLength, BodySHA256: rec.IndexChecksum,
				LineageSize: p.Len, Lineage: rec, Problem: "its root is lost",
			})
		}
	}
	return out
}

func (b *Bundle) line(ctx context.Context, i int, rec *lineage.Record, err error, bodies bool) ArtifactLine {
	a := &b.Artifacts[i]
	out := ArtifactLine{
		IndexID: a.IndexID, BlobType: a.BlobType, BodyOffset: a.Body.Off, BodyLength: a.Body.Len, RootOffset: a.Root.Off, RootLength: a.Root.Len,
		BodySHA256: hex.EncodeToString(a.BodySHA256[:]), LineageSize: a.Lineage.Len, Lineage: rec,
	}
	if err == nil && rec.IndexChecksum != out.BodySHA256 {
		err = fault.New(fault.Corrupt, b.Key, "lineage and directory name different checksums of the body")
	}
	if err == nil {
		_, err = b.Root(ctx, i)
	}
	if err == nil && bodies {
		err = b.VerifyBody(ctx, i)
	}
	if err != nil {
		out.Problem = err.Error()
	}
	return out
}
