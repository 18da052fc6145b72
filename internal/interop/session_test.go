package interop_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/interop"
)

// session is python/maintenance.py at work: Spark and PyIceberg over the tables of a REST catalog.
type session struct {
	in  io.Writer
	out *bufio.Reader
	log *strings.Builder

	spent time.Duration
}

// request is what a session is asked to do; its Python program says which fields go together.
type request struct {
	Namespace string   `json:"namespace,omitempty"`
	SQL       []string `json:"sql,omitempty"`
	Table     string   `json:"table,omitempty"`
	Ask       []string `json:"ask,omitempty"`
	Orphans   string   `json:"orphans,omitempty"`
	Until     int64    `json:"until,omitempty"` // milliseconds since 1970
	Delete    string   `json:"delete,omitempty"`
	Overwrite string   `json:"overwrite,omitempty"`
	Add       int      `json:"add,omitempty"`
}

type reply struct {
	Error   string   `json:"error"`
	Columns []string `json:"columns"`
	Rows    []string `json:"rows"`
	Passing [][]int  `json:"passing"`
}

// startSession starts a session, which ends with the test.
func startSession(t *testing.T, uri, credential string) *session {
	t.Helper()
	runtime := filepath.Join(interop.Folder(t, "jars"), "spark", "iceberg-spark-runtime-4.1_2.13.jar")
	cmd := exec.Command(interop.Python(t), filepath.Join("python", "maintenance.py"), uri, credential, runtime)
	s := &session{log: &strings.Builder{}}
	cmd.Stderr = s.log
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	stuck := time.AfterFunc(15*time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
		stuck.Stop()
	})
	s.in, s.out = in, bufio.NewReader(out)
	return s
}

// do asks the session for one thing and waits until it is done.
func (s *session) do(t *testing.T, r request) reply {
	t.Helper()
	start := time.Now()
	line, err := json.Marshal(r)
	require.NoError(t, err)
	_, err = s.in.Write(append(line, '\n'))
	require.NoError(t, err)
	answer, err := s.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("%s: the session ended: %v\n%s", line, err, s.log)
	}
	s.spent += time.Since(start)
	var out reply
	require.NoError(t, json.Unmarshal(answer, &out))
	require.Empty(t, out.Error, "%s", line)
	return out
}
