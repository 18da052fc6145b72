package judge

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/lake"
)

// TestInteropPyIcebergPlansWrittenTables runs where SKOMER_PYTHON names a Python that has PyIceberg.
func TestInteropPyIcebergPlansWrittenTables(t *testing.T) {
	python := os.Getenv("SKOMER_PYTHON")
	if python == "" {
		if os.Getenv("CI") == "true" && os.Getenv("SKOMER_INTEROP") != "" {
			t.Fatal("SKOMER_PYTHON names no Python")
		}
		t.Skip("SKOMER_PYTHON names no Python with pyiceberg: run make interop")
	}
	r := random(t)
	ctx := context.Background()
	args, want := []string{"testdata/plan.py"}, []string{}
	for range 6 {
		w := written(t, r)
		args = append(args, w.MetadataPath())
		table, err := lake.New(lake.Options{}).Open(ctx, w.Location())
		require.NoError(t, err)
		for _, info := range table.Snapshots() {
			s, err := table.Snapshot(ctx, lake.Selector{ID: info.ID})
			require.NoError(t, err)
			for i, path := range s.Files.Path {
				want = append(want, fmt.Sprintf("%s\t%d\t%s\t%d\t%d\t%d", w.MetadataPath(), info.ID, path, s.Files.Records[i], s.Files.Size[i], len(partitions)))
			}
		}
	}
	out, err := exec.Command(python, args...).Output()
	require.NoError(t, err)
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	sort.Strings(got)
	sort.Strings(want)
	require.Equal(t, want, got)
}
