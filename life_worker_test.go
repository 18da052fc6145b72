package skomer_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/stretchr/testify/require"
)

// lifeWorker is a process.
type lifeWorker struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	results chan lifeResult // closed when the process has ended
	err     error           // how
	doing   *lifeCommand    // nil: idle
	paused  int             // steps until it goes on; 0: it is not paused
	faults  map[string]int64
}

func (l *life) start() *lifeWorker {
	l.t.Helper()
	l.setting.Seed = l.rng.Uint64()
	setting, err := json.Marshal(l.setting)
	require.NoError(l.t, err)
	if l.setting.Memory {
		return l.startHere(string(setting))
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lifeChild+"="+string(setting))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(l.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(l.t, err)
	require.NoError(l.t, cmd.Start())
	w := &lifeWorker{cmd: cmd, in: in, results: make(chan lifeResult, 1)}
	go func() {
		w.listen(out)
		w.err = cmd.Wait() // at once: a process that nobody waits for still counts as alive
		close(w.results)
	}()
	return w
}

// startHere starts a process that is none: it shares this one's memory, and cannot be paused or killed.
func (l *life) startHere(setting string) *lifeWorker {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	w := &lifeWorker{in: inW, results: make(chan lifeResult, 1)}
	go func() { outW.CloseWithError(serveLife(setting, inR, outW)) }()
	go func() {
		w.listen(outR)
		close(w.results)
	}()
	return w
}

func (w *lifeWorker) listen(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r lifeResult
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return
		}
		w.results <- r
	}
}

// end ends the process, in the midst of what it does.
func (w *lifeWorker) end() {
	_ = w.in.Close()
	if w.cmd != nil {
		_ = w.cmd.Process.Kill()
	}
	for range w.results {
	}
}

func (w *lifeWorker) send(c lifeCommand) error {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	w.doing = &c
	_, err = fmt.Fprintf(w.in, "%s\n", line)
	return err
}

// stopped tells whether the process is paused, by the kernel's word.
func (w *lifeWorker) stopped() bool {
	if w.cmd == nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.cmd.Process.Pid))
	if err != nil {
		return false
	}
	rest := stat[strings.LastIndexByte(string(stat), ')')+1:]
	return strings.HasPrefix(strings.TrimSpace(string(rest)), "T")
}
