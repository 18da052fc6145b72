package cli

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/bundle"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// The planted values stand nowhere else. The first stays in a live data file behind a position delete, the second is in a file that is
// rewritten without it.
const (
	hiddenName, hiddenID = "hidden-Qz7!kW-planted", 0x5a17_c0de_4b1d_0001
	movedName, movedID   = "moved-Xv3?pL-planted", 0x5a17_c0de_4b1d_0002
)

var planted = []struct {
	name string
	id   int64
}{{hiddenName, hiddenID}, {movedName, movedID}}

// plantedTable is a table of several files and what is needed to change it.
type plantedTable struct {
	t      *testing.T
	dir    string
	schema *column.Schema
	writer *lakewrite.Table
	files  []string
}

func plant(t *testing.T) *plantedTable {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "people")
	p := &plantedTable{t: t, dir: dir, schema: &column.Schema{Fields: []column.Field{
		{ID: 1, Name: "id", Type: column.Of(column.Long)},
		{ID: 2, Name: "name", Type: column.Of(column.String)},
		{ID: 3, Name: "tag", Type: column.Of(column.String)},
	}}}
	var err error
	p.writer, err = lakewrite.Create(t.Context(), local.New(), dir, lakewrite.Spec{Schema: p.schema, FormatVersion: 2})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o755))
	var add []lakewrite.File
	for i := range 6 {
		add = append(add, p.file(i, i == 2, i == 4))
	}
	_, err = p.writer.Append(t.Context(), add...)
	require.NoError(t, err)
	return p
}

func (p *plantedTable) row(id int64, name string) tabletest.Row {
	return tabletest.Row{{Val: column.IntValue(column.Long, id)}, {Val: column.StringValue(name)}, {Val: column.StringValue("tag-" + name[:5])}}
}

// file writes a data file, with planted values or without.
func (p *plantedTable) file(i int, hidden, moved bool) lakewrite.File {
	p.t.Helper()
	var rows []tabletest.Row
	for k := range 300 {
		rows = append(rows, p.row(int64(i*1000+k), fmt.Sprintf("name-%d-%d", i, k)))
	}
	if hidden {
		rows[100] = p.row(hiddenID, hiddenName)
	}
	if moved {
		rows[200] = p.row(movedID, movedName)
	}
	path := filepath.Join(p.dir, "data", fmt.Sprintf("%d-%d.parquet", i, len(p.files)))
	p.files = append(p.files, path)
	return p.write(path, p.schema, rows)
}

func (p *plantedTable) write(path string, schema *column.Schema, rows []tabletest.Row) lakewrite.File {
	p.t.Helper()
	require.NoError(p.t, tabletest.WriteParquet(path, schema, rows, tabletest.Layout{RowsPerGroup: 100, PageBytes: 1024, PageVersion: 1, PageIndex: true}))
	info, err := os.Stat(path)
	require.NoError(p.t, err)
	return lakewrite.File{Path: path, Format: facts.Parquet, Records: int64(len(rows)), Size: info.Size()}
}

// delete hides the first planted row and rewrites the file of the second without it.
func (p *plantedTable) delete() {
	p.t.Helper()
	positions := &column.Schema{Fields: []column.Field{
		{ID: 2147483546, Name: "file_path", Type: column.Of(column.String), Required: true},
		{ID: 2147483545, Name: "pos", Type: column.Of(column.Long), Required: true},
	}}
	f := p.write(filepath.Join(p.dir, "data", "delete.parquet"), positions, []tabletest.Row{
		{{Val: column.StringValue(p.files[2])}, {Val: column.IntValue(column.Long, 100)}},
	})
	f.Content = lakewrite.PositionDeletes
	_, err := p.writer.Append(p.t.Context(), f)
	require.NoError(p.t, err)
	_, err = p.writer.Commit(p.t.Context(), lakewrite.Change{Remove: []string{p.files[4]}, Add: []lakewrite.File{p.file(4, false, false)}, Operation: "overwrite"})
	require.NoError(p.t, err)
}

