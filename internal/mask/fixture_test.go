package mask

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/puffin"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// fixture is facts made by hand over files that are really there.
type fixture struct {
	testing.TB
	dir    string
	s      *facts.Snapshot
	masker *Masker
	layout tabletest.Layout
	files  int
}

func field(id int, name string, k column.Kind) column.Field {
	return column.Field{ID: id, Name: name, Type: column.Of(k)}
}

func schema(fields ...column.Field) *column.Schema { return &column.Schema{Fields: fields} }

func newFixture(t testing.TB, s *column.Schema) *fixture {
	return &fixture{
		TB: t, dir: t.TempDir(),
		s: &facts.Snapshot{
			ID: 1, Schema: s, Schemas: map[int]*column.Schema{s.ID: s}, Specs: map[int]*facts.Spec{0: {}},
			Files: facts.Files{Partition: map[int]*facts.PartitionColumn{}},
		},
		masker: &Masker{Store: local.New(), Footers: parquetio.NewFooters(1 << 20), Cache: NewCache(1 << 20)},
		layout: tabletest.Layout{RowsPerGroup: 100, PageBytes: 1 << 16, PageVersion: 1, PageIndex: true, Codec: tabletest.Uncompressed},
	}
}

// row makes cells: nil is null, int an Int or Long by the schema, float64 a Double or Float, string a String.
func row(s *column.Schema, values ...any) tabletest.Row {
	out := make(tabletest.Row, len(values))
	for i, v := range values {
		k := s.Fields[i].Type.Kind
		switch v := v.(type) {
		case nil:
			out[i] = tabletest.Cell{Null: true}
		case int:
			out[i] = tabletest.Cell{Val: column.IntValue(k, int64(v))}
		case float64:
			out[i] = tabletest.Cell{Val: column.DoubleValue(v)}
			if k == column.Float {
				out[i] = tabletest.Cell{Val: column.FloatValue(float32(v))}
			}
		case string:
			out[i] = tabletest.Cell{Val: column.StringValue(v)}
		}
	}
	return out
}

func rows(s *column.Schema, values ...any) []tabletest.Row {
	var out []tabletest.Row
	for i := 0; i < len(values); i += len(s.Fields) {
		out = append(out, row(s, values[i:i+len(s.Fields)]...))
	}
	return out
}

func (f *fixture) path(ext string) string {
	f.files++
	return filepath.Join(f.dir, fmt.Sprintf("f%03d.%s", f.files, ext))
}

func (f *fixture) write(s *column.Schema, rows []tabletest.Row) string {
	f.Helper()
	path := f.path("parquet")
	require.NoError(f, tabletest.WriteParquet(path, s, rows, f.layout))
	return path
}

func size(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		return 1
	}
	return info.Size()
}

// data lists a data file and returns its ordinal.
func (f *fixture) data(sequence int64, path string, records int) int {
	d := &f.s.Files
	d.Path, d.Stated = append(d.Path, path), append(d.Stated, path)
	d.Format, d.Size, d.Records = append(d.Format, facts.Parquet), append(d.Size, size(f, path)), append(d.Records, int64(records))
	d.SpecID, d.Sequence, d.Encrypted = append(d.SpecID, 0), append(d.Sequence, sequence), append(d.Encrypted, false)
	f.renew()
	return d.Len() - 1
}

// rowsOf writes and lists a data file.
func (f *fixture) rowsOf(sequence int64, s *column.Schema, values ...any) int {
	f.Helper()
	all := rows(s, values...)
	return f.data(sequence, f.write(s, all), len(all))
}

// deletes lists a delete file and returns its ordinal.
func (f *fixture) deletes(kind facts.DeleteKind, sequence int64, path string) int {
	d := &f.s.Deletes
	d.Kind, d.Path, d.Stated = append(d.Kind, kind), append(d.Path, path), append(d.Stated, path)
	d.Format, d.Size, d.Records = append(d.Format, facts.Parquet), append(d.Size, size(f, path)), append(d.Records, facts.Unknown)
	d.SpecID, d.Partition, d.Sequence = append(d.SpecID, 0), append(d.Partition, nil), append(d.Sequence, sequence)
	d.FieldIDs, d.Encrypted, d.Referenced = append(d.FieldIDs, nil), append(d.Encrypted, false), append(d.Referenced, "")
	d.Offset, d.Length = append(d.Offset, facts.Unknown), append(d.Length, facts.Unknown)
	f.renew()
	return d.Len() - 1
}

// renew makes the facts a new snapshot, as facts never change.
func (f *fixture) renew() {
	s := *f.s
	f.s = &s
}

var positionFile = &column.Schema{Fields: []column.Field{positionColumns[0][0], positionColumns[1][0]}}

// positions lists a position delete file of (path, position) pairs.
func (f *fixture) positions(sequence int64, pairs ...any) int {
	f.Helper()
	return f.deletes(facts.PositionDeletes, sequence, f.write(positionFile, rows(positionFile, pairs...)))
}

// keys lists an equality delete file.
func (f *fixture) keys(sequence int64, s *column.Schema, values ...any) int {
	f.Helper()
	i := f.deletes(facts.EqualityDeletes, sequence, f.write(s, rows(s, values...)))
	for _, field := range s.Fields {
		f.s.Deletes.FieldIDs[i] = append(f.s.Deletes.FieldIDs[i], field.ID)
	}
	return i
}

// vector lists a deletion vector of a data file in a Puffin file of its own.
func (f *fixture) vector(sequence int64, file int, blobType string, blob []byte) int {
	f.Helper()
	var buf bytes.Buffer
	w := puffin.NewWriter(&buf)
	at, err := w.Append(puffin.Blob{Type: blobType, SnapshotID: -1, SequenceNumber: -1}, blob)
	require.NoError(f, err)
	_, err = w.Finish(nil)
	require.NoError(f, err)
	path := f.path("puffin")
	require.NoError(f, os.WriteFile(path, buf.Bytes(), 0o600))
	i := f.deletes(facts.DeletionVector, sequence, path)
	d := &f.s.Deletes
	d.Format[i], d.Referenced[i], d.Offset[i], d.Length[i] = facts.Puffin, f.s.Files.Stated[file], at.Offset, at.Length
	return i
}

func set(positions ...int) map[int]bool {
	out := map[int]bool{}
	for _, p := range positions {
		out[p] = true
	}
	return out
}

// masks asks for all data files.
func (f *fixture) masks(o Options) ([]*Mask, Report, error) {
	files := make([]File, f.s.Files.Len())
	for i := range files {
		files[i].Ordinal = i
	}
	return f.masker.Masks(context.Background(), f.s, files, o)
}

// gone requires the deleted positions of every data file, with and without the cache and statistics.
func (f *fixture) gone(want ...[]uint32) {
	f.Helper()
	for _, o := range []Options{{}, {}, {KeepAll: true}} {
		masks, _, err := f.masks(o)
		require.NoError(f, err)
		for i, m := range masks {
			require.Equal(f, want[i], m.Set(uint32(f.s.Files.Records[i])).Rows(nil), "file %d, %+v", i, o)
		}
	}
}

// cost is what asking for all masks costs.
func (f *fixture) cost() (store.Usage, Report) {
	f.Helper()
	var c store.Counter
	files := make([]File, f.s.Files.Len())
	for i := range files {
		files[i].Ordinal = i
	}
	_, report, err := f.masker.Masks(store.WithCounter(context.Background(), &c), f.s, files, Options{})
	require.NoError(f, err)
	return c.Usage(), report
}
