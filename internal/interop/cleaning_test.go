package interop_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/mask"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store/local"
)

// clean expires snapshots and removes what nobody names: in the table, in the overlay, and in the folder that has both.
func (l *life) clean() {
	l.cleanTable()
	l.expire()
	l.vacuum()
	l.cleanFolder()
}

// cleaner removes what the table does not name below a folder, and says what that was.
func (l *life) cleaner(folder string, until time.Time) []string {
	l.Helper()
	var out []string
	for _, path := range l.session.do(l.T, request{Table: l.name(), Orphans: folder, Until: until.UnixMilli()}).Rows {
		out = append(out, strings.TrimPrefix(path, "file:"))
	}
	return out
}

// cleanTable lets the cleaner loose where it belongs.
func (l *life) cleanTable() {
	stray := filepath.Join(l.folder, "t", "data", "stray.parquet")
	r := l.step("remove_orphan_files", func() {
		require.NoError(l, os.WriteFile(stray, []byte("x"), 0o600))
		gone := l.cleaner(filepath.Join(l.folder, "t"), time.Now().Add(time.Minute))
		require.Contains(l, gone, stray)
	})
	require.NoFileExists(l, stray)
	require.Zero(l, r.Artifacts)
}

// expire leaves the present snapshot and a tagged one.
func (l *life) expire() {
	old := l.past[0]
	r := l.step("expire_snapshots", func() {
		l.call("expire_snapshots", ", older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1")
		require.Len(l, l.sql("SELECT snapshot_id FROM {t}.snapshots"), 2)
		l.past = nil
	})
	require.Zero(l, r.Artifacts)
	_, err := l.table.Query(context.Background(), skomer.Query{At: old.snapshot, Limit: -1})
	require.True(l, fault.Is(err, fault.NotFound), "%v", err)
}

// vacuum removes the artifacts and masks of files that no retained snapshot has, by Spark's word, and nothing else.
func (l *life) vacuum() {
	named := map[string]bool{}
	for _, path := range l.sql("SELECT file_path FROM {t}.all_data_files") {
		named[strings.Trim(path, `"`)] = true
	}
	before := l.holdings()
	gone := 0
	for key, files := range before.artifacts {
		if !slices.ContainsFunc(files, func(path string) bool { return named[path] }) {
			delete(before.artifacts, key)
			gone++
		}
	}
	require.Positive(l, gone)
	require.NotEmpty(l, before.artifacts)
	report := l.vacuumed()
	require.Equal(l, gone, report.Retired)
	require.Positive(l, l.vacuumed().Deleted["no retained version names it"].Objects) // the version before the first one named them
	last := l.vacuumed().Deleted
	delete(last, "body of an expired version") // that of the vacuum before
	require.Empty(l, last)

	after := l.holdings()
	require.Equal(l, before.artifacts, after.artifacts)
	require.Equal(l, after.needed, after.stored)
	require.Equal(l, l.version == 2, len(after.masks) > 0) // deletion vectors are masks as they are
	for _, path := range after.masks {
		require.True(l, named[path], path)
	}
	require.Zero(l, l.step("vacuum", func() {}).Artifacts)
	require.Zero(l, l.step("back to a tag", func() { l.sql("CALL lake.system.set_current_snapshot(table => '{t}', ref => 'keep')") }).Artifacts)
}

func (l *life) vacuumed() *skomer.VacuumReport {
	l.Helper()
	report, err := l.table.Vacuum(context.Background(), skomer.VacuumOptions{Retain: 1, Grace: -1})
	require.NoError(l, err)
	require.Empty(l, report.Warnings)
	return report
}

// holdings is what an overlay holds.
type holdings struct {
	artifacts      map[overlay.Key][]string // of the newest version, with the data files that they cover
	needed, stored map[string]bool          // objects below data
	masks          []string                 // the data files that masks are about
}

func (l *life) holdings() holdings {
	l.Helper()
	ctx := context.Background()
	h := holdings{artifacts: map[overlay.Key][]string{}, needed: map[string]bool{}, stored: map[string]bool{}}
	o := overlay.Open(local.New(), l.table.Overlay(), overlay.Options{})
	v, err := o.Latest(ctx)
	require.NoError(l, err)
	var infos []overlay.ArtifactInfo
	v.Each(func(a overlay.ArtifactInfo) bool {
		infos = append(infos, a)
		return true
	})
	for i := range infos {
		paths, _, err := v.Paths(ctx, infos[i].At)
		require.NoError(l, err)
		h.artifacts[infos[i].Key()] = paths
		h.needed[infos[i].Bundle] = true
	}
	data := filepath.Join(l.table.Overlay(), "data") + "/"
	for _, d := range v.EveryDerived() {
		if key := o.Prefix() + "/" + d.Key; strings.HasPrefix(key, data) {
			h.needed[key] = true
		}
	}
	for path := range l.overlayBytes() {
		switch filepath.Base(filepath.Dir(path)) {
		case "data":
			h.stored[path] = true
		case "masks":
			b, err := os.ReadFile(path)
			require.NoError(l, err)
			about, ok := mask.Subject(b)
			require.True(l, ok, path)
			h.masks = append(h.masks, about)
		}
	}
	return h
}

// cleanFolder lets the cleaner loose on the folder above the table: once it removes what was written before the last sync, once everything.
// An overlay that lies there and is not spared is damaged, then gone. No answer changes, and it can be made whole again.
func (l *life) cleanFolder() {
	time.Sleep(20 * time.Millisecond)
	half := time.Now()
	time.Sleep(20 * time.Millisecond)
	require.Positive(l, l.step("append again", func() { l.insert(600, 660) }).Artifacts)
	l.table.Close()
	before := l.overlayBytes()
	l.cleaner(l.folder, half)
	if l.spared {
		l.cleaner(l.folder, time.Now().Add(time.Minute))
		require.True(l, maps.Equal(before, l.overlayBytes()))
		l.answers("the folder was cleaned")
		return
	}
	require.Less(l, len(l.overlayBytes()), len(before))
	require.NotEmpty(l, l.overlayBytes())
	l.answers("half of the overlay is gone")
	l.heal()
	l.answers("the overlay is whole again")

	l.cleaner(l.folder, time.Now().Add(time.Minute))
	require.Empty(l, l.overlayBytes())
	l.answers("the overlay is gone")
	l.table = l.open()
	l.index()
	require.Positive(l, l.step("begun anew", func() {}).Artifacts)
}

// heal makes an overlay whole of which objects were deleted: lists of artifacts, bundles, or both.
func (l *life) heal() {
	ctx := context.Background()
	l.table = l.open()
	st, err := l.table.Status(ctx)
	require.NoError(l, err)
	if len(st.Warnings) > 0 {
		_, err = l.table.Recover(ctx)
		require.NoError(l, err)
	}
	_, err = l.table.Scrub(ctx, skomer.ScrubOptions{})
	require.NoError(l, err)
	require.Positive(l, l.step("healed", func() {}).Artifacts)
}
