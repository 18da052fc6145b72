package interop_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/verify"
	"github.com/skomerdb/skomer/internal/fault"
)

// shape is a table that Spark maintains while an overlay follows it.
type shape struct {
	namespace string
	version   int
	by        string // partitioning
	// overlay is where the overlay lies below the namespace's folder, beside the table; empty: under the overlay root, elsewhere.
	overlay string
	// spared: a cleaner that is let loose on the namespace's folder does not see it.
	spared bool
}

var shapes = []shape{
	{namespace: "plain2", version: 2, spared: true},
	{namespace: "split2", version: 2, by: "bucket(2, id)", overlay: "t-index"},
	{namespace: "plain3", version: 3, overlay: "overlays"},
	{namespace: "split3", version: 3, by: "months(day)", overlay: "_skomer", spared: true},
}

var maintained = []string{"bloom(id)", "ordered(n)", "zonemap(amount)", "zonemap(day)", "valueset(kind)", "bitmap(kind)", "ngram(msg)", "bloom(msg)"}

// predicates are in SQL that both read alike, or pairs of Skomer's and Spark's.
var predicates = [][2]string{
	{"id = 17"},
	{"id IN (3, 40, 41, 77, 430, 1000)"},
	{"n BETWEEN 100 AND 140"},
	{"n = -5000"},
	{"n > 6900"},
	{"NOT (n < 600)"},
	{"kind = 'kind-1'"},
	{"kind IS NULL"},
	{"kind <> 'kind-2' AND id > 350"},
	{"msg LIKE '%user 17 saw%'"},
	{"msg ILIKE '%USER 9 S%'"},
	{"msg = 'merged'"},
	{"day = DATE '2024-02-10'"},
	{"day < DATE '2024-01-05' OR id = 40"},
	{"amount IS NAN", "isnan(amount)"},
	{"amount < 5", "amount < 5 AND NOT isnan(amount)"},
	{"amount IS NULL"},
	{"id > 100000"},
}

// life is a table under maintenance.
type life struct {
	*testing.T
	shape
	session *session
	config  skomer.Config
	folder  string // of the namespace
	table   *skomer.Table
	says    spark  // in the current snapshot
	past    []said // after each step
	opened  int    // files, with indexes
	files   int
	used    map[string]bool
}

// said is what Spark said in a snapshot.
type said struct {
	step, snapshot string
	answers        spark
}

// spark is Spark's answers, sorted, one to a predicate, and last every row.
type spark [][]string

func (l *life) name() string { return l.namespace + ".t" }

func (l *life) sql(statements ...string) []string {
	l.Helper()
	for i, s := range statements {
		statements[i] = strings.ReplaceAll(s, "{t}", l.name())
	}
	return l.session.do(l.T, request{SQL: statements}).Rows
}

// call calls a procedure of Iceberg's for Spark.
func (l *life) call(procedure, arguments string) []string {
	l.Helper()
	return l.sql(fmt.Sprintf("CALL lake.system.%s(table => '{t}'%s)", procedure, arguments))
}

func (l *life) open() *skomer.Table {
	l.Helper()
	client, err := skomer.New(l.config)
	require.NoError(l, err)
	o := skomer.TableOptions{}
	if l.overlay != "" {
		o.Overlay = filepath.Join(l.folder, l.overlay)
	}
	table, err := client.Open(context.Background(), "local."+l.name(), o)
	require.NoError(l, err)
	l.Cleanup(table.Close)
	return table
}

func (l *life) create() {
	l.session.do(l.T, request{Namespace: l.namespace})
	properties := map[string]string{
		"format-version": fmt.Sprint(l.version), "write.distribution-mode": "none", "write.spark.fanout.enabled": "true",
		"write.parquet.page-row-limit": "20",
	}
	for _, c := range []string{"delete", "update", "merge"} {
		properties["write."+c+".mode"], properties["write."+c+".distribution-mode"] = "merge-on-read", "none"
	}
	var listed []string
	for k, v := range properties {
		listed = append(listed, fmt.Sprintf("'%s'='%s'", k, v))
	}
	by := ""
	if l.by != "" {
		by = "PARTITIONED BY (" + l.by + ")"
	}
	l.sql(fmt.Sprintf("CREATE TABLE {t} (id BIGINT, kind STRING, n INT, msg STRING, amount DOUBLE, day DATE) USING iceberg %s TBLPROPERTIES (%s)",
		by, strings.Join(listed, ",")))
}

