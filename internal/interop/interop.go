// Package interop answers, for tests only: where are the other engines, and what did they write and read?
//
// The script behind make interop sets them up, pinned: Python with DuckDB, PyIceberg and Spark, and Java with Iceberg's own
// library. Its programs (in python and java) write tables into a folder each, and beside them, as cases.jsonl, what the engine
// itself reads in every snapshot, for the whole table and for filters. The tests read the same through the public API.
//
// A test that needs another engine is called TestInterop…, and finds it here, so that it is skipped only where the script does
// not run.
package interop

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	pythonVariable = "SKOMER_PYTHON"  // a Python with the packages of scripts/interop-requirements.txt
	folderVariable = "SKOMER_INTEROP" // the folder in which scripts/interop keeps what the engines wrote
)

// Python is the Python that has the other engines.
func Python(t testing.TB) string { return variable(t, pythonVariable) }

// Folder is the folder name of all that scripts/interop keeps: tables of an engine, or the Java libraries.
func Folder(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(variable(t, folderVariable), name)
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("make interop left no folder %s: %v", name, err)
	}
	return dir
}

// Java is the arguments that let java run a program of this package's folder java, which needs no compiling.
func Java(t testing.TB, program string) []string {
	t.Helper()
	jars := filepath.Join(Folder(t, "jars"), "*")
	return []string{"-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", jars, filepath.Join("java", program+".java")}
}

// Lines runs a command in the test's folder and returns the lines that it prints.
func Lines(t testing.TB, command string, args ...string) []string {
	t.Helper()
	cmd := exec.Command(command, args...)
	var trouble strings.Builder
	cmd.Stderr = &trouble
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, trouble.String())
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func variable(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	switch {
	case value != "":
	case os.Getenv(folderVariable) != "" || os.Getenv(pythonVariable) != "":
		t.Fatalf("%s is not set", name)
	default:
		t.Skipf("%s is not set: run make interop", name)
	}
	return value
}

// Case is what an engine reads in a table.
type Case struct {
	Table   string   `json:"table"`   // folder, or name in a catalog
	At      string   `json:"at"`      // snapshot, branch or tag; empty: the current snapshot
	Columns []string `json:"columns"` // of the answer
	Where   string   `json:"where"`   // in our SQL; empty: every row
	Deletes bool     `json:"deletes"` // the snapshot has delete files
	// Rows is the answer, sorted, a row being its values joined by |:
	//
	//	null, true, false, integers in decimal; dates in days, times in microseconds
	//	f and the 16 hexadecimal digits of a double (floats widened), or nan
	//	<unscaled>e-<scale> for decimals; text as a JSON string; x and hexadecimal digits for bytes
	//	[element,…] for lists, {key:value,…} sorted for maps, (field,…) for structs
	Rows []string `json:"rows"`
}

// Cases reads the cases of an engine's folder.
func Cases(t testing.TB, dir string) []Case {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "cases.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []Case
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var c Case
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", f.Name(), err)
		}
		out = append(out, c)
	}
	if err := lines.Err(); err != nil || len(out) == 0 {
		t.Fatalf("%s has %d cases: %v", f.Name(), len(out), err)
	}
	return out
}
