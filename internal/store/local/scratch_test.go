package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
)

// TestFullTemporaryDisk: an error of a full disk that is about a temporary file says what to do; one about another file does not.
func TestFullTemporaryDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	_, err = full.Write([]byte("x"))
	require.Error(t, err)
	about := fault.About("Puffin file", errors.Join(err, errors.New("another")))
	require.Equal(t, about, Spilled(about), "it is no temporary file")
	t.Setenv("TMPDIR", "/dev/")
	spilled := Spilled(about)
	require.Equal(t, fault.Exhausted, fault.ClassOf(spilled))
	require.Contains(t, fault.FixOf(spilled), "TMPDIR")
	require.EqualError(t, spilled, "/dev/: there is no room for temporary files: no space left on device")
	_, err = os.Open("/dev/none")
	require.Equal(t, err, Spilled(err), "that is another error")
	require.NoError(t, Spilled(nil))
	t.Setenv("TMPDIR", "/dev/none")
	_, _, err = Scratch("sync")
	require.Contains(t, fault.FixOf(err), "TMPDIR")
}

// TestScratchOfKilledProcesses: what a process left that was killed is removed by the next one, what is in use is not.
func TestScratchOfKilledProcesses(t *testing.T) {
	if os.Getenv("SKOMER_SCRATCH") != "" {
		dir, _, err := Scratch("killed")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "values"), []byte("jo@example.org"), 0o600))
		fmt.Println("ready")
		select {}
	}
	t.Setenv("TMPDIR", t.TempDir())
	mine, done, err := Scratch("sync")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(mine, "x"), nil, 0o600))
	cmd := exec.Command(os.Args[0], "-test.run=^TestScratchOfKilledProcesses$")
	cmd.Env = append(os.Environ(), "SKOMER_SCRATCH=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = out.Read(make([]byte, 5))
	require.NoError(t, err)
	require.Zero(t, Abandoned(), "both are in use")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	other, end, err := Scratch("sync")
	require.NoError(t, err)
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{mine, other}, left)
	require.FileExists(t, filepath.Join(mine, "x"))
	end()
	done()
	left, err = filepath.Glob(filepath.Join(os.TempDir(), "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
