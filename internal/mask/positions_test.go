package mask

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
)

// TestO32SeveralDataFiles: one delete file names several data files, in no order, and only rows that name a file count for it.
func TestO32SeveralDataFiles(t *testing.T) {
	f := newFixture(t, schema(field(1, "id", column.Long)))
	a, b := "/t/df1", "/t/df2"
	f.data(1, a, 10)
	f.data(1, b, 10)
	var even []any
	for i := range 5 {
		even = append(even, a, 2*i, b, 2*i)
	}
	f.positions(2, even...)
	f.positions(2, b, 5, a, 3, a, 9)
	f.gone([]uint32{0, 2, 3, 4, 6, 8, 9}, []uint32{0, 2, 4, 5, 6, 8})
}

// TestRowsOfOtherFilesDoNotCount: not even in a delete file that claims to be about one data file.
func TestRowsOfOtherFilesDoNotCount(t *testing.T) {
	f := newFixture(t, schema(field(1, "id", column.Long)))
	f.data(1, "/t/a", 10)
	i := f.positions(2, "/t/a", 1, "/t/b", 2, "s3://x/t/a", 3, nil, 4, "/t/A", 5)
	f.gone([]uint32{1, 3})
	f.s.Deletes.Referenced[i] = "/t/a"
	f.renew()
	f.gone([]uint32{1, 3})
	_, report, err := f.masks(Options{})
	require.NoError(t, err)
	require.Equal(t, []string{f.s.Deletes.Path[0] + ": 1 rows without a file path are ignored"}, report.Warnings)
}

// TestDanglingPositions: positions past the end are ignored, as are files that are not there.
func TestDanglingPositions(t *testing.T) {
	f := newFixture(t, schema(field(1, "id", column.Long)))
	f.data(1, "/t/a", 3)
	f.positions(2, "/t/a", 2, "/t/a", 3, "/t/a", 1<<32+1, "/t/a", 1<<40, "/t/gone", 0)
	i := f.deletes(facts.PositionDeletes, 2, "/t/not-even-opened")
	f.s.Deletes.Referenced[i] = "/t/gone"
	f.gone([]uint32{2})
}

func TestBadPositions(t *testing.T) {
	ids := schema(field(1, "id", column.Long))
	for say, write := range map[string]func(f *fixture) string{
		"deletes position -1":          func(f *fixture) string { return f.write(positionFile, rows(positionFile, "/t/a", -1)) },
		"and no position":              func(f *fixture) string { return f.write(positionFile, rows(positionFile, "/t/a", nil)) },
		"without the column file_path": func(f *fixture) string { return f.write(ids, rows(ids, 1)) },
		"": func(f *fixture) string {
			p := f.write(positionFile, rows(positionFile, "/t/a", 1))
			f.damage(p)
			return p
		},
	} {
		f := newFixture(t, ids)
		f.data(1, "/t/a", 10)
		path := write(f)
		f.deletes(facts.PositionDeletes, 2, path)
		_, _, err := f.masks(Options{})
		require.True(t, fault.Is(err, fault.Corrupt), "%s: %v", say, err)
		require.Contains(t, err.Error(), path)
		require.Contains(t, err.Error(), say)
	}
}

// TestDeleteFilesComeTogether: footers in one wave and pages in one more, each file once however many data files it is about.
func TestDeleteFilesComeTogether(t *testing.T) {
	f := newFixture(t, schema(field(1, "id", column.Long)))
	f.layout.PageBytes = 1 << 10
	const files = 30
	for i := range files {
		f.data(1, fmt.Sprintf("/t/%d", i), 100000)
	}
	for d := range 10 {
		var pairs []any
		for i := range files {
			for p := range 100 {
				pairs = append(pairs, fmt.Sprintf("/t/%d", i), p*1000+d*(i+1))
			}
		}
		f.positions(2, pairs...)
	}
	u, report := f.cost()
	require.Equal(t, 10, report.DeleteFiles)
	require.LessOrEqual(t, u.Waves, int64(2))
	require.LessOrEqual(t, u.Gets, int64(20))
	u, report = f.cost()
	require.Zero(t, u.Requests())
	require.Zero(t, report.DeleteFiles)
	f.positions(3, "/t/3", 77) // only the new file is read, though the set of delete files of every data file is another
	_, report = f.cost()
	require.Equal(t, 1, report.DeleteFiles)
	masks, _, err := f.masks(Options{})
	require.NoError(t, err)
	require.True(t, masks[3].Set(100000).Contains(77))
	require.EqualValues(t, 1001, masks[3].Set(100000).Count())
}

// TestCacheIsBounded: the least recently used goes, and what is larger than everything is not kept.
func TestCacheIsBounded(t *testing.T) {
	c := NewCache(1000)
	for i := range 10 {
		c.put(i, i, 100)
		_, _ = get[int](c, 0)
		require.LessOrEqual(t, c.Used(), int64(1000))
	}
	_, first := get[int](c, 0)
	_, second := get[int](c, 1)
	_, last := get[int](c, 9)
	require.Equal(t, []bool{true, false, true}, []bool{first, second, last})
	c.put("large", 1, 2000)
	_, ok := get[int](c, "large")
	require.False(t, ok)
	_, ok = get[string](c, 9) // of another type
	require.False(t, ok)
}
