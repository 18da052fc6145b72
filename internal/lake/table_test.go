package lake

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/avro"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/lake/manifest"
	"github.com/skomerdb/skomer/internal/realdata"
	"github.com/skomerdb/skomer/internal/store"
)

var start = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

// history is a table of three snapshots and two schemas, a tag on the first, a branch on the second, rolled back to the
// second and expired as the test asks.
func history(t *testing.T) (w made, ids []int64) {
	ctx := context.Background()
	w = create(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "a", column.Int)), Start: start})
	ids = append(ids, appendFiles(t, w, data(w, "1"))) // 12:00:00
	require.NoError(t, w.SetSchema(ctx, schemaOf(1, field(1, "renamed", column.Int))))
	ids = append(ids, appendFiles(t, w, data(w, "2"))) // 12:00:01
	ids = append(ids, appendFiles(t, w, data(w, "3"))) // 12:00:02
	require.NoError(t, w.Tag(ctx, "first", ids[0]))
	require.NoError(t, w.Branch(ctx, "side", ids[0]))
	return w, ids
}

func TestSelection(t *testing.T) {
	w, ids := history(t)
	for _, c := range []struct {
		at     string
		id     int64
		ref    string
		column string
		files  int
	}{
		{"", ids[2], "main", "renamed", 3},
		{fmt.Sprint(ids[0]), ids[0], "", "a", 1},
		{fmt.Sprint(ids[2]), ids[2], "", "renamed", 3},
		{"first", ids[0], "first", "a", 1},
		{"side", ids[0], "side", "renamed", 1},
		{"main", ids[2], "main", "renamed", 3},
		{"2024-05-01T12:00:01Z", ids[1], "", "renamed", 2},
		{"2024-05-01T14:00:00.5+02:00", ids[0], "", "a", 1},
		{"2024-05-01 12:00:01", ids[1], "", "renamed", 2},
		{"2025-01-01", ids[2], "", "renamed", 3},
	} {
		sel := Current()
		if c.at != "" {
			sel = ParseSelector(c.at)
		}
		s := at(t, w, sel)
		require.Equal(t, c.id, s.ID, c.at)
		require.Equal(t, c.ref, s.Ref, c.at)
		require.Equal(t, c.column, s.Schema.Fields[0].Name, c.at)
		require.Equal(t, c.files, s.Files.Len(), c.at)
		require.Equal(t, int64(3), s.LastSequence)
	}
}

func TestSelectionOfNothing(t *testing.T) {
	w, _ := history(t)
	table := w.open(t)
	for at, words := range map[string]string{
		"77":                   "snapshot 77 does not exist or has expired",
		"nosuch":               `no branch or tag "nosuch"`,
		"2024-05-01T11:59:59Z": "no snapshot as old as",
	} {
		_, err := table.Snapshot(context.Background(), ParseSelector(at))
		require.ErrorContains(t, err, words)
		require.Equal(t, fault.NotFound, fault.ClassOf(err))
	}
}

// TestRollback: a snapshot that was rolled back answers only for the time it was current.
func TestRollback(t *testing.T) {
	ctx := context.Background()
	w, ids := history(t)
	require.NoError(t, w.SetCurrent(ctx, ids[0])) // 12:00:03
	require.Equal(t, ids[0], current(t, w).ID)
	require.Equal(t, ids[2], at(t, w, ParseSelector("2024-05-01T12:00:02Z")).ID)
	require.Equal(t, ids[0], at(t, w, ParseSelector("2024-05-01T12:00:03Z")).ID)
	require.NoError(t, w.Expire(ctx, ids[1]))
	require.Equal(t, ids[0], at(t, w, ParseSelector("2024-05-01T12:00:01Z")).ID)
}

func TestEmptyTable(t *testing.T) {
	for version := 1; version <= 3; version++ {
		w := create(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "a", column.Int)), FormatVersion: version})
		s := current(t, w)
		require.Equal(t, int64(-1), s.ID)
		require.Zero(t, s.Files.Len())
		require.Zero(t, at(t, w, Selector{Ref: "main"}).Files.Len())
	}
}

