package overlay

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/store/local"
)

// TestMain lets the test binary be one of several processes that commit to one overlay.
func TestMain(m *testing.M) {
	dir := os.Getenv("SKOMER_TEST_COMMIT_IN")
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := commitForever(dir, os.Getenv("SKOMER_TEST_NAME")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// commitForever publishes one build after another and says so, until it is killed.
func commitForever(dir, name string) error {
	o := Open(local.New(), dir, Options{})
	for n := 0; ; n++ {
		v, err := o.Latest(context.Background())
		if err != nil {
			return err
		}
		id := fmt.Sprintf("%s-%d", name, n)
		b := Build{ID: id, Bundle: dir + "/data/" + id, SnapshotID: 11, Sequence: 1}
		for i := range 3 {
			b.Artifacts = append(b.Artifacts, artifact(v.Indexes()[0].ID, i, Identity{Path: fmt.Sprintf("%s/%d", id, i), Size: 1, Records: 1, Tag: "t"}))
		}
		r, err := o.Commit(context.Background(), v, Publish(nil, b))
		if err != nil {
			return err
		}
		fmt.Println(id, r.Version.Number())
	}
}

// TestKilledProcessesLoseNothing lets processes commit to one overlay on disk and kills them at random moments. Everything
// that one of them reported is there afterwards, every version is whole, and none carries half a build.
func TestKilledProcessesLoseNothing(t *testing.T) {
	r, _ := seeded(t)
	dir := t.TempDir()
	st := local.New()
	o := Open(st, dir, Options{})
	t.Cleanup(o.Close)
	commit(t, o, nil, Mount(testTable, testUpstream))
	id := commit(t, o, nil, AddIndex(definition("bloom", 3))).Indexes[0]
	var mu sync.Mutex
	reported := map[string]uint64{}
	for round := range 4 {
		var wg sync.WaitGroup
		for p := range 4 {
			life := time.Duration(5+r.IntN(300)) * time.Millisecond
			wg.Go(func() {
				for build, version := range commitAndDie(t, dir, fmt.Sprintf("p%d-%d", round, p), life) {
					mu.Lock()
					reported[build] = version
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	}
	require.Greater(t, len(reported), 10)
	newest := fresh(t, o)
	require.Empty(t, newest.Warnings())
	for build, version := range reported {
		for i := range 3 {
			require.Len(t, newest.Find(fmt.Sprintf("%s/%d", build, i)), 1, "%s, reported as version %d", build, version)
		}
	}
	perBuild := map[string]int{}
	newest.Each(func(a ArtifactInfo) bool {
		require.Equal(t, id, a.IndexID)
		perBuild[a.BuildID]++
		return true
	})
	for build, n := range perBuild {
		require.Equal(t, 3, n, "%s is there in part", build)
	}
	require.Equal(t, newest.Number()-2, uint64(len(perBuild)), "each version adds one build")
}

// commitAndDie runs a committer, kills it after a while and returns what it reported.
func commitAndDie(t *testing.T, dir, name string, life time.Duration) map[string]uint64 {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SKOMER_TEST_COMMIT_IN="+dir, "SKOMER_TEST_NAME="+name)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	guard := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer guard.Stop()
	reported := map[string]uint64{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if len(reported) == 0 { // its life begins with its first commit
			time.AfterFunc(life, func() { _ = cmd.Process.Kill() })
		}
		build, version, ok := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseUint(version, 10, 64)
		if !ok || err != nil {
			continue // cut short by the kill
		}
		reported[build] = n
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("%s ended with %v", name, err)
	}
	return reported
}
