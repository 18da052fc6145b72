package mask

import (
	"context"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/store/local"
)

// forget makes the fixture's masker one of a new process with an archive in dir.
func (f *fixture) forget(dir string) {
	f.masker = &Masker{
		Store: local.New(), Footers: parquetio.NewFooters(1 << 20), Cache: NewCache(1 << 20), Archive: NewArchive(local.New(), dir),
	}
}

// many is a fixture of two data files with position deletes in several files and two equality deletes.
func many(t *testing.T) (*fixture, [][]uint32) {
	s := schema(field(1, "id", column.Long))
	f := newFixture(t, s)
	a, b := f.sorted(1, s, 300), f.sorted(1, s, 300)
	for i := range 3 {
		f.positions(2, f.s.Files.Stated[a], i, f.s.Files.Stated[b], 10+i, nil, 0)
	}
	f.keys(3, s, 250)
	f.keys(4, s, 0, 260)
	return f, [][]uint32{{0, 1, 2, 250, 260}, {0, 10, 11, 12, 250, 260}}
}

func (f *fixture) save() Report {
	f.Helper()
	files := make([]File, f.s.Files.Len())
	for i := range files {
		files[i].Ordinal = i
	}
	_, report, err := f.masker.Masks(context.Background(), f.s, files, Options{Save: true})
	require.NoError(f, err)
	return report
}

// TestArchiveServesANewProcess: what one process saved another reads instead of delete files and key columns, warnings included.
func TestArchiveServesANewProcess(t *testing.T) {
	f, want := many(t)
	dir := filepath.Join(f.dir, "overlay", "masks")
	f.forget(dir)
	_, before, err := f.masks(Options{})
	require.NoError(t, err)
	require.Equal(t, 5, before.DeleteFiles)
	require.Equal(t, 6, f.save().Saved) // two data files: merged positions and two pairs each
	require.Zero(t, f.save().Saved)
	f.forget(dir)
	require.Zero(t, f.save().Saved)
	f.forget(dir)
	_, after, err := f.masks(Options{})
	require.NoError(t, err)
	require.Zero(t, after.DeleteFiles)
	require.Equal(t, before.Warnings, after.Warnings)
	f.gone(want...)
	f.keys(5, f.s.Schema, 299) // a new delete file costs its own evaluation alone
	_, after, err = f.masks(Options{})
	require.NoError(t, err)
	require.Equal(t, 1, after.DeleteFiles)
	f.gone(append(want[0], 299), append(want[1], 299))
}

// TestArchiveIsOnlyACache: damaged, foreign and missing objects are as if they had never been.
func TestArchiveIsOnlyACache(t *testing.T) {
	f, want := many(t)
	dir := filepath.Join(f.dir, "overlay", "masks")
	f.forget(dir)
	require.Equal(t, 6, f.save().Saved)
	objects, err := filepath.Glob(dir + "/*")
	require.NoError(t, err)
	require.Len(t, objects, 6)
	for i, path := range objects {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.Chmod(path, 0o600))
		switch i % 3 {
		case 0:
			b[len(b)/2] ^= 4
			require.NoError(t, os.WriteFile(path, b, 0o600))
		case 1: // the mask of another file under this name
			other, err := os.ReadFile(objects[(i+3)%6])
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, other, 0o600))
		}
	}
	f.forget(dir)
	f.gone(want...)
	for _, path := range objects {
		require.NoError(t, os.Remove(path))
	}
	f.forget(dir)
	f.gone(want...)
	f.forget(dir)
	f.masker.Archive.present(context.Background(), []string{"x"}) // listed; then everything goes
	f.gone(want...)
}

// TestArchiveFollowsTheFile: a mask of one incarnation says nothing of another.
func TestArchiveFollowsTheFile(t *testing.T) {
	s := schema(field(1, "id", column.Long))
	f := newFixture(t, s)
	f.rowsOf(1, s, 1, 2, 3)
	f.keys(2, s, 2)
	dir := filepath.Join(f.dir, "overlay", "masks")
	f.forget(dir)
	require.Equal(t, 1, f.save().Saved)
	require.NoError(t, os.Rename(f.write(s, rows(s, 2, 1, 2)), f.s.Files.Path[0]))
	f.forget(dir)
	f.gone([]uint32{0, 2})
}

// TestArchiveIsUsedWhereItIsCheaper: one delete file over many data files is read instead of a mask for each.
func TestArchiveIsUsedWhereItIsCheaper(t *testing.T) {
	f := newFixture(t, schema(field(1, "id", column.Long)))
	var pairs []any
	want := make([][]uint32, 8)
	for i := range want {
		f.data(1, filepath.Join("/t", string(rune('a'+i))), 10)
		pairs = append(pairs, f.s.Files.Stated[i], i)
		want[i] = []uint32{uint32(i)}
	}
	dir := filepath.Join(f.dir, "overlay", "masks")
	f.forget(dir)
	f.positions(2, pairs...)
	require.Zero(t, f.save().Saved, "one delete file is one read as well")
	f.positions(2, pairs...)
	require.Equal(t, 8, f.save().Saved)
	f.forget(dir)
	u, report := f.cost()
	require.Equal(t, 2, report.DeleteFiles)
	require.LessOrEqual(t, u.Gets, int64(4))
	f.gone(want...)
}

// TestArchivedGolden pins the bytes of an object.
func TestArchivedGolden(t *testing.T) {
	m := &archived{key: "k", rows: 300, warnings: []string{"w"}, bitmap: roaring.BitmapOf(1, 2)}
	b, err := m.bytes()
	require.NoError(t, err)
	require.Equal(t, "534b4d4401016bac020101771"+"43a30000001000000000001001000000001000200", hex.EncodeToString(b[:len(b)-4]))
	got, err := parseArchived("x", b)
	require.NoError(t, err)
	require.Equal(t, m.key, got.key)
	require.Equal(t, m.rows, got.rows)
	require.Equal(t, m.warnings, got.warnings)
	require.Equal(t, []uint32{1, 2}, got.bitmap.ToArray())
	for n := range b {
		_, err := parseArchived("x", b[:n])
		require.Error(t, err)
		damaged := append([]byte(nil), b...)
		damaged[n] ^= 1
		_, err = parseArchived("x", damaged)
		require.True(t, fault.Is(err, fault.Corrupt) || fault.Is(err, fault.Unsupported), "%v", err)
	}
}

func FuzzArchived(f *testing.F) {
	b, err := (&archived{key: "key", rows: 9, warnings: []string{"w"}, bitmap: roaring.BitmapOf(1, 5, 70000)}).bytes()
	require.NoError(f, err)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := parseArchived("fuzz", b); err == nil {
			if _, err := m.bytes(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