// TestWaves: a snapshot costs one request and wave for its list, and one wave for all its manifests; the second time none.
func TestWaves(t *testing.T) {
	w := create(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "a", column.Int))})
	for i := range 20 {
		appendFiles(t, w, data(w, fmt.Sprint(i)))
	}
	table := w.open(t)
	read := func() store.Usage {
		var c store.Counter
		s, err := table.Snapshot(store.WithCounter(context.Background(), &c), Current())
		require.NoError(t, err)
		require.Equal(t, 20, s.Files.Len())
		return c.Usage()
	}
	cold := read()
	require.Equal(t, int64(2), cold.Waves)
	require.Equal(t, int64(21), cold.Gets)
	warm := read()
	require.Equal(t, int64(1), warm.Waves)
	require.Equal(t, int64(1), warm.Gets)
}

func TestCacheIsBounded(t *testing.T) {
	w := create(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "a", column.Int))})
	for i := range 20 {
		appendFiles(t, w, data(w, fmt.Sprint(i)))
	}
	l := New(Options{CacheBytes: 2000, Resolve: w.resolve})
	table, err := l.Open(context.Background(), w.Location())
	require.NoError(t, err)
	require.Equal(t, 20, snapshotOf(t, table, Current()).Files.Len())
	require.Equal(t, 20, snapshotOf(t, table, Current()).Files.Len())
	require.LessOrEqual(t, l.cache.used, int64(2000))
	require.NotEmpty(t, l.cache.items)
	require.Len(t, l.cache.items, l.cache.order.Len())
}

// TestMovedTable: a table whose files are elsewhere than its metadata says is read through a mapping, and the fault without
// one says which.
func TestMovedTable(t *testing.T) {
	ctx := context.Background()
	w := createLocal(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "a", column.Int))})
	appendFiles(t, w, data(w, "x"))
	moved := t.TempDir() + "/moved"
	require.NoError(t, os.Rename(w.Location(), moved))
	table, err := New(Options{}).Open(ctx, moved)
	require.NoError(t, err)
	_, err = table.Snapshot(ctx, Current())
	require.Equal(t, fault.NotFound, fault.ClassOf(err))
	require.Contains(t, fault.FixOf(err), fmt.Sprintf("--map %s=%s", w.Location(), moved))
	table, err = New(Options{Mapping: Mapping{{From: w.Location(), To: moved}}}).Open(ctx, moved)
	require.NoError(t, err)
	s := snapshotOf(t, table, Current())
	require.Equal(t, moved+"/data/x", s.Files.Path[0])
	require.Equal(t, w.Location()+"/data/x", s.Files.Stated[0])
}

func TestUnknownScheme(t *testing.T) {
	_, err := New(Options{}).Open(context.Background(), "s3://bucket/table")
	require.Equal(t, fault.Unsupported, fault.ClassOf(err))
	require.NotEmpty(t, fault.FixOf(err))
}

func TestNameWithoutCatalog(t *testing.T) {
	_, err := New(Options{}).Open(context.Background(), "ns.table")
	require.Equal(t, fault.NotFound, fault.ClassOf(err))
	require.Contains(t, fault.FixOf(err), "./ns.table")
}

// TestCorruptManifest: a damaged manifest is a fault that names it, at every cut.
func TestCorruptManifest(t *testing.T) {
	ctx := context.Background()
	w := createLocal(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "a", column.Int))})
	appendFiles(t, w, data(w, "x"))
	path := w.Snapshots[0].Manifests[0].Path
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, cut := range []int{0, 3, 10, len(whole) / 2, len(whole) - 17, len(whole) - 1} {
		require.NoError(t, os.WriteFile(path, whole[:cut], 0o600))
		table, err := New(Options{}).Open(ctx, w.Location())
		require.NoError(t, err)
		_, err = table.Snapshot(ctx, Current())
		require.Equal(t, fault.Corrupt, fault.ClassOf(err), "cut at %d", cut)
		require.ErrorContains(t, err, path)
	}
}

// TestUnknownSpec: a spec that the metadata lost is taken from the manifest's header.
func TestUnknownSpec(t *testing.T) {
	ctx := context.Background()
	w := create(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "s", column.String)), Partition: identity(1000, 1, "s")})
	appendFiles(t, w, data(w, "x", text("v")))
	w.Specs, w.DefaultSpec = []*facts.Spec{{ID: 9}}, 9
	require.NoError(t, w.Write(ctx))
	s := current(t, w)
	require.Equal(t, column.StringValue("v"), s.Files.Partition[1000].Value[0])
	require.Equal(t, "s", s.Specs[0].Fields[0].Name)
}