// found counts the planted values in everything below a folder: as they are, in either byte order, and inside of compressed frames.
func (p *plantedTable) found(root string, except ...string) map[string]int {
	p.t.Helper()
	var forms [][]byte
	for _, x := range planted {
		forms = append(forms, []byte(x.name), []byte(x.name)[:12], binary.BigEndian.AppendUint64(nil, uint64(x.id)), binary.LittleEndian.AppendUint64(nil, uint64(x.id)),
			[]byte(fmt.Sprint(x.id)), binary.BigEndian.AppendUint64(nil, uint64(x.id)^1<<63))
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(64<<20))
	require.NoError(p.t, err)
	defer decoder.Close()
	out := map[string]int{}
	require.NoError(p.t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		texts := [][]byte{raw, []byte(path)}
		for at := 0; ; at += 4 {
			next := bytes.Index(raw[at:], []byte{0x28, 0xb5, 0x2f, 0xfd})
			if next < 0 {
				break
			}
			at += next
			if plain, _ := decoder.DecodeAll(raw[at:], nil); len(plain) > 0 { // what follows the frame is an error
				texts = append(texts, plain)
			}
		}
		for _, text := range texts {
			for _, form := range forms {
				out[path] += bytes.Count(text, form)
			}
		}
		if out[path] == 0 {
			delete(out, path)
		}
		return nil
	}))
	for _, e := range except {
		for path := range out {
			if strings.Contains(path, e) {
				delete(out, path)
			}
		}
	}
	return out
}

func (p *plantedTable) shell() *shell {
	p.t.Setenv("HOME", filepath.Dir(p.dir))
	p.t.Setenv("XDG_DATA_HOME", filepath.Join(filepath.Dir(p.dir), "share"))
	p.t.Setenv("XDG_CACHE_HOME", filepath.Join(filepath.Dir(p.dir), "cache"))
	p.t.Chdir(filepath.Dir(p.dir))
	return &shell{t: p.t, flights: p.dir}
}

var everyKind = []string{
	"bloom(name)", "bloom(id)", "valueset(name)", "bitmap(tag)", "ordered(name)", "ordered(id)", "ordered(tag, id)", "ngram(name)", "zonemap(name)", "zonemap(id)",
	"sketch(name)", "sketch(id)",
}

// asked is filters and the answers to them.
func asked(s *shell, snapshots ...int64) map[string]string {
	out := map[string]string{}
	for _, where := range []string{
		"name = '" + hiddenName + "'", "name = '" + movedName + "'", fmt.Sprint("id = ", int64(hiddenID)), fmt.Sprint("id > ", 5100), "name LIKE '%planted%'",
		"tag = 'tag-hidde'", "name = 'name-2-7'", "id BETWEEN 2090 AND 2110", "name IN ('name-4-1', 'name-5-1')",
	} {
		for _, at := range snapshots {
			args := []string{"query", "TABLE", "-w", where, "-o", "json", "--overlay", "over"}
			if at != 0 {
				args = append(args, "--at", fmt.Sprint(at))
			}
			out[fmt.Sprint(where, " at ", at)] = s.run(args...)
		}
	}
	return out
}

func eraseReport(t *testing.T, raw string) *skomer.EraseReport {
	t.Helper()
	r := &skomer.EraseReport{}
	require.NoError(t, json.Unmarshal([]byte(raw), r))
	return r
}