// insert appends rows in two files or more.
func (l *life) insert(from, to int) {
	l.Helper()
	l.sql(fmt.Sprintf(`INSERT INTO {t} SELECT id, CASE WHEN id %% 29 = 3 THEN NULL ELSE concat('kind-', id %% 3) END,
		CAST(pmod(hash(id), 1000) AS INT), concat('user ', id %% 37, ' saw page ', hex(hash(id))),
		CASE WHEN id %% 41 = 4 THEN CAST('NaN' AS DOUBLE) WHEN id %% 43 = 5 THEN NULL ELSE id / 4 END, date_add(DATE '2024-01-01', CAST(id %% 75 AS INT))
		FROM range(%d, %d, 1, 2)`, from, to))
}

func (l *life) index() {
	l.Helper()
	ctx := context.Background()
	require.NoError(l, l.table.Mount(ctx))
	for _, expr := range maintained {
		_, err := l.table.AddIndex(ctx, expr)
		require.NoError(l, err)
	}
}

// ask asks Spark for every answer.
func (l *life) ask() {
	l.Helper()
	var theirs []string
	for _, p := range predicates {
		if p[1] == "" {
			p[1] = p[0]
		}
		theirs = append(theirs, p[1])
	}
	r := l.session.do(l.T, request{Table: l.name(), Ask: theirs})
	require.NotEmpty(l, r.Rows)
	l.says = nil
	for _, passing := range r.Passing {
		var rows []string
		for _, k := range passing {
			rows = append(rows, r.Rows[k])
		}
		slices.Sort(rows)
		l.says = append(l.says, rows)
	}
	slices.Sort(r.Rows)
	l.says = append(l.says, r.Rows)
}

// same demands Spark's answers of a table, at a snapshot or ref, in a way.
func (l *life) same(table *skomer.Table, q skomer.Query, want spark, when string) {
	l.Helper()
	q.Limit = -1
	for i, rows := range want {
		if q.Where = ""; i < len(predicates) {
			q.Where = predicates[i][0]
		}
		got, stats, err := answer(table, q)
		require.NoError(l, err, "%s: %s", when, q.Where)
		if d := difference(got, rows); d != "" {
			l.Errorf("%s, at %q, without indexes %t, whole %t, WHERE %s: %s", when, q.At, q.NoIndex, q.NoPrune, q.Where, d)
		}
		if q.NoIndex || q.NoPrune || q.Where == "" {
			continue
		}
		l.files, l.opened = l.files+stats.FilesTotal, l.opened+stats.FilesOpened
		for _, x := range stats.IndexesUsed {
			l.used[x] = true
		}
	}
	if l.Failed() {
		l.FailNow()
	}
}

// answers demands Spark's answers in every way, of the table that was open all the time and of one that is opened now.
func (l *life) answers(when string) {
	l.Helper()
	ctx := context.Background()
	_, err := l.table.Status(ctx) // which sees the newest snapshot and version
	require.NoError(l, err)
	l.same(l.table, skomer.Query{}, l.says, when)
	l.same(l.table, skomer.Query{NoIndex: true}, l.says, when)
	table := l.open()
	l.same(table, skomer.Query{}, l.says, when+", as a new process sees it")
	table.Close()
}