// TestConcurrentSnapshots: one table serves many readers.
func TestConcurrentSnapshots(t *testing.T) {
	w, ids := history(t)
	table := w.open(t)
	done := make(chan error, 16)
	for i := range cap(done) {
		go func() {
			s, err := table.Snapshot(context.Background(), Selector{ID: ids[i%3]})
			if err == nil && s.Files.Len() != i%3+1 {
				err = fmt.Errorf("%d files", s.Files.Len())
			}
			done <- err
		}()
	}
	for range cap(done) {
		require.NoError(t, <-done)
	}
}

func TestCancelled(t *testing.T) {
	w, _ := history(t)
	table := w.open(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := table.Snapshot(ctx, Current())
	require.ErrorIs(t, err, context.Canceled)
}

func TestLocate(t *testing.T) {
	for _, c := range []struct{ name, hint, files, want string }{
		{"hint", "2", "v1.metadata.json v2.metadata.json", "v2.metadata.json"},
		{"hint lags", "1", "v1.metadata.json v2.metadata.json v3.gz.metadata.json", "v3.gz.metadata.json"},
		{"gap after hint", "1", "v1.metadata.json v3.metadata.json", "v1.metadata.json"},
		{"hint of a lost version", "9", "v1.metadata.json v2.metadata.json", "v2.metadata.json"},
		{"no hint", "", "v9.metadata.json v10.metadata.json", "v10.metadata.json"},
		{"gzip suffix last", "", "v1.metadata.json v2.metadata.json.gz", "v2.metadata.json.gz"},
		{"named hint", "00001-abc", "00000-x.metadata.json 00001-abc.metadata.json 00001-z.metadata.json", "00001-abc.metadata.json"},
		{"newest uuid", "", "00000-x.metadata.json 00002-y.metadata.json 00001-z.metadata.json", "00002-y.metadata.json"},
		{"two newest", "", "00002-x.metadata.json 00002-y.metadata.json", "! 00002-x.metadata.json or 00002-y.metadata.json"},
		{"only file", "", "final.metadata.json", "final.metadata.json"},
		{"two without rule", "", "final.metadata.json 00001-x.metadata.json", "! do not say which"},
		{"none", "", "snap-1.avro", "! no metadata file"},
		{"hint alone", "4", "", "! its version hint says"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			put := func(name, content string) {
				require.NoError(t, os.MkdirAll(dir+"/metadata", 0o755))
				require.NoError(t, os.WriteFile(dir+"/metadata/"+name, []byte(content), 0o600))
			}
			for _, name := range strings.Fields(c.files) {
				put(name, "{}")
			}
			if c.hint != "" {
				put("version-hint.text", c.hint+"\n")
			}
			got, err := New(Options{}).newestMetadata(context.Background(), dir)
			if words, bad := strings.CutPrefix(c.want, "! "); bad {
				require.ErrorContains(t, err, words)
				return
			}
			require.NoError(t, err)
			require.Equal(t, dir+"/metadata/"+c.want, got)
		})
	}
}

func TestMapping(t *testing.T) {
	m := Mapping{
		{"s3://b/t", "/data/t"}, {"s3://b/t/part=1", "/other/"}, {"hdfs://h:1/", "/h"}, {"data/persistent", "/abs"}, {"file:/x", "s3://y"},
	}
	for in, want := range map[string]string{
		"s3://b/t/f":           "/data/t/f",
		"s3://b/t":             "/data/t",
		"s3://b/table2/f":      "s3://b/table2/f",
		"s3://b/t/part=1/f":    "/other/f",
		"s3://b/t/part=10/f":   "/data/t/part=10/f",
		"s3://b/t/a%20b":       "/data/t/a%20b",
		"hdfs://h:1/w/f":       "/h/w/f",
		"hdfs://h:10/w/f":      "hdfs://h:10/w/f",
		"data/persistent/t/f":  "/abs/t/f",
		"data/persistent2/t/f": "data/persistent2/t/f",
		"/data/persistent/t":   "/data/persistent/t",
		"file:/x/a":            "s3://y/a",
		"":                     "",
	} {
		require.Equal(t, want, m.Apply(in), in)
	}
	relative := Mapping{{"", "/root"}}
	require.Equal(t, "/root/a/b", relative.Apply("a/b"))
	require.Equal(t, "s3://b/x", relative.Apply("s3://b/x"))
}

