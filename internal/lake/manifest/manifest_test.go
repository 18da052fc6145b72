package manifest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/realdata"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/mem"
)

func random(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		seed = n
	}
	t.Logf("SKOMER_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func fetch(t testing.TB, s store.Store, key string) []byte {
	t.Helper()
	r := s.Fetch(context.Background(), []store.Read{{Key: key}})[0]
	require.NoError(t, r.Err)
	return r.Data[0]
}

func maybe(r *rand.Rand, n int64) *int64 {
	if r.IntN(3) == 0 {
		return nil
	}
	return &n
}

func randomFile(r *rand.Rand, i int) lakewrite.File {
	f := lakewrite.File{
		Path: fmt.Sprintf("p/%d é%%20.parquet", i), Records: r.Int64N(1 << 40), Size: r.Int64N(1 << 50), Metrics: map[int]lakewrite.Metric{},
		Format: facts.Format(r.IntN(3)), Partition: []facts.PartitionValue{{Null: r.IntN(4) == 0, Value: column.IntValue(column.Long, int64(r.Uint64()))}},
	}
	for range r.IntN(6) {
		m := lakewrite.Metric{Size: maybe(r, 5), Values: maybe(r, r.Int64()), Nulls: maybe(r, 0), NaNs: maybe(r, r.Int64())}
		if r.IntN(2) == 0 {
			m.Lower = make([]byte, r.IntN(20))
		}
		if r.IntN(2) == 0 {
			m.Upper = []byte{byte(i)}
		}
		f.Metrics[1+r.IntN(9)] = m
	}
	if r.IntN(5) == 0 {
		f.Key = []byte("key")
	}
	return f
}

func count(n *int64) int64 {
	if n == nil {
		return facts.Unknown
	}
	return *n
}

// TestRandomManifests: what another implementation of Avro wrote is what is read, cell by cell.
func TestRandomManifests(t *testing.T) {
	r := random(t)
	ctx := context.Background()
	for range 60 {
		s, version := mem.New(), 1+r.IntN(3)
		schema := &column.Schema{Fields: []column.Field{{ID: 1, Name: "a", Type: column.Of(column.Long)}}}
		spec := &facts.Spec{Fields: []facts.PartitionField{{ID: 1000, SourceID: 1, Name: "a", Transform: "identity"}}}
		w, err := lakewrite.Create(ctx, s, "t", lakewrite.Spec{Schema: schema, FormatVersion: version, Partition: spec})
		require.NoError(t, err)
		var want []lakewrite.File
		for i := range 1 + r.IntN(30) {
			want = append(want, randomFile(r, i))
		}
		_, err = w.Append(ctx, want...)
		require.NoError(t, err)

		listed, err := ReadList("list", fetch(t, s, w.Snapshots[0].List))
		require.NoError(t, err)
		require.Len(t, listed, 1)
		written := w.Snapshots[0].Manifests[0]
		wantList := ListEntry{
			Path: written.Path, Length: written.Length, SnapshotID: 1001, Added: int64(len(want)), FirstRowID: facts.Unknown,
		}
		if version > 1 {
			wantList.Sequence = 1
		}
		if version > 2 {
			wantList.FirstRowID = 0
		}
		require.Equal(t, wantList, listed[0])

		m, err := Read("m", fetch(t, s, written.Path), nil)
		require.NoError(t, err)
		require.Equal(t, version, m.FormatVersion)
		require.Equal(t, 0, m.SpecID)
		require.Equal(t, len(want), m.N)
		var stored map[int]int64
		for _, f := range want {
			for id, x := range f.Metrics {
				if x.Size != nil && *x.Size > 0 && id < direct {
					if stored == nil {
						stored = map[int]int64{}
					}
					stored[id] += *x.Size
				}
			}
		}
		require.Equal(t, stored, m.Stored)
		for i, f := range want {
			got := m.File(i)
			require.Equal(t, []any{f.Path, f.Format, f.Records, f.Size, f.Key != nil, true}, []any{got.Path, got.Format, got.Records, got.Size, got.Encrypted, got.Added})
			wantRaw := Raw{Null: true}
			if !f.Partition[0].Null {
				wantRaw = Raw{Num: f.Partition[0].Value.Int64()}
			}
			require.Equal(t, []Raw{wantRaw}, got.Partition)
			for id := 1; id < 10; id++ {
				checkMetric(t, f.Metrics, id, m.Columns[id], i)
			}
		}
	}
}

func checkMetric(t *testing.T, all map[int]lakewrite.Metric, id int, got *facts.Metrics, i int) {
	t.Helper()
	m := all[id]
	if got == nil {
		require.Equal(t, lakewrite.Metric{Size: m.Size}, m)
		return
	}
	require.Equal(t, []int64{count(m.Values), count(m.Nulls), count(m.NaNs)}, []int64{got.Values.At(i), got.Nulls.At(i), got.NaNs.At(i)})
	require.Equal(t, m.Lower == nil, got.LowerAt(i) == nil)
	require.True(t, bytes.Equal(m.Lower, got.LowerAt(i)) && bytes.Equal(m.Upper, got.UpperAt(i)))
}