func TestEraseLeavesNothingOfTheValues(t *testing.T) {
	p := plant(t)
	s := p.shell()
	s.run("mount", "TABLE", "--overlay", "over")
	where := filepath.Join(filepath.Dir(p.dir), "over")
	s.flights = p.dir
	run := func(args ...string) string { return s.run(append(args, "--overlay", "over")...) }
	run(append([]string{"index", "add", "TABLE"}, everyKind...)...)
	run("sync", "TABLE")
	first := p.writer.Snapshots[0].ID
	require.NotEmpty(t, p.found(where), "the values are in the overlay")
	refused := s.try("erase", "TABLE", "--overlay", "over", "--where", "name LIKE '%planted%'")
	require.Equal(t, exitRefused, refused.code, refused.err)
	require.Contains(t, refused.err, p.files[2], "the error names a file")
	require.Contains(t, refused.err, "delete them in the table first")

	p.delete()
	run("sync", "TABLE")
	require.NotEmpty(t, p.found(where), "what deletes hide is in the overlay all the same")
	before := asked(s, 0, first)
	dry := eraseReport(t, run("erase", "TABLE", "--where", "name LIKE '%planted%'", "--dry-run", "-o", "json"))
	require.True(t, dry.DryRun)
	require.NotEmpty(t, dry.Objects)
	require.NotEmpty(t, p.found(where), "a dry run deletes nothing")

	report := filepath.Join(filepath.Dir(p.dir), "erased.json")
	run("erase", "TABLE", "--where", "name LIKE '%planted%'", "--report", report)
	raw, err := os.ReadFile(report)
	require.NoError(t, err)
	r := eraseReport(t, string(raw))
	require.True(t, r.Complete)
	require.True(t, r.DeadlineMet)
	require.Empty(t, r.Left)
	require.ElementsMatch(t, []string{p.files[2], p.files[4]}, r.Files)
	require.Equal(t, []skomer.TableHolds{{SnapshotID: first, Rows: 2}, {SnapshotID: first + 1, Rows: 1}}, sortHolds(r.TableHas), "the table has it still, through older snapshots")
	kinds := map[string]int{}
	for _, x := range r.Objects {
		kinds[x.Kind]++
		if x.Action == "deleted" && x.Kind != "version" {
			require.NoFileExists(t, x.Key)
		}
	}
	for _, kind := range []string{"artifacts", "file map", "sketch", "list", "version"} {
		require.NotZero(t, kinds[kind], "%s: %v", kind, kinds)
	}
	require.Empty(t, p.found(where), "erased")
	p.describesNone(where)
	require.Equal(t, before, asked(s, 0, first), "answers stay the same")

	text := run("sync", "TABLE")
	require.Empty(t, p.found(where), "what is built anew has not the values either")
	p.describesNone(where)
	require.Contains(t, text+s.try("sync", "TABLE", "--overlay", "over").err, "erased", "a sync tells why it leaves the file alone")
	require.Equal(t, before, asked(s, 0, first))
	for _, filter := range []string{"name = '" + hiddenName + "'", "name = '" + movedName + "'", fmt.Sprint("id = ", int64(movedID))} {
		q := s.try("query", "TABLE", "--overlay", "over", "-c", "-w", filter, "--stats")
		require.Equal(t, "0", strings.TrimSpace(q.out))
		require.Contains(t, q.err, `"files_left":1`, "of what is indexed nothing claims a value that was erased")
	}
	again := eraseReport(t, run("erase", "TABLE", "--where", "name LIKE '%planted%'", "-o", "json"))
	require.True(t, again.Complete)
	require.Zero(t, again.Retired, "nothing is left to withdraw")
	require.Empty(t, s.report("vacuum", "TABLE", "--overlay", "over", "--grace", "0s", "--retain", "1").Deleted["no retained version names it"])
	require.Equal(t, exitNotFound, s.try("overlay", "rollback", "TABLE", "--to", "3", "--overlay", "over").code, "no way back")
}

// describesNone requires that no bundle says that it was built from a file with planted values.
func (p *plantedTable) describesNone(root string) {
	p.t.Helper()
	bundles, err := filepath.Glob(filepath.Join(root, "data", "*.puffin"))
	require.NoError(p.t, err)
	for _, path := range bundles {
		d, err := bundle.Describe(p.t.Context(), local.New(), path, true)
		require.NoError(p.t, err)
		for _, a := range d.Artifacts {
			for _, f := range a.Lineage.Files {
				require.NotContains(p.t, []string{p.files[2], p.files[4]}, f.Path)
			}
		}
	}
}

func sortHolds(all []skomer.TableHolds) []skomer.TableHolds {
	for i := range all {
		for k := range i {
			if all[k].SnapshotID > all[i].SnapshotID {
				all[k], all[i] = all[i], all[k]
			}
		}
	}
	return all
}

func TestEraseOfFilesThatNoSnapshotHas(t *testing.T) {
	p := plant(t)
	s := p.shell()
	s.run("mount", "TABLE", "--overlay", "over")
	where := filepath.Join(filepath.Dir(p.dir), "over")
	s.run(append([]string{"index", "add", "TABLE", "--overlay", "over"}, everyKind...)...)
	s.run("sync", "TABLE", "--overlay", "over")
	_, err := p.writer.Replace(t.Context(), []string{p.files[2], p.files[4]}, p.file(2, false, false), p.file(4, false, false))
	require.NoError(t, err)
	s.run("sync", "TABLE", "--overlay", "over")
	r := eraseReport(t, s.run("erase", "TABLE", "--snapshot-gone", "--overlay", "over", "-o", "json"))
	require.True(t, r.Complete)
	require.NotEmpty(t, p.found(where), "a snapshot has the files")
	require.NoError(t, p.writer.Expire(t.Context(), p.writer.Snapshots[0].ID))
	before := asked(s, 0)
	r = eraseReport(t, s.run("erase", "TABLE", "--snapshot-gone", "--overlay", "over", "-o", "json"))
	require.True(t, r.Complete)
	require.Empty(t, p.found(where))
	p.describesNone(where)
	s.run("sync", "TABLE", "--overlay", "over")
	require.Empty(t, p.found(where))
	require.Equal(t, before, asked(s, 0))
	require.Equal(t, exitOK, s.try("status", "TABLE", "--overlay", "over", "--fail-on", "coverage<100,rejected>0").code)
}

