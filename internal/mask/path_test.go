package mask

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
)

func pathsOf(mapping func(string) string, stated ...string) *paths {
	f := &facts.Files{}
	for _, s := range stated {
		mapped := s
		if mapping != nil {
			mapped = mapping(s)
		}
		f.Stated, f.Path = append(f.Stated, s), append(f.Path, mapped)
	}
	return newPaths(f, mapping)
}

// TestO33Locations: scheme families meet, and a location without authority meets the same path with one.
func TestO33Locations(t *testing.T) {
	for _, c := range []struct {
		one, two string
		meet     bool
	}{
		{"s3a://b/t/f.parquet", "s3://b/t/f.parquet", true},
		{"s3n://b/t/f.parquet", "s3a://b/t/f.parquet", true},
		{"S3://b/t/f", "s3://b/t/f", true},
		{"s3://b/t/f", "s3://c/t/f", false},
		{"s3://b/t/f", "gs://b/t/f", false},
		{"s3://b/t/f", "s3://b/t/g", false},
		{"s3://b/t/f", "s3://b//t/f", false},
		{"s3://b/t/a%20b", "s3://b/t/a b", false},
		{"hdfs://localhost:20500/w/f", "/w/f", true},
		{"hdfs://localhost:20500/w/f", "hdfs:/w/f", true},
		{"hdfs://localhost:20500/w/f", "hdfs:///w/f", true},
		{"hdfs://localhost:20500/w/f", "hdfs://other:20500/w/f", false},
		{"/w/f", "/w/g", false},
		{"file:/w/f", "/w/f", true},
		{"file:///w/f", "/w/f", true},
		{"file://localhost/w/f", "file:/w/f", true},
		{"abfss://c@a.dfs.core.windows.net/t/f", "abfs://c@a.dfs.core.windows.net/t/f", true},
		{"gs://b/f", "gcs://b/f", true},
		{"data/t/f", "data/t/f", true},
		{"data/t/f", "/data/t/f", false},
		{"w:f", "/w/f", false},
	} {
		for _, turn := range [][2]string{{c.one, c.two}, {c.two, c.one}} {
			_, ok, err := pathsOf(nil, turn[0]).find(turn[1])
			require.NoError(t, err)
			require.Equal(t, c.meet, ok, "%v", turn)
		}
	}
}

// TestLocationsMeetThroughTheMapping: both sides go through one location mapping.
func TestLocationsMeetThroughTheMapping(t *testing.T) {
	mapping := func(s string) string {
		for _, from := range []string{"s3://old/t", "s3://new/t"} {
			if rest, ok := strings.CutPrefix(s, from); ok {
				return "/here" + rest
			}
		}
		return s
	}
	p := pathsOf(mapping, "s3://old/t/a", "s3://new/t/b", "/here/c")
	for stated, want := range map[string]int32{
		"s3://old/t/a": 0, "s3://new/t/a": 0, "/here/a": 0, "s3a://old/t/a": 0, "s3://old/t/b": 1, "s3://new/t/c": 2, "file:/here/c": 2,
	} {
		got, ok, err := p.find(stated)
		require.NoError(t, err)
		require.True(t, ok, stated)
		require.Equal(t, want, got, stated)
	}
	_, ok, err := p.find("s3://third/t/a")
	require.NoError(t, err)
	require.False(t, ok)
}

// TestEqualLocationsWin: a location that is a data file's is that file, whatever else it might meet; else several are an error.
func TestEqualLocationsWin(t *testing.T) {
	p := pathsOf(nil, "s3://b/t/f", "s3://c/t/f", "s3a://c/t/f", "s3://b/t/f")
	for i, stated := range []string{"s3://b/t/f", "s3://c/t/f", "s3a://c/t/f"} {
		got, ok, err := p.find(stated)
		require.NoError(t, err)
		require.True(t, ok)
		require.EqualValues(t, i, got)
	}
	for _, unsure := range []string{"/t/f", "s3n://c/t/f"} {
		_, _, err := p.find(unsure)
		require.True(t, fault.Is(err, fault.Corrupt), "%v", err)
		require.Contains(t, err.Error(), "s3://c/t/f")
	}
}