// step lets the table be changed, and the overlay follow it.
func (l *life) step(name string, change func()) *skomer.SyncReport {
	l.Helper()
	ctx := context.Background()
	l.table.Close() // what is written in the background is written
	before := l.overlayBytes()
	change()
	require.True(l, maps.Equal(before, l.overlayBytes()), "%s changed the overlay", name)
	l.ask()
	l.answers(name + ", not synced")
	r, err := l.table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(l, err, name)
	require.Empty(l, r.Skipped, name)
	l.covered(name, r)
	l.answers(name + ", synced")
	scrub, err := l.table.Scrub(ctx, skomer.ScrubOptions{})
	require.NoError(l, err, name)
	require.True(l, scrub.Complete, name)
	require.Empty(l, scrub.Findings, name)
	random, err := verify.Run(ctx, l.table, verify.Options{Answers: 4, Seed: uint64(len(l.past))})
	require.NoError(l, err, name)
	require.Empty(l, random.Differences, name)
	if n := len(l.past); n > 0 { // an earlier snapshot, another one after each step
		p := l.past[uint(r.SnapshotID)%uint(n)]
		l.same(l.table, skomer.Query{At: p.snapshot}, p.answers, name+", back at "+p.step)
	}
	l.past = append(l.past, said{name, fmt.Sprint(r.SnapshotID), l.says})
	l.Logf("%s: %d artifacts, %d carried, declined %v", name, r.Artifacts, r.Carried, r.Declined)
	return r
}

// covered demands that every index covers every row, unless it declined to.
func (l *life) covered(name string, r *skomer.SyncReport) {
	l.Helper()
	st, err := l.table.Status(context.Background())
	require.NoError(l, err, name)
	require.Empty(l, st.Warnings, name)
	require.Empty(l, st.Rejected, name)
	require.Len(l, st.Indexes, len(maintained))
	for _, x := range st.Indexes {
		if r.Declined[x.ID] == "" {
			require.Equal(l, x.Total, x.Covered, "%s: %s", name, x.Expr)
		}
	}
}

// overlayBytes is the objects of the overlay with the hashes of what they hold.
func (l *life) overlayBytes() map[string][sha256.Size]byte {
	l.Helper()
	out := map[string][sha256.Size]byte{}
	err := filepath.WalkDir(l.table.Overlay(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		out[path] = sha256.Sum256(b)
		return err
	})
	require.NoError(l, err)
	return out
}

// TestInteropMaintenance: Spark and PyIceberg append to tables, delete, update, merge, compact, sort, expire and clean them, while an
// overlay follows. After each step every answer is Spark's, with indexes and without, before the overlay is synced and after; nothing of
// the overlay is lost, and nothing is carried over a rewrite that is another order of rows, unless row ids prove it.
func TestInteropMaintenance(t *testing.T) {
	warehouse := filepath.Join(t.TempDir(), "warehouse")
	uri := restCatalog(t, warehouse)
	s := startSession(t, uri, "ada:secret")
	for _, x := range shapes {
		t.Run(x.namespace, func(t *testing.T) {
			l := &life{
				T: t, shape: x, session: s, folder: filepath.Join(warehouse, x.namespace), used: map[string]bool{},
				config: catalogs(map[string]string{"type": "rest", "uri": uri, "credential": "ada:secret"}),
			}
			l.config.OverlayRoot, l.config.MaxStaleness, l.config.MinPlannedFiles, l.config.MinPlannedScanBytes = t.TempDir(), time.Hour, -1, -1
			l.config.MinSelectivity = -1
			l.live()
		})
	}
	t.Logf("Spark and PyIceberg took %s", s.spent)
}

func (l *life) live() {
	l.create()
	l.insert(0, 200)
	l.insert(200, 400)
	l.table = l.open()
	l.beside()
	l.index()
	l.ask()
	_, err := l.table.Sync(context.Background(), skomer.SyncOptions{})
	require.NoError(l, err)
	l.grow()
	l.rewrite()
	l.overwrite()
	l.clean()
	require.Less(l, l.opened, l.files*2/3)
	for _, expr := range maintained {
		if l.used[expr] || strings.HasPrefix(expr, "zonemap") || strings.HasPrefix(expr, "valueset") {
			continue // where manifests, or the exact rows of another index, leave these nothing to say they do not count as used
		}
		l.Errorf("%s was not used in any answer", expr)
	}
}

// beside: an overlay inside of the table, where the table's cleaners look, is refused.
func (l *life) beside() {
	client, err := skomer.New(l.config)
	require.NoError(l, err)
	for _, at := range []string{".index", "data/.index", "metadata/skomer"} {
		table, err := client.Open(context.Background(), "local."+l.name(), skomer.TableOptions{Overlay: filepath.Join(l.folder, "t", at)})
		require.NoError(l, err)
		require.True(l, fault.Is(table.Mount(context.Background()), fault.Refused), at)
		table.Close()
	}
}

