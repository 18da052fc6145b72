package skomer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/lake/meta"
	"github.com/skomerdb/skomer/internal/store/local"
)

func stated(t *testing.T, path string, rows int) lakewrite.File {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return lakewrite.File{Path: path, Format: facts.Parquet, Records: int64(rows), Size: info.Size()}
}

// agree compares every way of answering with the scan that skips nothing.
func agree(t *testing.T, table *skomer.Table, when string, wheres ...string) {
	t.Helper()
	for _, at := range []string{""} {
		for _, where := range wheres {
			want, _ := positions(t, table, skomer.Query{Where: where, At: at, NoPrune: true})
			for name, q := range map[string]skomer.Query{"indexes": {}, "strict": {Strict: true}, "no index": {NoIndex: true}} {
				q.Where, q.At = where, at
				got, stats := positions(t, table, q)
				if describe(got) != describe(want) {
					t.Errorf("%s, %s, %s: got %s, want %s (used %v, rejected %v)", when, where, name, describe(got), describe(want), stats.IndexesUsed, stats.Rejected)
				}
			}
		}
	}
}

func indexed(t *testing.T, table *skomer.Table, exprs ...string) {
	t.Helper()
	ctx := context.Background()
	if err := table.Mount(ctx); err != nil {
		t.Fatal(err)
	}
	for _, e := range exprs {
		if _, err := table.AddIndex(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	r, err := table.Sync(ctx, skomer.SyncOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("sync: %d files, %d artifacts, skipped %v, declined %v", r.FilesIndexed, r.Artifacts, r.Skipped, r.Declined)
}

type noIDs struct {
	ID int64 `parquet:"id"`
	S  struct {
		A int64 `parquet:"a"`
		B int64 `parquet:"b"`
	} `parquet:"s"`
}

func noIDFile(t *testing.T, path string) lakewrite.File {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	var rows []noIDs
	for i := range 4 {
		var r noIDs
		r.ID, r.S.A, r.S.B = int64(i), int64(10*i), int64(100*i)
		rows = append(rows, r)
	}
	if err := parquet.WriteFile(path, rows); err != nil {
		t.Fatal(err)
	}
	return stated(t, path, 4)
}

func nested(id int, a, b string) *column.Schema {
	return &column.Schema{ID: id, Fields: []column.Field{
		{ID: 1, Name: "id", Type: column.Of(column.Long)},
		{ID: 2, Name: "s", Type: column.Type{Kind: column.Struct, Fields: []column.Field{
			{ID: 3, Name: a, Type: column.Of(column.Long)}, {ID: 4, Name: b, Type: column.Of(column.Long)},
		}}},
	}}
}

// TestRenamedNestedFieldWithoutIDs: nested fields of files without field ids and name mapping go by name, so a rename moves them.
func TestRenamedNestedFieldWithoutIDs(t *testing.T) {
	for _, expr := range []string{"zonemap(s.a)", "bloom(s.a)", "ordered(s.a)"} {
		ctx, dir := context.Background(), t.TempDir()
		w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: nested(0, "a", "b")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Append(ctx, noIDFile(t, filepath.Join(dir, "table", "data", "f.parquet"))); err != nil {
			t.Fatal(err)
		}
		table := open(t, w.Location(), filepath.Join(dir, "overlays"))
		indexed(t, table, expr)
		agree(t, table, expr+" before", "s.a = 10", "s.a IS NULL")
		if err := w.SetSchema(ctx, nested(1, "b", "a")); err != nil {
			t.Fatal(err)
		}
		agree(t, table, expr+" swapped", "s.b = 10", "s.b = 100", "s.a = 100", "s.b IS NULL", "s.b > 50")
		if err := w.SetSchema(ctx, nested(2, "c", "d")); err != nil {
			t.Fatal(err)
		}
		agree(t, table, expr+" renamed", "s.c = 10", "s.c IS NULL", "s.c >= 0")
	}
}

// TestNameMappingChanges: an index over files without ids does not speak once the mapping finds their columns elsewhere.
func TestNameMappingChanges(t *testing.T) {
	ab := func(a, b string) []facts.MappedField {
		return []facts.MappedField{{ID: 1, Names: []string{"id"}}, {ID: 2, Names: []string{"s"}, Fields: []facts.MappedField{
			{ID: 3, Names: []string{a}}, {ID: 4, Names: []string{b}},
		}}}
	}
	for _, expr := range []string{"zonemap(s.a)", "bloom(s.a)", "ordered(s.a)"} {
		for _, first := range [][]facts.MappedField{nil, ab("a", "b")} {
			ctx, dir := context.Background(), t.TempDir()
			w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: nested(0, "a", "b"), NameMapping: first})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Append(ctx, noIDFile(t, filepath.Join(dir, "table", "data", "f.parquet"))); err != nil {
				t.Fatal(err)
			}
			table := open(t, w.Location(), filepath.Join(dir, "overlays"))
			indexed(t, table, expr)
			agree(t, table, expr+" before", "s.a = 10", "s.a IS NULL")
			for _, m := range [][]facts.MappedField{ab("b", "a"), ab("x", "y"), {}, nil, ab("a", "b")} {
				delete(w.Properties, meta.NameMappingProperty)
				if m != nil {
					w.Properties[meta.NameMappingProperty] = meta.NameMappingJSON(m)
				}
				if err := w.Write(ctx); err != nil {
					t.Fatal(err)
				}
				agree(t, table, fmt.Sprintf("%s under %v", expr, m), "s.a = 10", "s.a = 100", "s.a IS NULL", "s.a >= 0")
				if st, err := table.Status(ctx); err != nil || st.Indexes[0].Covered != 0 || len(st.Rejected) == 0 {
					t.Errorf("%s under %v: status says that %d rows are covered, rejected %v (%v)", expr, m, st.Indexes[0].Covered, st.Rejected, err)
				}
				for _, want := range []int{1, 0} { // what is no longer believed is built anew, once
					if r, err := table.Sync(ctx, skomer.SyncOptions{}); err != nil || r.Artifacts != want {
						t.Errorf("%s under %v: sync made %d artifacts, want %d (%v)", expr, m, r.Artifacts, want, err)
					}
				}
				agree(t, table, fmt.Sprintf("%s synced under %v", expr, m), "s.a = 10", "s.a = 100", "s.a IS NULL", "s.a >= 0")
				if st, err := table.Status(ctx); err != nil || st.Indexes[0].Artifacts != 1 {
					t.Errorf("%d artifacts are alive, want 1 (%v)", st.Indexes[0].Artifacts, err)
				}
			}
		}
	}
}

// TestTinyTables: no snapshot, no rows, no UUID, no manifest list.
func TestTinyTables(t *testing.T) {
	for version := 1; version <= 3; version++ {
		for _, embed := range []bool{false, true} {
			if embed && version > 1 {
				continue
			}
			ctx, dir := context.Background(), t.TempDir()
			spec := lakewrite.Spec{Schema: idSchema, FormatVersion: version, Embed: embed}
			if version == 1 {
				spec.UUID = "-"
			}
			w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), spec)
			if err != nil {
				t.Fatal(err)
			}
			table := open(t, w.Location(), filepath.Join(dir, "overlays"))
			indexed(t, table, "zonemap(v)", "bloom(v)", "ordered(v)")
			agree(t, table, "no snapshot", "v = 1", "v IS NULL")
			if n, err := mustQuery(t, table, skomer.Query{Limit: -1}).Count(ctx); n != 0 || err != nil {
				t.Error(n, err)
			}
			if _, err := table.Explain(ctx, skomer.Query{Where: "v = 1"}, true); err != nil {
				t.Error(err)
			}
			if _, err := table.Status(ctx); err != nil {
				t.Error(err)
			}
			if _, err := w.Append(ctx, plain(t, filepath.Join(dir, "table", "data", "zero.parquet"), nil)); err != nil {
				t.Fatal(err)
			}
			if r, err := table.Sync(ctx, skomer.SyncOptions{}); err != nil {
				t.Error(err)
			} else {
				t.Logf("zero rows: %+v", r)
			}
			agree(t, table, "no row", "v = 1", "v IS NULL")
			if _, err := w.Append(ctx, plain(t, filepath.Join(dir, "table", "data", "one.parquet"), longs(1))); err != nil {
				t.Fatal(err)
			}
			if r, err := table.Sync(ctx, skomer.SyncOptions{}); err != nil {
				t.Error(err)
			} else {
				t.Logf("one row: %+v", r)
			}
			agree(t, table, "one row", "v = 1", "v IS NULL", "v <> 1")
			_, stats := positions(t, table, skomer.Query{Where: "v = 2"})
			if len(stats.IndexesUsed) == 0 {
				t.Errorf("version %d: no index used: %+v", version, stats)
			}
		}
	}
}

