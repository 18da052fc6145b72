package skomer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
)

const (
	maxLegacyManifests = 1000
	maxSidecar         = 64 << 20 // bytes of a sidecar that are hashed; larger ones are not
)

// LegacySidecar is one loose sidecar as its manifest lists it. Its payload is never read to answer a query.
type LegacySidecar struct {
	Manifest      string `json:"manifest"`
	IndexID       string `json:"index_id"`
	FormatVersion int    `json:"format_version"`
	Column        string `json:"column"`
	Algorithm     string `json:"algorithm"`
	DataFile      string `json:"data_file"` // "": not stated
	Sidecar       string `json:"sidecar"`
	// State is unverified, where nothing could be compared, checksum matches, checksum differs, missing or unreadable.
	State string `json:"state"`
	// Becomes is the index that is declared in its place; where it is empty, Reason tells why there is none.
	Becomes string `json:"becomes"`
	Reason  string `json:"reason,omitempty"`
}

// LegacySidecars lists what the JSON manifests of loose sidecars, of format version 1, at a file or in a folder say. Nothing of them is
// believed: an index that answers the same is declared by MigrateLegacy and built from the table's data.
func (t *Table) LegacySidecars(ctx context.Context, from string) ([]LegacySidecar, error) {
	st, key, err := t.client.Storage(from)
	if err != nil {
		return nil, err
	}
	keys := []string{key}
	if !strings.HasSuffix(key, ".json") {
		if keys, err = manifestsBelow(ctx, st, strings.TrimRight(key, "/")+"/"); err != nil {
			return nil, err
		}
		if len(keys) == 0 {
			return nil, fault.New(fault.NotFound, from, "no JSON manifest of sidecars lies there")
		}
	}
	var out []LegacySidecar
	for _, key := range keys {
		r := st.Fetch(ctx, []store.Read{{Key: key, Spans: []store.Span{store.Suffix(lineage.MaxLegacy + 1)}}})[0]
		if r.Err != nil {
			return nil, fault.About(key, r.Err)
		}
		records, err := lineage.ParseLegacy(key, r.Data[0])
		if err != nil {
			return nil, err
		}
		for i := range records {
			out = append(out, t.legacy(ctx, st, key, &records[i]))
		}
	}
	return out, ctx.Err()
}

func manifestsBelow(ctx context.Context, st store.Store, prefix string) (out []string, err error) {
	for after := ""; ; {
		page, err := st.List(ctx, prefix, after, maxLegacyManifests)
		if err != nil {
			return nil, fault.About(prefix, err)
		}
		for _, in := range page {
			if strings.HasSuffix(in.Key, ".json") {
				out = append(out, in.Key)
			}
		}
		if len(out) > maxLegacyManifests {
			return nil, fault.New(fault.Exhausted, prefix, "more than %d JSON manifests", maxLegacyManifests).WithFix("name one of them")
		}
		if len(page) < maxLegacyManifests {
			return out, nil
		}
		after = page[len(page)-1].Key
	}
}

// legacy describes one record.
func (t *Table) legacy(ctx context.Context, st store.Store, manifest string, x *lineage.Legacy) LegacySidecar {
	out := LegacySidecar{
		Manifest: manifest, IndexID: x.IndexID, FormatVersion: x.FormatVersion, Column: x.ColumnName, Algorithm: x.Algorithm, DataFile: x.SourceDataFile,
		Sidecar: x.FilePath,
	}
	out.State = t.sidecarState(ctx, st, manifest, x)
	kind, reason := x.Kind()
	if kind == "" {
		out.Reason = reason
		return out
	}
	d, err := kinds.ParseExpr(kind+`("`+strings.ReplaceAll(x.ColumnName, `"`, `""`)+`")`, t.metadata().Schema())
	if err != nil {
		out.Reason = err.Error()
		return out
	}
	out.Becomes = d.String()
	return out
}

// sidecarState compares a sidecar with its checksum, where it has one: a missing checksum does not count as a matching one.
func (t *Table) sidecarState(ctx context.Context, st store.Store, manifest string, x *lineage.Legacy) string {
	key := manifest[:strings.LastIndex(manifest, "/")+1] + x.FilePath
	if strings.Contains(x.FilePath, "://") || strings.HasPrefix(x.FilePath, "/") {
		var err error
		if st, key, err = t.client.Storage(x.FilePath); err != nil {
			return "unreadable"
		}
	}
	in := st.Stat(ctx, []string{key})[0]
	switch {
	case fault.Is(in.Err, fault.NotFound):
		return "missing"
	case in.Err != nil:
		return "unreadable"
	case x.IndexChecksum == "" || in.Size > maxSidecar:
		return "unverified"
	}
	r := st.Fetch(ctx, []store.Read{{Key: key}})[0]
	if r.Err != nil {
		return "unreadable"
	}
	if sum := sha256.Sum256(r.Data[0]); !strings.EqualFold(hex.EncodeToString(sum[:]), x.IndexChecksum) {
		return "checksum differs"
	}
	return "checksum matches"
}

// MigrateLegacy declares the indexes that take the place of loose sidecars, and builds them from the table's data. The sidecars are
// not touched.
func (t *Table) MigrateLegacy(ctx context.Context, from string, o SyncOptions) ([]LegacySidecar, *SyncReport, error) {
	all, err := t.LegacySidecars(ctx, from)
	if err != nil {
		return nil, nil, err
	}
	var exprs []string
	for _, x := range all {
		if x.Becomes != "" && !slices.Contains(exprs, x.Becomes) {
			exprs = append(exprs, x.Becomes)
		}
	}
	if len(exprs) == 0 {
		return all, nil, fault.New(fault.NotFound, from, "no sidecar there has an index in this build that answers the same").
			WithFix("skomer overlay legacy %s --from %s", t.name, from)
	}
	for _, e := range exprs {
		if _, err := t.AddIndex(ctx, e); err != nil {
			return all, nil, err
		}
	}
	r, err := t.Sync(ctx, o)
	return all, r, err
}

// UpgradeReport is what an upgrade of an overlay's format did.
type UpgradeReport struct {
	From    int    `json:"from_format"`
	To      int    `json:"to_format"`
	Version uint64 `json:"overlay_version"`
	Changed bool   `json:"changed"`
}

// UpgradeOverlay writes the overlay's newest version, and the lists that it names, in the present format, in one commit. Bundles stay as they
// are: Reindex is for those.
func (t *Table) UpgradeOverlay(ctx context.Context) (*UpgradeReport, error) {
	v, err := t.mounted(ctx)
	if err != nil {
		return nil, err
	}
	out := &UpgradeReport{}
	out.From, out.To = v.Format()
	receipt, err := t.overlay.Commit(ctx, v, overlay.Upgrade())
	if err != nil {
		return nil, err
	}
	t.saw(receipt.Version)
	out.Version, out.Changed = receipt.Version.Number(), receipt.Changed
	return out, nil
}
