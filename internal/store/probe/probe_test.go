package probe_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/azure"
	"github.com/skomerdb/skomer/internal/store/azure/azuretest"
	"github.com/skomerdb/skomer/internal/store/faulty"
	"github.com/skomerdb/skomer/internal/store/gcs"
	"github.com/skomerdb/skomer/internal/store/gcs/gcstest"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/store/mem"
	"github.com/skomerdb/skomer/internal/store/probe"
	"github.com/skomerdb/skomer/internal/store/s3"
	"github.com/skomerdb/skomer/internal/store/s3/s3test"
)

// well checks a store at which nothing is wrong.
func well(t *testing.T, s store.Store, root string) {
	t.Helper()
	_, err := s.PutNew(t.Context(), root+"table/metadata.json", strings.NewReader("{}, more or less"))
	require.NoError(t, err)
	for _, f := range append(probe.Reads(t.Context(), s, root+"table/metadata.json"), probe.Lists(t.Context(), s, root+"table/")) {
		require.NoError(t, f.Err, f.Name)
		require.NotEmpty(t, f.Note)
	}
	w := probe.Writes(t.Context(), s, root+"overlay/doctor/")
	require.Len(t, w.Findings, 6)
	for _, f := range w.Findings {
		require.NoError(t, f.Err, f.Name)
		require.NotEmpty(t, f.Note)
	}
	require.True(t, w.Known)
	require.Less(t, w.Skew.Abs(), time.Minute)
	left, err := s.List(t.Context(), root+"overlay/", "", 10)
	require.NoError(t, err)
	require.Empty(t, left, "a check leaves nothing")
}

func TestStoresThatAreWell(t *testing.T) {
	t.Run("mem", func(t *testing.T) { well(t, mem.New(), "root/") })
	t.Run("local", func(t *testing.T) { well(t, local.New(), t.TempDir()+"/") })
	t.Run("s3", func(t *testing.T) { well(t, s3.New(s3test.Start(t, nil, "bucket").Options), "s3://bucket/") })
	t.Run("gcs", func(t *testing.T) { well(t, gcs.New(gcstest.Start(t, nil, "bucket").Options), "gs://bucket/") })
}

func TestInteropAzureIsWell(t *testing.T) {
	well(t, azure.New(azuretest.Start(t, nil, "checks").Options), "abfss://checks@account.dfs.core.windows.net/")
}

// careless ignores all conditions, as some servers do.
type careless struct{ *mem.Store }

func (c careless) PutNew(ctx context.Context, key string, r io.ReadSeeker) (store.Tag, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return "", err
	}
	return c.PutIf(ctx, key, "", b)
}

func (c careless) PutIf(ctx context.Context, key string, _ store.Tag, b []byte) (store.Tag, error) {
	c.Overwrite(key, b)
	return c.Stat(ctx, []string{key})[0].Tag, nil
}

func (c careless) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	for i := range reads {
		reads[i].Tag = ""
	}
	return c.Store.Fetch(ctx, reads)
}

func TestConditionsThatAreIgnored(t *testing.T) {
	inner := mem.New()
	inner.Overwrite("o", []byte("12345"))
	s := careless{inner}
	w := probe.Writes(t.Context(), s, "doctor/")
	require.Len(t, w.Findings, 1, "nothing else makes sense then")
	require.Equal(t, fault.Unsupported, fault.ClassOf(w.Findings[0].Err))
	require.Contains(t, fault.FixOf(w.Findings[0].Err), "conditional writes")
	reads := probe.Reads(t.Context(), s, "o")
	require.Equal(t, "If-Match", reads[2].Name)
	require.Equal(t, fault.Unsupported, fault.ClassOf(reads[2].Err))
	left, err := inner.List(t.Context(), "doctor/", "", 10)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestWhatIsDenied: the finding is that of the act, and nothing is left.
func TestWhatIsDenied(t *testing.T) {
	for name, c := range map[string]struct {
		op       faulty.Op
		findings int // how many there are
		at       int // which of them has failed
	}{
		"create":  {faulty.PutNew, 1, 0},
		"replace": {faulty.PutIf, 6, 2},
		"read":    {faulty.Fetch, 6, 3},
		"list":    {faulty.List, 6, 4},
		"delete":  {faulty.Delete, 6, 5},
	} {
		t.Run(name, func(t *testing.T) {
			s := faulty.New(mem.New(), 1, faulty.Rule{Op: c.op, Rate: 1, Err: faulty.Class(fault.Denied)})
			w := probe.Writes(t.Context(), s, "doctor/")
			require.Len(t, w.Findings, c.findings)
			for i, f := range w.Findings {
				if i == c.at {
					require.Equal(t, fault.Denied, fault.ClassOf(f.Err), f.Name)
				} else {
					require.NoError(t, f.Err, f.Name)
				}
			}
		})
	}
	s := faulty.New(mem.New(), 1, faulty.Rule{Op: faulty.Stat, Rate: 1, Err: faulty.Class(fault.Denied)})
	require.Equal(t, fault.Denied, fault.ClassOf(probe.Reads(t.Context(), s, "o")[0].Err))
	require.Equal(t, fault.NotFound, fault.ClassOf(probe.Reads(t.Context(), mem.New(), "o")[0].Err))
	require.NoError(t, probe.Lists(t.Context(), mem.New(), "nothing/").Err)
}