func TestEraseSaysWhatItNeeds(t *testing.T) {
	s, _, _ := indexed(t)
	require.Equal(t, exitUsage, s.try("erase", "TABLE").code)
	require.Equal(t, exitUsage, s.try("erase", "TABLE", "--snapshot-gone", "--where", "delay > 1").code)
	require.Equal(t, exitUsage, s.try("erase", "TABLE", "--where", "nothing = 1").code)
	require.Equal(t, exitNotFound, s.try("erase", "TABLE", "--snapshot-gone", "--overlay", "nowhere").code)
}

func TestEraseWaitsForBuildsThatMayHaveReadTheValues(t *testing.T) {
	p := plant(t)
	s := p.shell()
	s.run("mount", "TABLE", "--overlay", "over")
	s.run("index", "add", "TABLE", "bloom(name)", "--overlay", "over")
	s.run("sync", "TABLE", "--overlay", "over")
	p.delete()
	where := filepath.Join(filepath.Dir(p.dir), "over")
	o := overlay.Open(local.New(), where, overlay.Options{})
	_, err := o.Declare(t.Context(), overlay.InFlight{BuildID: "asleep", Host: "elsewhere", PID: 1, Process: "p", StartedMs: 1})
	require.NoError(t, err)
	r := s.try("erase", "TABLE", "--where", "name LIKE '%planted%'", "--overlay", "over", "--deadline", "1s", "-o", "json")
	require.Equal(t, exitUnhealthy, r.code, r.err)
	report := eraseReport(t, r.out)
	require.False(t, report.Complete)
	require.Equal(t, "asleep", report.Left[0].Build)
	require.Contains(t, report.Left[0].What, "elsewhere")
	require.Empty(t, p.found(where), "what can be erased is")

	late := filepath.Join(where, "data", "asleep.puffin")
	require.NoError(t, os.MkdirAll(filepath.Dir(late), 0o755))
	require.NoError(t, os.WriteFile(late, []byte(hiddenName), 0o600))
	require.NotEmpty(t, p.found(where), "it woke up")
	require.NoError(t, o.Withdraw(t.Context(), "asleep"))
	report = eraseReport(t, s.run("erase", "TABLE", "--where", "name LIKE '%planted%'", "--overlay", "over", "-o", "json"))
	require.True(t, report.Complete)
	require.NoFileExists(t, late)
	require.Empty(t, p.found(where))
}

func TestErasuresAndSyncsAtOnce(t *testing.T) {
	p := plant(t)
	s := p.shell()
	s.run("mount", "TABLE", "--overlay", "over")
	s.run(append([]string{"index", "add", "TABLE", "--overlay", "over"}, everyKind...)...)
	p.delete()
	where := filepath.Join(filepath.Dir(p.dir), "over")
	before := asked(s, 0)
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			args := []string{"sync", p.dir, "--overlay", "over", "-q"}
			if i%2 == 1 {
				args = []string{"erase", p.dir, "--where", "name LIKE '%planted%'", "--overlay", "over", "-q"}
			}
			var out, errs bytes.Buffer
			if code := Run(t.Context(), args, &out, &errs); code != exitOK {
				t.Errorf("%v: exit code %d: %s", args, code, errs.String())
			}
		})
	}
	wait.Wait()
	r := eraseReport(t, s.run("erase", "TABLE", "--where", "name LIKE '%planted%'", "--overlay", "over", "-o", "json"))
	require.True(t, r.Complete)
	require.Empty(t, p.found(where))
	p.describesNone(where)
	require.Equal(t, before, asked(s, 0))
	s.run("sync", "TABLE", "--overlay", "over")
	require.Empty(t, p.found(where))
	require.Equal(t, before, asked(s, 0))
}

func TestEraseTakesItsDeadlineFromTheConfiguration(t *testing.T) {
	p := plant(t)
	s := p.shell()
	s.run("mount", "TABLE", "--overlay", "over")
	deadline := func(args ...string) time.Duration {
		r := eraseReport(t, s.run(append([]string{"erase", "TABLE", "--snapshot-gone", "--overlay", "over", "-o", "json"}, args...)...))
		return r.Deadline.Sub(r.Started).Round(time.Minute)
	}
	require.Equal(t, 72*time.Hour, deadline())
	config := filepath.Join(filepath.Dir(p.dir), "skomer.yaml")
	require.NoError(t, os.WriteFile(config, []byte("erase: {deadline: 7d}\n"), 0o600))
	require.Equal(t, 7*24*time.Hour, deadline())
	require.Equal(t, 2*time.Hour, deadline("--deadline", "2h"))
	require.NoError(t, os.WriteFile(config, []byte("erase: {deadline: soon}\n"), 0o600))
	wrong := s.try("erase", "TABLE", "--snapshot-gone", "--overlay", "over")
	require.Equal(t, exitUsage, wrong.code)
	require.Contains(t, wrong.err, "soon")
}