func TestParseRule(t *testing.T) {
	r, err := ParseRule("s3://b/t/p=1=/data/t")
	require.NoError(t, err)
	require.Equal(t, Rule{"s3://b/t/p=1", "/data/t"}, r)
	for _, bad := range []string{"", "x", "x="} {
		_, err := ParseRule(bad)
		require.Equal(t, fault.Invalid, fault.ClassOf(err), bad)
	}
}

// TestEmptyManifestsAreNotRead: a manifest without live files costs no request, and may be gone.
func TestEmptyManifestsAreNotRead(t *testing.T) {
	ctx := context.Background()
	w := createLocal(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "a", column.Int))})
	appendFiles(t, w, data(w, "x"))
	_, err := w.Remove(ctx, w.Location()+"/data/x")
	require.NoError(t, err)
	appendFiles(t, w, data(w, "y"))
	for _, s := range w.Snapshots {
		for _, m := range s.Manifests {
			if files, _ := m.Count(lakewrite.Deleted); files > 0 {
				_ = os.Remove(m.Path)
			}
		}
	}
	require.Equal(t, []string{w.Location() + "/data/y"}, current(t, w).Files.Path)
	require.Zero(t, at(t, w, Selector{ID: w.Snapshots[1].ID}).Files.Len())
}

// TestEncryptedList: what is not readable because it is encrypted is said to be so.
func TestEncryptedList(t *testing.T) {
	dir := t.TempDir()
	encrypted, err := os.ReadFile(realdata.Path(t, "iceberg-rust/manifests_lists/manifest-list-v3-encrypted.avro"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dir+"/list.avro", encrypted, 0o600))
	require.NoError(t, os.WriteFile(dir+"/v1.metadata.json", []byte(`{"format-version": 3, "location": "`+dir+`", "current-schema-id": 0, "current-snapshot-id": 1,
		"schemas": [{"type":"struct","schema-id":0,"fields":[]}], "partition-specs": [{"spec-id":0,"fields":[]}],
		"snapshots": [{"snapshot-id": 1, "timestamp-ms": 1, "manifest-list": "`+dir+`/list.avro", "key-id": "k"}]}`), 0o600))
	table, err := New(Options{}).Open(context.Background(), dir+"/v1.metadata.json")
	require.NoError(t, err)
	_, err = table.Snapshot(context.Background(), Current())
	require.Equal(t, fault.Unsupported, fault.ClassOf(err))
	require.ErrorContains(t, err, "encrypted")
}

