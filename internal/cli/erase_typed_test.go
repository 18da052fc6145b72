package cli

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// TestEraseTellsOfValuesInDeclarations: what somebody typed into a declaration is no part of what was built from data files. An erasure
// leaves it, says so in its report, and says the way out, after which no object holds it.
func TestEraseTellsOfValuesInDeclarations(t *testing.T) {
	const value = "jo.doe-Qz7kW"
	dir := filepath.Join(t.TempDir(), "people")
	w, err := lakewrite.Create(t.Context(), local.New(), dir, lakewrite.Spec{Schema: tabletest.DocumentSchema()})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o755))
	yes := "yes"
	file := func(name string, key string) lakewrite.File {
		path := filepath.Join(dir, "data", name)
		payload := `{"` + key + `":1}`
		rows := []tabletest.Document{{ID: 1, Message: &key, Payload: &payload, Attrs: map[string]*string{key: &yes}}, {ID: 2, Attrs: map[string]*string{"other": &yes}}}
		require.NoError(t, tabletest.WriteDocuments(path, rows, 100))
		info, err := os.Stat(path)
		require.NoError(t, err)
		return lakewrite.File{Path: path, Format: facts.Parquet, Records: 2, Size: info.Size()}
	}
	old := file("old.parquet", value)
	_, err = w.Append(t.Context(), old)
	require.NoError(t, err)
	p := &plantedTable{t: t, dir: dir}
	s := p.shell()
	s.run("mount", "TABLE", "--overlay", "over")
	run := func(args ...string) string { return s.run(append(args, "--overlay", "over")...) }
	typed := []string{"bitmap(attrs['" + value + "'])", "valueset(payload -> '$." + value[:2] + "')"}
	run(append([]string{"index", "add", "TABLE", "bloom(message)", "bloom(tokens(message))"}, typed...)...)
	run("sync", "TABLE")
	_, err = w.Commit(t.Context(), lakewrite.Change{Remove: []string{old.Path}, Add: []lakewrite.File{file("new.parquet", "x")}, Operation: "overwrite"})
	require.NoError(t, err)
	holds := func() (out []string) {
		require.NoError(t, filepath.WalkDir(filepath.Join(filepath.Dir(dir), "over"), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			raw, err := os.ReadFile(path)
			if bytes.Contains(raw, []byte(value)) {
				out = append(out, path)
			}
			return err
		}))
		return out
	}
	erase := []string{"erase", "TABLE", "--where", "message = '" + value + "'"}
	r := eraseReport(t, run(append(erase, "-o", "json")...))
	require.True(t, r.Complete)
	require.Equal(t, typed, r.Declarations, "those of plain columns and of words hold nothing that was typed")
	require.NotEmpty(t, holds(), "or there is nothing to tell")
	told := s.try(append(erase, "--overlay", "over")...)
	require.Equal(t, exitOK, told.code, told.err)
	for _, d := range typed {
		require.Contains(t, told.err, "stays: the declaration "+d)
		run("index", "drop", "TABLE", d)
	}
	r = eraseReport(t, run(append(erase, "-o", "json")...))
	require.True(t, r.Complete)
	require.Empty(t, r.Declarations)
	require.Empty(t, holds(), "dropped, and erased again")
	run("sync", "TABLE")
	require.Empty(t, holds())
}
