package verify

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/predicate/sqltext"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// everyDeclaration is each kind on everything of the documents that it takes.
func everyDeclaration(t *testing.T) (out []string) {
	t.Helper()
	schema := tabletest.DocumentSchema()
	for _, e := range kinds.All() {
		taken := 0
		for _, on := range []string{
			"id", "message", "level", "tokens(message)", "payload -> '$.user.id'", "attrs['k']", "map_keys(attrs)", "map_values(attrs)", "items.sku", "items.qty",
			"level, id", "message, level",
		} {
			expr := e.Name + "(" + on + ")"
			if _, err := kinds.ParseExpr(expr, schema); err == nil {
				out = append(out, expr)
				taken++
			}
		}
		require.Positive(t, taken, "%s takes nothing", e.Name)
	}
	return out
}

// documents is a table with some files of documents, indexed by every declaration.
func documents(t *testing.T, rng *rand.Rand, declarations []string) *skomer.Table {
	t.Helper()
	ctx, dir := t.Context(), t.TempDir()
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: tabletest.DocumentSchema()})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "table", "data"), 0o755))
	text := func(s string) *string { return &s }
	var files []lakewrite.File
	for n := range 4 {
		var rows []tabletest.Document
		for i := range 60 {
			d := tabletest.Document{ID: int64(n*60 + i), Message: text(fmt.Sprintf("disk-%d Full: %d errors", n, rng.IntN(50))), Payload: text(fmt.Sprintf(`{"user":{"id":"u%d"}}`, rng.IntN(90)))}
			if rng.IntN(4) > 0 {
				d.Attrs = map[string]*string{"always": text("y"), fmt.Sprint("k", n): nil, "k": text(fmt.Sprint("v", rng.IntN(40)))}
				q, l := int32(rng.IntN(30)), int32(rng.IntN(4))
				d.Items, d.Level = []*tabletest.Item{{SKU: text(fmt.Sprint("s", rng.IntN(60))), Qty: &q}, nil}, &l
			} else {
				d.Attrs = map[string]*string{"always": nil}
			}
			rows = append(rows, d)
		}
		path := filepath.Join(dir, "table", "data", fmt.Sprint(n, ".parquet"))
		require.NoError(t, tabletest.WriteDocuments(path, rows, 20))
		info, err := os.Stat(path)
		require.NoError(t, err)
		files = append(files, lakewrite.File{Path: path, Format: facts.Parquet, Records: int64(len(rows)), Size: info.Size()})
	}
	_, err = w.Append(ctx, files...)
	require.NoError(t, err)
	c, err := skomer.New(skomer.Config{OverlayRoot: filepath.Join(dir, "overlays"), MaxStaleness: time.Hour, MinPlannedFiles: -1, MinPlannedScanBytes: -1})
	require.NoError(t, err)
	table, err := c.Open(ctx, filepath.Join(dir, "table"), skomer.TableOptions{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	require.NoError(t, table.Mount(ctx))
	for _, expr := range declarations {
		_, err := table.AddIndex(ctx, expr)
		require.NoError(t, err, expr)
	}
	_, err = table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)
	return table
}

// TestEveryIndexIsAsked: of every kind on every expression that it takes a filter is drawn that it can answer, and no answer differs.
func TestEveryIndexIsAsked(t *testing.T) {
	n := seed(t)
	rng := rand.New(rand.NewPCG(n, 0))
	declarations := everyDeclaration(t)
	table := documents(t, rng, declarations)
	d, compared, err := draw(t.Context(), table, "", rng)
	require.NoError(t, err)
	require.Equal(t, []string{"id", "message", "payload", "level"}, compared)
	require.Len(t, d.targets, len(declarations))
	drawn := map[predicate.Op]bool{}
	for i, target := range d.targets {
		filter := d.next(i)
		tree, err := sqltext.Parse(filter, d.schema)
		require.NoError(t, err, filter)
		answered := false
		tree.Leaves(func(l *predicate.Leaf) {
			drawn[l.Op] = true
			answered = answered || target.declaration.Kind.Says(target.declaration.Columns, l) > 0
		})
		require.Equal(t, target.declaration.Name != "sketch", answered, "%s: %s", target.declaration, filter)
	}
	for range 3000 {
		tree, err := sqltext.Parse(d.filter(2), d.schema)
		require.NoError(t, err)
		tree.Leaves(func(l *predicate.Leaf) { drawn[l.Op] = true })
	}
	for _, op := range []predicate.Op{predicate.Like, predicate.ILike, predicate.Match, predicate.Contains, predicate.In, predicate.IsNull} {
		require.True(t, drawn[op], "%d is drawn", op)
	}

	report, err := Run(t.Context(), table, Options{Answers: len(declarations), Seed: n})
	require.NoError(t, err)
	require.Empty(t, report.Differences)
}

// TestEveryKindIsUsed: where a table has indexes of one kind alone, a short run uses one.
func TestEveryKindIsUsed(t *testing.T) {
	n := seed(t)
	byKind := map[string][]string{}
	for _, expr := range everyDeclaration(t) {
		kind, _, _ := strings.Cut(expr, "(")
		byKind[kind] = append(byKind[kind], expr)
	}
	delete(byKind, "sketch")
	for kind, declarations := range byKind {
		report, err := Run(t.Context(), documents(t, rand.New(rand.NewPCG(n, 0)), declarations), Options{Answers: 20, Seed: n})
		require.NoError(t, err, kind)
		require.Empty(t, report.Differences, kind)
		require.NotEmpty(t, report.IndexesUsed, kind)
	}
}
