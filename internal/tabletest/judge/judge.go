// Package judge lets another engine answer, for tests only: DuckDB, in a Python process that the test keeps.
package judge

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/skomerdb/skomer/internal/interop"
)

//go:embed duckdb.py
var script string

// DuckDB is a running judge. It is not safe for concurrent use.
type DuckDB struct {
	in  *json.Encoder
	out *bufio.Scanner
}

// Column is a column to read, with its Iceberg kind.
type Column struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// Answer is what the judge says.
type Answer struct {
	Positions map[string][]int `json:"positions"` // by file
	Rows      [][]string       `json:"rows"`
	Error     string           `json:"error"`
}

// Start starts DuckDB in the Python of package interop, without which the test is skipped.
func Start(t testing.TB) *DuckDB {
	t.Helper()
	cmd := exec.Command(interop.Python(t), "-c", script)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	d := &DuckDB{in: json.NewEncoder(in), out: bufio.NewScanner(out)}
	d.out.Buffer(nil, 512<<20)
	return d
}

// Where asks for the positions of the rows of files that pass a filter in DuckDB's SQL.
func (d *DuckDB) Where(t testing.TB, files []string, where string) Answer {
	t.Helper()
	return d.ask(t, map[string]any{"files": files, "where": where})
}

// Values asks for every value of some columns of a file.
func (d *DuckDB) Values(t testing.TB, file string, columns []Column) Answer {
	t.Helper()
	return d.ask(t, map[string]any{"file": file, "columns": columns})
}

func (d *DuckDB) ask(t testing.TB, command any) (a Answer) {
	t.Helper()
	if err := d.in.Encode(command); err != nil {
		t.Fatal(err)
	}
	if !d.out.Scan() {
		t.Fatalf("the judge ended (%v) at %.300s", d.out.Err(), fmt.Sprint(command))
	}
	if err := json.Unmarshal(d.out.Bytes(), &a); err != nil {
		t.Fatalf("%v: the judge said %.200q", err, d.out.Bytes())
	}
	return a
}