func write(t testing.TB, schema string, records ...any) []byte {
	t.Helper()
	s, err := avro.Parse(schema)
	require.NoError(t, err)
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, s, ocf.WithSchema(schema))
	require.NoError(t, err)
	for _, r := range records {
		require.NoError(t, w.Encode(r))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

type object = map[string]any

// TestUnknownAndMissingFields: fields by other names, in another order and from the future are no trouble.
func TestUnknownAndMissingFields(t *testing.T) {
	b := write(t, `{"type":"record","name":"e","fields":[
		{"name":"future","type":{"type":"map","values":["null","bytes"]},"field-id":900},
		{"name":"df","field-id":2,"type":["null",{"type":"record","name":"d","fields":[
			{"name":"bytes_","type":"long","field-id":104},{"name":"rows","type":["long","null"],"field-id":103},{"name":"fmt","type":"string","field-id":101},
			{"name":"stats","type":{"type":"array","items":"double"},"field-id":109},{"name":"where","type":"string","field-id":100}]}]},
		{"name":"st","type":["null","int"],"field-id":0}]}`,
		object{"future": object{"x": []byte{1}}, "st": int64(1), "df": object{"bytes_": int64(5), "rows": int64(6), "fmt": "parquet", "stats": []float64{1}, "where": "p"}},
		object{"future": object{}, "st": int64(2), "df": object{"bytes_": int64(5), "rows": int64(6), "fmt": "parquet", "stats": []float64{}, "where": "gone"}})
	m, err := Read("m", b, nil)
	require.NoError(t, err)
	require.Equal(t, 1, m.N)
	require.Equal(t, "p", m.File(0).Path)
	require.Equal(t, int64(6), m.File(0).Records)
	require.Equal(t, facts.Unknown, m.File(0).Sequence)
	require.Nil(t, m.File(0).Partition)
}

// TestNamesWithoutIDs: a writer may leave the field ids out; names decide then.
func TestNamesWithoutIDs(t *testing.T) {
	b := write(t, `{"type":"record","name":"m","fields":[{"name":"manifest_path","type":"string"},{"name":"added_data_files_count","type":"int"},{"name":"sequence_number","type":"long"}]}`,
		object{"manifest_path": "p", "added_data_files_count": int64(3), "sequence_number": int64(9)})
	got, err := ReadList("l", b)
	require.NoError(t, err)
	require.Equal(t, []ListEntry{{Path: "p", Added: 3, Sequence: 9, Existing: facts.Unknown, SnapshotID: facts.Unknown, FirstRowID: facts.Unknown}}, got)
}

func TestImpossibleEntries(t *testing.T) {
	const schema = `{"type":"record","name":"e","fields":[{"name":"status","type":"int","field-id":0},{"name":"data_file","field-id":2,"type":{"type":"record","name":"d","fields":[
		{"name":"content","type":"int","field-id":134},{"name":"file_path","type":"string","field-id":100},{"name":"file_format","type":"string","field-id":101},
		{"name":"record_count","type":"long","field-id":103},{"name":"file_size_in_bytes","type":"long","field-id":104}]}}]}`
	good := func() object {
		return object{"content": 0, "file_path": "p", "file_format": "PARQUET", "record_count": int64(1), "file_size_in_bytes": int64(1)}
	}
	_, err := Read("m", write(t, schema, object{"status": 0, "data_file": good()}), nil)
	require.NoError(t, err)
	for key, bad := range map[string]any{"content": 3, "file_path": "", "file_format": "csv", "record_count": int64(-1), "file_size_in_bytes": int64(-5)} {
		f := good()
		f[key] = bad
		_, err := Read("m", write(t, schema, object{"status": 1, "data_file": f}), nil)
		require.Equal(t, fault.Corrupt, fault.ClassOf(err), key)
	}
	_, err = Read("m", write(t, schema, object{"status": 3, "data_file": good()}), nil)
	require.Equal(t, fault.Corrupt, fault.ClassOf(err))
	for name, other := range map[string]string{"no record": `"long"`, "no data_file": `{"type":"record","name":"e","fields":[{"name":"status","type":"int"}]}`} {
		_, err := Read("m", write(t, other), nil)
		require.Equal(t, fault.Corrupt, fault.ClassOf(err), name)
	}
	_, err = ReadList("m", write(t, `"long"`))
	require.Equal(t, fault.Corrupt, fault.ClassOf(err))
}

// TestMetricsAreBounded: a manifest of few bytes cannot ask for files times columns; what is dropped is unknown.
func TestMetricsAreBounded(t *testing.T) {
	const schema = `{"type":"record","name":"e","fields":[{"name":"status","type":"int","field-id":0},{"name":"data_file","field-id":2,"type":{"type":"record","name":"d","fields":[
		{"name":"file_path","type":"string","field-id":100},{"name":"file_format","type":"string","field-id":101},{"name":"record_count","type":"long","field-id":103},
		{"name":"file_size_in_bytes","type":"long","field-id":104},
		{"name":"value_counts","field-id":109,"type":{"type":"array","items":{"type":"record","name":"kv","fields":[{"name":"key","type":"int"},{"name":"value","type":"long"}]}}}]}}]}`
	var records []any
	for i := range 8000 {
		records = append(records, object{"status": 1, "data_file": object{
			"file_path": "p", "file_format": "parquet", "record_count": int64(1), "file_size_in_bytes": int64(1), "value_counts": []any{object{"key": i, "value": int64(i)}},
		}})
	}
	b := write(t, schema, records...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := Read("m", b, nil)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Equal(t, 8000, m.N)
	require.Less(t, len(m.Columns), 8000)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<30))
	for id, col := range m.Columns {
		require.Equal(t, int64(id), col.Values.At(id))
		require.Equal(t, facts.Unknown, col.Values.At(7999-id))
	}
}

