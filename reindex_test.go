package skomer_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/bundle"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/local"
)

// age puts the artifacts of a kind into a bundle that says that the format before the present one made them.
func (s *smallTable) age(t *testing.T, kind string) (artifacts int) {
	t.Helper()
	ctx, st := context.Background(), local.New()
	where, err := filepath.Glob(filepath.Join(s.overlays(), "*"))
	require.NoError(t, err)
	o := overlay.Open(st, where[0], overlay.Options{})
	defer o.Close()
	v, err := o.Latest(ctx)
	require.NoError(t, err)
	id := uuid.NewString()
	var out bytes.Buffer
	var pending []overlay.Artifact
	var of overlay.ArtifactInfo
	var w *bundle.Writer
	v.Each(func(a overlay.ArtifactInfo) bool {
		if v.Indexes()[a.Index].Kind != kind {
			return true
		}
		if of = a; w == nil {
			w = bundle.NewWriter(&out, bundle.BuildInfo{BuildID: id, TableUUID: a.TableUUID, SnapshotID: a.SnapshotID, Sequence: a.Sequence})
		}
		res := st.Fetch(ctx, []store.Read{{Key: a.Bundle, Spans: []store.Span{
			{Off: a.Body.Off, Len: a.Body.Len}, {Off: a.Root.Off, Len: a.Root.Len}, {Off: a.Lineage.Off, Len: a.Lineage.Len},
		}}})[0]
		require.NoError(t, res.Err)
		rec, err := bundle.ParseLineage(a.Bundle, a.Lineage, res.Data[2])
		require.NoError(t, err)
		require.Equal(t, kind+".v1", rec.Algorithm)
		rec.Algorithm = kind + ".v0"
		sink, err := w.Begin(*rec)
		require.NoError(t, err)
		_, err = sink.Write(res.Data[0])
		require.NoError(t, err)
		require.NoError(t, w.End(res.Data[1]))
		paths, _, err := v.Paths(ctx, a.At)
		require.NoError(t, err)
		x := overlay.Artifact{IndexID: a.IndexID, FormatVersion: a.FormatVersion, Columns: a.Columns, Replaces: []overlay.Key{a.Key()}}
		for i, f := range v.Segment(a.At) {
			x.Files = append(x.Files, overlay.Identity{Path: paths[i], Size: f.Size, Records: int64(f.Records), Tag: f.Tag})
		}
		pending = append(pending, x)
		return true
	})
	placed, err := w.Close()
	require.NoError(t, err)
	for i, p := range placed {
		x := &pending[i]
		x.Body, x.Root, x.Lineage, x.BodySHA256, x.RootInline = p.Body, p.Root, p.Lineage, p.BodySHA256, p.RootBytes
	}
	b := overlay.Build{ID: id, Bundle: o.DataKey(id + ".puffin"), SnapshotID: of.SnapshotID, Sequence: of.Sequence, Artifacts: pending}
	_, err = st.PutNew(ctx, b.Bundle, bytes.NewReader(out.Bytes()))
	require.NoError(t, err)
	receipt, err := o.Commit(ctx, v, overlay.Publish(nil, b))
	require.NoError(t, err)
	require.Empty(t, receipt.Discarded)
	return len(pending)
}

// TestReindexReplacesOlderFormats: artifacts that the format before the present one made answer, and neither repair nor scrub nor sync minds
// them, until a reindex puts others in their place: of these, and of no others.
func TestReindexReplacesOlderFormats(t *testing.T) {
	ctx := context.Background()
	s := newSmall(t)
	table := s.mount(t, "bloom(v)", "ordered(v)")
	for i := range int64(3) {
		s.add(t, 10*i, 10*i+1, 10*i+2)
		synced(t, table, skomer.SyncOptions{})
	}
	for _, kind := range []string{"bloom", "ordered"} {
		old := s.age(t, kind)
		require.Equal(t, 3, old)
		ask := func() {
			t.Helper()
			for v := range int64(30) {
				n, stats := count(t, s.open(t), skomer.Query{Where: fmt.Sprintf("v = %d", v)})
				want := 0
				if v%10 < 3 {
					want = 1
				}
				require.Equal(t, want, n)
				require.Empty(t, stats.Rejected)
				require.NotEmpty(t, stats.IndexesUsed)
			}
		}
		ask()
		require.Empty(t, repaired(t, s.open(t), true).Findings)
		require.Empty(t, scrubbed(t, s.open(t)).Findings)
		require.Zero(t, synced(t, s.open(t), skomer.SyncOptions{}).Artifacts, "nothing is missing")
		before := s.bundles(t)
		r, err := s.open(t).Reindex(ctx, "", false, skomer.SyncOptions{})
		require.NoError(t, err)
		require.Equal(t, 3, r.FilesIndexed)
		require.NotEmpty(t, s.bundles(t, before...))
		status, err := s.open(t).Status(ctx)
		require.NoError(t, err)
		for _, x := range status.Indexes {
			require.Equal(t, x.Total, x.Covered, x.Expr)
		}
		ask()
		r, err = s.open(t).Reindex(ctx, "", false, skomer.SyncOptions{})
		require.NoError(t, err)
		require.Zero(t, r.Artifacts, "everything is of the newest format")
	}
}

// TestStatusCountsOlderFormats: what a reindex would renew is counted, by records that are read only where there may be any, and until all of it
// is renewed.
func TestStatusCountsOlderFormats(t *testing.T) {
	ctx := context.Background()
	s := newSmall(t)
	s.mount(t, "ordered(v)")
	where, err := filepath.Glob(filepath.Join(s.overlays(), "*"))
	require.NoError(t, err)
	o := overlay.Open(local.New(), where[0], overlay.Options{})
	defer o.Close()
	v, err := o.Latest(ctx)
	require.NoError(t, err)
	_, err = o.Commit(ctx, v, overlay.AddIndex(overlay.Definition{Kind: "bloom", FieldIDs: v.Indexes()[0].FieldIDs, Names: []string{"v"}}))
	require.NoError(t, err)
	for i := range int64(3) {
		s.add(t, 10*i, 10*i+1, 10*i+2)
		synced(t, s.open(t), skomer.SyncOptions{})
	}
	outdated := func() (n int) {
		t.Helper()
		st, err := s.open(t).Status(ctx)
		require.NoError(t, err)
		for _, x := range st.Indexes {
			n += x.Outdated
		}
		return n
	}
	require.Zero(t, outdated(), "an older Skomer declared it, and this one built it")
	require.Equal(t, 3, s.age(t, "bloom"))
	require.Equal(t, 3, outdated())
	x, err := s.open(t).AddIndex(ctx, "bloom(v)")
	require.NoError(t, err)
	all, err := s.open(t).Indexes(ctx)
	require.NoError(t, err)
	require.Len(t, all, 2, "declared again it is %s", x.ID)
	_, err = s.open(t).Reindex(ctx, "", false, skomer.SyncOptions{})
	require.NoError(t, err)
	require.Zero(t, outdated())
	v, err = o.Latest(ctx)
	require.NoError(t, err)
	for _, d := range v.Indexes() {
		require.Equal(t, 1, d.KindVersion, "%s: records need not be read again", d.Kind)
	}
}