func mustQuery(t *testing.T, table *skomer.Table, q skomer.Query) *skomer.Rows {
	t.Helper()
	rows, err := table.Query(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestTypesMoveUnderIndexes: indexes built before and after a promotion answer snapshots of both schemas.
func TestTypesMoveUnderIndexes(t *testing.T) {
	schema := func(id int, i, f, d column.Type, extra ...column.Field) *column.Schema {
		return &column.Schema{ID: id, Fields: append([]column.Field{
			{ID: 1, Name: "id", Type: column.Of(column.Long)}, {ID: 2, Name: "i", Type: i}, {ID: 3, Name: "f", Type: f}, {ID: 4, Name: "d", Type: d},
		}, extra...)}
	}
	dec := func(p int) column.Type { return column.Type{Kind: column.Decimal, Width: p, Scale: 2} }
	one := column.IntValue(column.Long, 7)
	old := schema(0, column.Of(column.Int), column.Of(column.Float), dec(5))
	later := schema(1, column.Of(column.Long), column.Of(column.Double), dec(20), column.Field{ID: 5, Name: "x", Type: column.Of(column.Long), Initial: &one})
	again := schema(2, column.Of(column.Long), column.Of(column.Double), dec(20), column.Field{ID: 6, Name: "x", Type: column.Of(column.Long)})
	write := func(path string, f32 bool) lakewrite.File {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if f32 {
			type row struct {
				ID int64   `parquet:"id,id(1)"`
				I  int32   `parquet:"i,id(2)"`
				F  float32 `parquet:"f,id(3)"`
				D  int32   `parquet:"d,id(4),decimal(2:5)"`
			}
			var rows []row
			for i := range 20 {
				rows = append(rows, row{int64(i), int32(i - 3), float32(i) / 10, int32(i * 10)})
			}
			if err := parquet.WriteFile(path, rows); err != nil {
				t.Fatal(err)
			}
			return stated(t, path, 20)
		}
		type row struct {
			ID int64   `parquet:"id,id(1)"`
			I  int64   `parquet:"i,id(2)"`
			F  float64 `parquet:"f,id(3)"`
			D  int64   `parquet:"d,id(4),decimal(2:18)"`
			X  int64   `parquet:"x,id(5)"`
		}
		var rows []row
		for i := range 20 {
			rows = append(rows, row{int64(i), int64(i-3) << (i % 3 * 20), float64(i) / 10, int64(i * 10), int64(i % 9)})
		}
		if err := parquet.WriteFile(path, rows); err != nil {
			t.Fatal(err)
		}
		return stated(t, path, 20)
	}
	wheres := []string{
		"i = 3", "i <> 3", "i IN (1, 2, 99)", "i > 5", "i = 3000000000", "i < -1", "f = 0.1", "f = 0.5", "f > 0.3", "f <= 0.7", "f <> 0.1", "f IN (0.1, 0.2, 0.5)",
		"d = 0.1", "d = 0.10", "d > 1", "d IN (0.2, 0.3)", "d = 12345678.12", "NOT (i = 3)", "i IS NULL", "f = 0.1 OR d = 0.5",
	}
	for _, kind := range []string{"zonemap", "bloom", "ordered"} {
		for _, when := range []string{"before", "after", "both"} {
			ctx, dir := context.Background(), t.TempDir()
			w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: old, FormatVersion: 3})
			if err != nil {
				t.Fatal(err)
			}
			first, err := w.Append(ctx, write(filepath.Join(dir, "table", "data", "a.parquet"), true))
			if err != nil {
				t.Fatal(err)
			}
			table := open(t, w.Location(), filepath.Join(dir, "overlays"))
			exprs := []string{kind + "(i)", kind + "(f)", kind + "(d)"}
			if when != "after" {
				indexed(t, table, exprs...)
			}
			if err := w.SetSchema(ctx, later); err != nil {
				t.Fatal(err)
			}
			second, err := w.Append(ctx, write(filepath.Join(dir, "table", "data", "b.parquet"), false))
			if err != nil {
				t.Fatal(err)
			}
			if when != "before" {
				indexed(t, table, append(exprs, kind+"(x)")...)
			}
			check := func(name string, at int64, wheres ...string) {
				for _, where := range wheres {
					q := skomer.Query{Where: where, NoPrune: true}
					if at != 0 {
						q.At = strconv.FormatInt(at, 10)
					}
					want, _ := positions(t, table, q)
					q.NoPrune = false
					if got, stats := positions(t, table, q); describe(got) != describe(want) {
						t.Errorf("%s built %s, %s, %s: got %s, want %s (%v)", kind, when, name, where, describe(got), describe(want), stats.IndexesUsed)
					}
				}
			}
			check("now", 0, append(wheres, "x = 7", "x = 3", "x IS NULL", "x <> 7", "x > 7")...)
			check("second", second, append(wheres, "x = 7", "x = 3", "x IS NULL")...)
			check("first", first, wheres...)
			if err := w.SetSchema(ctx, again); err != nil {
				t.Fatal(err)
			}
			check("re-added", 0, append(wheres, "x = 7", "x = 3", "x IS NULL", "x IS NOT NULL")...)
			check("second from re-added", second, append(wheres, "x = 7", "x = 3", "x IS NULL")...)
			if _, err := table.Sync(ctx, skomer.SyncOptions{}); err != nil {
				t.Error(err)
			}
			if st, err := table.Status(ctx); err != nil {
				t.Error(err, st)
			}
			check("re-added, synced", 0, append(wheres, "x = 7", "x = 3", "x IS NULL", "x IS NOT NULL")...)
		}
	}
}