// TestRealManifests: every real manifest and list is read by one of the two readers.
func TestRealManifests(t *testing.T) {
	n := 0
	for _, pattern := range []string{"duckdb-iceberg/*/metadata/*.avro", "duckdb-iceberg/*/*/*/metadata/*.avro", "impala/iceberg/*/*/*/metadata/*.avro", "icebird/*/*/*/metadata/*.avro"} {
		for _, path := range realdata.Glob(t, pattern) {
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			_, listErr := ReadList(path, b)
			_, err = Read(path, b, nil)
			require.True(t, (listErr == nil) != (err == nil), "%s: %v, %v", filepath.Base(path), listErr, err)
			n++
		}
	}
	require.Greater(t, n, 150)
}

func FuzzManifest(f *testing.F) {
	ctx := context.Background()
	for version := 1; version <= 3; version++ {
		s := mem.New()
		schema := &column.Schema{Fields: []column.Field{{ID: 1, Name: "a", Type: column.Of(column.Long)}}}
		w, err := lakewrite.Create(ctx, s, "t", lakewrite.Spec{Schema: schema, FormatVersion: version})
		require.NoError(f, err)
		file := lakewrite.File{Path: "p", Metrics: map[int]lakewrite.Metric{1: {Values: lakewrite.N(5), Lower: []byte{1}}}}
		_, err = w.Append(ctx, file)
		require.NoError(f, err)
		f.Add(fetch(f, s, w.Snapshots[0].List))
		f.Add(fetch(f, s, w.Snapshots[0].Manifests[0].Path))
	}
	// Uncompressed, so that changed bytes reach the fields.
	f.Add(write(f, `{"type":"record","name":"e","fields":[{"name":"status","type":"int","field-id":0},{"name":"data_file","field-id":2,"type":{"type":"record","name":"d","fields":[
		{"name":"file_path","type":"string","field-id":100},{"name":"file_format","type":"string","field-id":101},{"name":"record_count","type":"long","field-id":103},
		{"name":"partition","field-id":102,"type":{"type":"record","name":"p","fields":[{"name":"a","type":["null","double"],"field-id":1000}]}},
		{"name":"file_size_in_bytes","type":"long","field-id":104},{"name":"equality_ids","type":["null",{"type":"array","items":"int"}],"field-id":135},
		{"name":"lower_bounds","field-id":125,"type":{"type":"array","items":{"type":"record","name":"kv","fields":[{"name":"key","type":"int"},{"name":"value","type":"bytes"}]}}}]}}]}`,
		object{"status": 1, "data_file": object{
			"file_path": "p", "file_format": "orc", "record_count": int64(1), "file_size_in_bytes": int64(1), "equality_ids": []int{1, 2},
			"partition": object{"a": 2.5}, "lower_bounds": []any{object{"key": 1, "value": []byte{1, 2}}},
		}}))
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 0))
		s := &shaper{Rand: r, ids: seed%2 == 0, swapped: map[int]bool{}}
		f.Add(s.manifest([]*shaped{randomShaped(r, 1), randomShaped(r, 2)}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<20 {
			return
		}
		for _, err := range []error{errOf(ReadList("fuzz", b)), errOf(Read("fuzz", b, nil))} {
			switch fault.ClassOf(err) {
			case fault.Corrupt, fault.Unsupported, fault.Exhausted:
				if bytes.Contains([]byte(err.Error()), []byte("decoder failed")) {
					t.Fatalf("panic: %v", err)
				}
			default:
				if err != nil {
					t.Fatalf("unclassified: %v", err)
				}
			}
		}
	})
}

func errOf[T any](_ T, err error) error { return err }
