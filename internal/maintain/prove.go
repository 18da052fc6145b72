package maintain

import (
	"context"
	"fmt"

	"github.com/skomerdb/skomer/internal/build"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
)

// Prover compares data files with what artifacts recorded of them, by content: what strict reads of local files ask for, whose tags
// whoever may write them can restore. It reads the footer of a file and the column chunks that the builds read, once a file and set of
// columns, some of a file at a time.
type Prover struct {
	Store store.Store // the overlay's
	Build *build.Builder
}

// Prove tells of each placement whether its artifact was made of the content that the file has now; file runs parallel to placements
// and holds ordinals of s. The error is that of a store that cannot be read for now.
func (p *Prover) Prove(ctx context.Context, s *facts.Snapshot, v *overlay.Version, file []int, placements []overlay.Placement) ([]lineage.Verdict, error) {
	r := &run{Syncer: &Syncer{Store: p.Store, Build: p.Build}, snapshot: s}
	infos := make([]overlay.ArtifactInfo, len(placements))
	for k, at := range placements {
		infos[k], _ = v.Artifact(at.At)
	}
	records, errs := r.records(ctx, infos)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out, hashed := make([]lineage.Verdict, len(placements)), map[string]hashedFile{}
	for k := range placements {
		if errs[k] != nil {
			out[k] = lineage.Verdict{Reason: lineage.HashUnknown, Message: errs[k].Error()}
			continue
		}
		var err error
		if out[k], err = r.prove(ctx, file[k], &infos[k], placements[k], records[k], hashed); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (r *run) prove(ctx context.Context, i int, info *overlay.ArtifactInfo, p overlay.Placement, rec *lineage.Record, hashed map[string]hashedFile) (lineage.Verdict, error) {
	columns, ok := r.columns(rec.ReadFieldIDs)
	if !ok {
		return lineage.Verdict{Reason: lineage.HashUnknown, Message: unhashed(info, rec)}, nil
	}
	key := fmt.Sprint(i, rec.ReadFieldIDs)
	h, known := hashed[key]
	if !known {
		h.file, h.err = r.Build.Rehash(ctx, r.snapshot, r.file(i), columns)
		hashed[key] = h
	}
	switch {
	case h.err != nil && (fault.Retryable(h.err) || ctx.Err() != nil):
		return lineage.Verdict{}, h.err
	case h.err != nil:
		return lineage.Verdict{Reason: lineage.ContentMismatch, Message: h.err.Error()}, nil //nolint:nilerr // what cannot be read is not what was indexed
	}
	recorded := lineage.File{Path: p.Identity.Path, Size: p.Identity.Size, Records: p.Identity.Records, Tag: string(p.Identity.Tag)}
	for _, in := range rec.Files {
		if in.Path == p.Identity.Path {
			recorded.FooterSHA256, recorded.ColumnsSHA256, recorded.FileSHA256 = in.FooterSHA256, in.ColumnsSHA256, in.FileSHA256
		}
	}
	o := r.lineage()
	o.Strict, o.RequireHash = true, true
	return lineage.Check(info.Claim(), recorded, lineage.Current{File: h.file, FooterRecords: lineage.Unknown}, o), nil
}

// unhashed says why nothing can be hashed that an artifact was made of, and what makes it so.
func unhashed(info *overlay.ArtifactInfo, rec *lineage.Record) string {
	why := "the table's metadata does not keep a column any more that was read together with its own"
	if len(rec.ReadFieldIDs) == 0 {
		why = "no hash of its columns was recorded when it was carried over by row ids"
	}
	return fmt.Sprintf("Index %s rejected: %s; `skomer reindex TABLE %s --all` builds it anew", info.Bundle, why, info.IndexID)
}
