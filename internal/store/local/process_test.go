package local_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/local"
)

// TestMain lets the test binary be the other process.
func TestMain(m *testing.M) {
	dir, times := os.Getenv("SKOMER_TEST_WRITE_IN"), os.Getenv("SKOMER_TEST_WRITES")
	if dir == "" {
		os.Exit(m.Run())
	}
	n, err := strconv.Atoi(times)
	if err == nil {
		err = writeInTurns(dir, n)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// writeInTurns increments a shared counter n times and creates an object for each number it wrote.
func writeInTurns(dir string, n int) error {
	s, ctx := local.New(local.Under(dir)), context.Background()
	for done := 0; done < n; {
		at := s.Fetch(ctx, []store.Read{{Key: dir + "/counter"}})[0]
		if at.Err != nil {
			return at.Err
		}
		old, err := strconv.Atoi(strings.TrimLeft(string(at.Data[0]), "0"))
		if err != nil {
			return err
		}
		_, err = s.PutIf(ctx, dir+"/counter", at.Tag, counter(old+1))
		if fault.Is(err, fault.Conflict) {
			continue
		}
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s/made/%d/object", dir, old+1)
		if _, err := s.PutNew(ctx, name, strings.NewReader(strings.Repeat("x", 100_000))); err != nil {
			return err
		}
		done++
	}
	return nil
}

// counter is n in a large object of constant size, so that half a write would show.
func counter(n int) []byte { return fmt.Appendf(nil, "%0100000d", n) }

func child(t *testing.T, dir string, writes int) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "SKOMER_TEST_WRITE_IN="+dir, fmt.Sprintf("SKOMER_TEST_WRITES=%d", writes))
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	return cmd
}

func TestProcessesTakeTurns(t *testing.T) {
	dir := t.TempDir()
	s := local.New(local.Under(dir))
	_, err := s.PutNew(t.Context(), dir+"/counter", strings.NewReader(string(counter(1))))
	require.NoError(t, err)
	const processes, writes = 4, 25
	var children []*exec.Cmd
	for range processes {
		children = append(children, child(t, dir, writes))
	}
	for _, c := range children {
		require.NoError(t, c.Wait())
	}
	at := s.Fetch(t.Context(), []store.Read{{Key: dir + "/counter"}})[0]
	require.NoError(t, at.Err)
	require.Equal(t, string(counter(1+processes*writes)), string(at.Data[0]), "an update was lost")
	made, err := s.List(t.Context(), dir+"/made/", "", 1000)
	require.NoError(t, err)
	require.Len(t, made, processes*writes)
	requireNoOwnFiles(t, dir)
}

func TestKilledWritersLeaveNothingHalf(t *testing.T) {
	dir := t.TempDir()
	s := local.New(local.Under(dir))
	_, err := s.PutNew(t.Context(), dir+"/counter", strings.NewReader(string(counter(1))))
	require.NoError(t, err)
	for range 10 {
		before := s.Stat(t.Context(), []string{dir + "/counter"})[0].Tag
		c := child(t, dir, 1_000_000)
		for s.Stat(t.Context(), []string{dir + "/counter"})[0].Tag == before {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(rand.N(20 * time.Millisecond))
		require.NoError(t, c.Process.Kill())
		require.Error(t, c.Wait())
	}
	at := s.Fetch(t.Context(), []store.Read{{Key: dir + "/counter"}})[0]
	require.NoError(t, at.Err)
	require.Len(t, at.Data[0], 100_000, "half a replacement")
	made, err := s.List(t.Context(), dir+"/made/", "", 100_000)
	require.NoError(t, err)
	require.NotEmpty(t, made, "the writers were killed before they wrote anything")
	for _, o := range made {
		require.EqualValues(t, 100_000, o.Size, "half an object: %s", o.Key)
	}
	_, err = s.PutIf(t.Context(), dir+"/counter", at.Tag, counter(7))
	require.NoError(t, err, "a dead process holds no lock")
	keys := []string{dir + "/counter"}
	for _, o := range made {
		keys = append(keys, o.Key)
	}
	require.NoError(t, s.Delete(t.Context(), keys))
	requireNoOwnFiles(t, dir)
}