// TestPartitionValues: what Avro wrote in another form than the type is converted where that is exact, else unknown.
func TestPartitionValues(t *testing.T) {
	fixed := func(n int) *avro.Schema { return &avro.Schema{Kind: avro.Fixed, Size: n} }
	of := func(k avro.Kind, logical string) *avro.Schema { return &avro.Schema{Kind: k, Logical: logical} }
	for _, c := range []struct {
		typ    column.Type
		schema *avro.Schema
		raw    manifest.Raw
		want   column.Value
		known  bool
	}{
		{column.Of(column.Long), of(avro.Int, ""), manifest.Raw{Num: 5}, column.IntValue(column.Long, 5), true},
		{column.Of(column.Date), of(avro.Int, "date"), manifest.Raw{Num: -1}, column.IntValue(column.Date, -1), true},
		{column.Of(column.Double), of(avro.Float, ""), manifest.Raw{Num: int64(math.Float32bits(1.5))}, column.DoubleValue(1.5), true},
		{column.Of(column.Timestamp), of(avro.Long, "timestamp-millis"), manifest.Raw{Num: -5}, column.IntValue(column.Timestamp, -5000), true},
		{column.Of(column.Timestamp), of(avro.Long, "timestamp-nanos"), manifest.Raw{Num: -5}, column.IntValue(column.Timestamp, -1), true},
		{column.Of(column.TimestampNS), of(avro.Long, "timestamp-micros"), manifest.Raw{Num: 5}, column.IntValue(column.TimestampNS, 5000), true},
		{column.Of(column.TimestampNS), of(avro.Long, ""), manifest.Raw{Num: 5}, column.IntValue(column.TimestampNS, 5), true},
		{column.Of(column.Timestamp), of(avro.Int, "date"), manifest.Raw{Num: -1}, column.IntValue(column.Timestamp, -86_400_000_000), true},
		{column.Of(column.TimestampNS), of(avro.Int, "date"), manifest.Raw{Num: 2}, column.IntValue(column.TimestampNS, 2*86_400_000_000_000), true},
		{column.Of(column.TimestampNS), of(avro.Int, "date"), manifest.Raw{Num: 1 << 30}, column.Value{}, false},
		{column.Of(column.TimestampTZ), of(avro.Int, "date"), manifest.Raw{Num: 2}, column.Value{}, false},
		{column.Of(column.Time), of(avro.Int, "time-millis"), manifest.Raw{Num: 5}, column.IntValue(column.Time, 5000), true},
		{column.DecimalOf(9, 2), fixed(4), manifest.Raw{Bytes: "\xff\xff\xff\xfe"}, column.DecimalValue(-1, math.MaxUint64-1, 2), true},
		{column.DecimalOf(38, 2), of(avro.Bytes, ""), manifest.Raw{Bytes: "\x01\x2c"}, column.DecimalValue(0, 300, 2), true},
		{column.DecimalOf(38, 2), fixed(20), manifest.Raw{Bytes: "\x01" + strings.Repeat("\x00", 19)}, column.Value{}, false},
		{column.DecimalOf(9, 2), &avro.Schema{Kind: avro.Bytes, Logical: "decimal", Scale: 3}, manifest.Raw{Bytes: "\x01"}, column.Value{}, false},
		{column.Of(column.UUID), of(avro.String, ""), manifest.Raw{Bytes: "00112233-4455-6677-8899-aabbccddeeff"}, column.BytesValue(column.UUID, []byte("\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff")), true},
		{column.Of(column.UUID), fixed(15), manifest.Raw{Bytes: strings.Repeat("x", 15)}, column.Value{}, false},
		{column.FixedOf(3), of(avro.Bytes, ""), manifest.Raw{Bytes: "ab"}, column.Value{}, false},
		{column.Of(column.Int), of(avro.String, ""), manifest.Raw{Bytes: "5"}, column.Value{}, false},
		{column.Of(column.String), of(avro.Long, ""), manifest.Raw{Num: 5}, column.Value{}, false},
		{column.Of(column.Bool), of(avro.Int, ""), manifest.Raw{Num: 1}, column.Value{}, false},
		{column.Of(column.Float), of(avro.Double, ""), manifest.Raw{}, column.Value{}, false},
	} {
		got, known := partitionValue(c.raw, c.schema, c.typ)
		require.Equal(t, c.known, known, "%v from %v", c.typ, *c.schema)
		if known {
			require.Equal(t, c.want, got)
		}
	}
}

// TestMixedContent: whether a file adds or removes rows is never guessed.
func TestMixedContent(t *testing.T) {
	w := create(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "a", column.Int))})
	appendFiles(t, w, data(w, "x"))
	w.Snapshots[0].Manifests[0].Deletes = true
	appendFiles(t, w, data(w, "y"))
	_, err := w.open(t).Snapshot(context.Background(), Current())
	require.Equal(t, fault.Corrupt, fault.ClassOf(err))
	require.ErrorContains(t, err, "a manifest of deletes holds the data file")
}

func BenchmarkSnapshot(b *testing.B) {
	for _, c := range []struct{ files, columns int }{{1000, 10}, {20000, 20}} {
		w := create(b, lakewrite.Spec{Schema: schemaOf(0, field(1, "a", column.Int))})
		var all []lakewrite.File
		for i := range c.files {
			f := data(w, fmt.Sprintf("part-%08d-0123456789abcdef.parquet", i))
			f.Metrics = map[int]lakewrite.Metric{}
			for id := 1; id <= c.columns; id++ {
				n := lakewrite.N(int64(i))
				f.Metrics[id] = lakewrite.Metric{Size: n, Values: n, Nulls: n, NaNs: n, Lower: []byte("lower bd"), Upper: []byte("upper bd")}
			}
			all = append(all, f)
			if len(all) == 5000 || i == c.files-1 {
				_, err := w.Append(context.Background(), all...)
				require.NoError(b, err)
				all = nil
			}
		}
		for _, cold := range []bool{true, false} {
			b.Run(fmt.Sprintf("files=%d/columns=%d/cold=%v", c.files, c.columns, cold), func(b *testing.B) {
				table := w.open(b)
				b.ReportAllocs()
				for b.Loop() {
					if cold {
						table.lake.cache = newCache(DefaultCacheBytes)
					}
					s, err := table.Snapshot(context.Background(), Current())
					if err != nil || s.Files.Len() != c.files {
						b.Fatal(s.Files.Len(), err)
					}
				}
			})
		}
	}
}