// grow changes rows.
func (l *life) grow() {
	r := l.step("append", func() { l.insert(400, 500) })
	require.Positive(l, r.Artifacts)
	require.Zero(l, r.Carried)
	r = l.step("compaction", func() { l.call("rewrite_data_files", ", options => map('rewrite-all', 'true')") })
	require.Positive(l, r.Carried)
	r = l.step("DELETE", func() { l.sql("DELETE FROM {t} WHERE id % 10 = 3") })
	require.Zero(l, r.Artifacts)
	r = l.step("UPDATE", func() { l.sql("UPDATE {t} SET n = -5000, msg = 'updated' WHERE id % 10 = 4") })
	require.Positive(l, r.Artifacts)
	require.Zero(l, r.Carried)
	r = l.step("MERGE", func() {
		l.sql(`MERGE INTO {t} t USING (SELECT id * 5 AS id FROM range(80, 110)) s ON t.id = s.id WHEN MATCHED AND t.id % 2 = 0 THEN DELETE
			WHEN MATCHED THEN UPDATE SET t.msg = 'merged' WHEN NOT MATCHED THEN INSERT (id, kind, n, day) VALUES (s.id, 'kind-1', 5, DATE '2024-02-10')`)
	})
	require.Positive(l, r.Artifacts)
	require.Zero(l, r.Carried)
}

// rewrite changes where rows lie.
func (l *life) rewrite() {
	merged := l.past[len(l.past)-1]
	l.sql("ALTER TABLE {t} CREATE TAG keep AS OF VERSION " + merged.snapshot)
	r := l.step("rewrite_position_delete_files", func() { l.call("rewrite_position_delete_files", ", options => map('rewrite-all', 'true')") })
	require.Zero(l, r.Artifacts)
	r = l.step("compaction of deletes", func() {
		l.call("rewrite_data_files", ", options => map('rewrite-all', 'true', 'delete-file-threshold', '1')")
	})
	l.built(r)
	r = l.step("rollback", func() { l.sql(fmt.Sprintf("CALL lake.system.rollback_to_snapshot('{t}', %s)", merged.snapshot)) })
	require.Equal(l, merged.snapshot, fmt.Sprint(r.SnapshotID))
	require.Equal(l, merged.answers, l.says)
	require.Zero(l, r.Artifacts)
	for _, order := range []string{"n DESC", "zorder(id, n)"} {
		r = l.step("sort by "+order, func() {
			l.call("rewrite_data_files", fmt.Sprintf(", strategy => 'sort', sort_order => '%s', options => map('rewrite-all', 'true')", order))
		})
		l.built(r)
	}
	r = l.step("rewrite_manifests", func() { l.call("rewrite_manifests", "") })
	require.Zero(l, r.Artifacts)
}

// built demands artifacts, and that nothing was carried where no row ids prove where the rows went.
func (l *life) built(r *skomer.SyncReport) {
	l.Helper()
	require.Positive(l, r.Artifacts)
	if l.version < 3 {
		require.Zero(l, r.Carried)
	}
}

// overwrite rewrites files with some of their rows changed or gone: by PyIceberg where it can write the format.
func (l *life) overwrite() {
	steps := []func(){
		func() { l.session.do(l.T, request{Table: l.name(), Delete: "id >= 10 and id < 20"}) },
		func() { l.session.do(l.T, request{Table: l.name(), Overwrite: "id >= 100 and id < 120", Add: 7000}) },
	}
	if l.version == 3 {
		l.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.mode'='copy-on-write', 'write.merge.mode'='copy-on-write')")
		steps = []func(){
			func() { l.sql("DELETE FROM {t} WHERE id BETWEEN 10 AND 19") },
			func() {
				l.sql("MERGE INTO {t} t USING (SELECT id FROM range(100, 120)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = t.id, n = t.n + 7000")
			},
		}
	}
	l.built(l.step("delete by copy", steps[0]))
	r := l.step("overwrite", steps[1])
	if l.version == 2 {
		l.built(r)
		return
	}
	require.Positive(l, r.Carried) // of the columns that were copied as they are
}
