package lake

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/store/mem"
)

func field(id int, name string, k column.Kind) column.Field {
	return column.Field{ID: id, Name: name, Type: column.Of(k)}
}

func schemaOf(id int, fields ...column.Field) *column.Schema {
	return &column.Schema{ID: id, Fields: fields}
}

func identity(id, source int, name string) *facts.Spec {
	return &facts.Spec{Fields: []facts.PartitionField{{ID: id, SourceID: source, Name: name, Transform: "identity"}}}
}

// made is a table in memory or in a folder.
type made struct {
	*lakewrite.Table
	resolve Resolver
}

func create(t testing.TB, spec lakewrite.Spec) made {
	t.Helper()
	s := mem.New()
	w, err := lakewrite.Create(context.Background(), s, "warehouse/table", spec)
	require.NoError(t, err)
	return made{w, func(location string) (store.Store, string, error) { return s, location, nil }}
}

func createLocal(t testing.TB, spec lakewrite.Spec) made {
	t.Helper()
	w, err := lakewrite.Create(context.Background(), local.New(), t.TempDir(), spec)
	require.NoError(t, err)
	return made{w, nil}
}

func (w made) open(t testing.TB) *Table {
	t.Helper()
	table, err := New(Options{Resolve: w.resolve}).Open(context.Background(), w.Location())
	require.NoError(t, err)
	return table
}

func appendFiles(t testing.TB, w made, files ...lakewrite.File) int64 {
	t.Helper()
	id, err := w.Append(context.Background(), files...)
	require.NoError(t, err)
	return id
}

func data(w made, name string, partition ...facts.PartitionValue) lakewrite.File {
	return lakewrite.File{Path: w.Location() + "/data/" + name, Records: 1, Size: 100, Partition: partition}
}

func current(t testing.TB, w made) *facts.Snapshot { return at(t, w, Current()) }

func at(t testing.TB, w made, sel Selector) *facts.Snapshot {
	t.Helper()
	return snapshotOf(t, w.open(t), sel)
}

func text(s string) facts.PartitionValue { return facts.PartitionValue{Value: column.StringValue(s)} }

// TestO16FieldIDs: metrics follow field ids; a column dropped and added again under its name has none, a renamed one keeps its.
func TestO16FieldIDs(t *testing.T) {
	ctx := context.Background()
	w := create(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "id", column.Int), field(2, "value", column.String))})
	f := data(w, "old.parquet")
	f.Metrics = map[int]lakewrite.Metric{2: {Lower: []byte("old"), Upper: []byte("old"), Nulls: lakewrite.N(0)}}
	appendFiles(t, w, f)
	require.NoError(t, w.SetSchema(ctx, schemaOf(1, field(1, "id", column.Int))))
	require.NoError(t, w.SetSchema(ctx, schemaOf(2, field(1, "id", column.Int), field(3, "value", column.String))))

	s := current(t, w)
	path, _ := s.Schema.ByName("value")
	require.Equal(t, 3, path.Leaf().ID)
	require.Nil(t, s.Files.Columns[3], "the new column has no metrics in the old file")
	require.Equal(t, []byte("old"), s.Files.Columns[2].Lower[0])

	require.NoError(t, w.SetSchema(ctx, schemaOf(3, field(1, "id", column.Int), field(2, "new_name", column.String))))
	s = current(t, w)
	path, _ = s.Schema.ByName("new_name")
	require.Equal(t, []byte("old"), s.Files.Columns[path.Leaf().ID].Lower[0])
}

// TestO17InitialDefault: an added column carries its initial default; the file from before states nothing about it.
func TestO17InitialDefault(t *testing.T) {
	ctx := context.Background()
	w := create(t, lakewrite.Spec{FormatVersion: 3, Schema: schemaOf(0, field(1, "id", column.Int), field(2, "name", column.String))})
	appendFiles(t, w, data(w, "1.parquet"))
	us := column.StringValue("US")
	c := field(3, "c", column.String)
	c.Initial = &us
	require.NoError(t, w.SetSchema(ctx, schemaOf(1, field(1, "id", column.Int), field(2, "name", column.String), c)))
	f := data(w, "2.parquet")
	f.Metrics = map[int]lakewrite.Metric{3: {Lower: []byte("US"), Upper: []byte("US"), Nulls: lakewrite.N(0), Values: lakewrite.N(1)}}
	appendFiles(t, w, f)

	s := current(t, w)
	require.Equal(t, &us, s.Schema.ByID(3).Leaf().Initial)
	require.Equal(t, []string{w.Location() + "/data/2.parquet", w.Location() + "/data/1.parquet"}, s.Files.Path)
	require.Equal(t, []int64{0, facts.Unknown}, s.Files.Columns[3].Nulls, "not stated is unknown, not all null")
	require.Nil(t, s.Files.Columns[3].Lower[1])
}

// TestO19HourPartitions: hours before 1970 are negative; the value comes as the manifest writes it.
func TestO19HourPartitions(t *testing.T) {
	w := create(t, lakewrite.Spec{
		Schema:    schemaOf(0, field(1, "ts", column.TimestampTZ)),
		Partition: &facts.Spec{Fields: []facts.PartitionField{{ID: 1000, SourceID: 1, Name: "ts_hour", Transform: "hour"}}},
	})
	hour := func(h int64) facts.PartitionValue {
		return facts.PartitionValue{Value: column.IntValue(column.Int, h)}
	}
	appendFiles(t, w, data(w, "a.parquet", hour(-1)), data(w, "b.parquet", hour(0)))
	p := current(t, w).Files.Partition[1000]
	require.Equal(t, column.Of(column.Int), p.Type)
	require.Equal(t, []column.Value{column.IntValue(column.Int, -1), column.IntValue(column.Int, 0)}, p.Value)
}

// TestO20PartitionFromManifest: the path is not where partition values come from.
func TestO20PartitionFromManifest(t *testing.T) {
	w := create(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "s", column.String)), Partition: identity(1000, 1, "s")})
	appendFiles(t, w, data(w, "s=11%2F12%2F13/f.parquet", text("11/12/13")))
	s := current(t, w)
	require.Equal(t, column.StringValue("11/12/13"), s.Files.Partition[1000].Value[0])
	require.Equal(t, w.Location()+"/data/s=11%2F12%2F13/f.parquet", s.Files.Path[0])
}

// TestO27Sequences: data and delete files of one commit have one sequence number, a later commit a greater one.
func TestO27Sequences(t *testing.T) {
	w := create(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "id", column.Int))})
	del := func(name string) lakewrite.File {
		f := data(w, name)
		f.Content, f.EqualityID = lakewrite.EqualityDeletes, []int{1}
		return f
	}
	appendFiles(t, w, data(w, "d.parquet"), del("same.parquet"))
	appendFiles(t, w, del("later.parquet"))
	s := current(t, w)
	require.Equal(t, []int64{1}, s.Files.Sequence)
	require.Equal(t, []string{w.Location() + "/data/later.parquet", w.Location() + "/data/same.parquet"}, s.Deletes.Path)
	require.Equal(t, []int64{2, 1}, s.Deletes.Sequence)
	require.Equal(t, []facts.DeleteKind{facts.EqualityDeletes, facts.EqualityDeletes}, s.Deletes.Kind)
}

// TestO28DeleteSpec: a delete file keeps the spec it was written under: unpartitioned though the table is not, and the
// table's own with an empty value, are two different facts.
func TestO28DeleteSpec(t *testing.T) {
	ctx := context.Background()
	w := create(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "id", column.Int), field(2, "d", column.Date)), Partition: identity(1000, 2, "d")})
	require.NoError(t, w.SetSpec(ctx, &facts.Spec{ID: 1}))
	require.NoError(t, w.SetSpec(ctx, &facts.Spec{ID: 2, Fields: w.Specs[0].Fields}))
	unpartitioned, own := 1, 0
	global := data(w, "global.parquet")
	global.Content, global.EqualityID, global.Spec = lakewrite.EqualityDeletes, []int{1}, &unpartitioned
	scoped := data(w, "scoped.parquet", facts.PartitionValue{Null: true})
	scoped.Content, scoped.EqualityID, scoped.Spec = lakewrite.EqualityDeletes, []int{1}, &own
	appendFiles(t, w, global, scoped)
	d := current(t, w).Deletes
	require.Equal(t, []int32{1, 0}, d.SpecID)
	require.Empty(t, d.Partition[0])
	require.Equal(t, []facts.PartitionValue{{Null: true}}, d.Partition[1])
}

// TestO50VerbatimPaths: folders and files of odd names are opened as they are written, through the table's own location too.
func TestO50VerbatimPaths(t *testing.T) {
	ctx := context.Background()
	for _, odd := range []string{"dir%20x", "a b", "a+b", "a#b", "a=b", "é", "100%", "q?x=1"} {
		for _, prefix := range []string{"", "file:", "file://", "file://localhost"} {
			dir := filepath.Join(t.TempDir(), odd)
			table, err := lakewrite.Create(ctx, local.New(), dir, lakewrite.Spec{Schema: schemaOf(0, field(1, "id", column.Int))})
			require.NoError(t, err)
			w := made{table, nil}
			f := data(w, odd+".parquet")
			f.Path = prefix + f.Path
			require.NoError(t, os.MkdirAll(dir+"/data", 0o755))
			require.NoError(t, os.WriteFile(dir+"/data/"+odd+".parquet", []byte("x"), 0o600))
			appendFiles(t, w, f)
			opened, err := New(Options{}).Open(ctx, prefix+dir)
			require.NoError(t, err)
			s := snapshotOf(t, opened, Current())
			require.Equal(t, f.Path, s.Files.Path[0])
			st, key, err := LocalFiles()(s.Files.Path[0])
			require.NoError(t, err)
			require.NoError(t, st.Stat(ctx, []string{key})[0].Err)
			st, _, err = LocalFiles()(opened.MetadataPath())
			require.NoError(t, err)
			require.NoError(t, st.Fetch(ctx, []store.Read{{Key: f.Path}})[0].Err, "by the path that the table states")
			described := st.Stat(ctx, []string{f.Path})[0]
			require.NoError(t, described.Err)
			listed, err := st.List(ctx, strings.TrimSuffix(f.Path, odd+".parquet"), "", 10)
			require.NoError(t, err)
			require.Equal(t, []store.Info{described}, listed)
			require.Equal(t, f.Path, described.Key)
			listed, err = st.List(ctx, strings.TrimSuffix(f.Path, odd+".parquet"), f.Path, 10)
			require.NoError(t, err)
			require.Empty(t, listed)
		}
	}
}

// TestTwiceListed: a file that a snapshot lists twice counts twice.
func TestTwiceListed(t *testing.T) {
	w := create(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "id", column.Int))})
	appendFiles(t, w, data(w, "a.parquet"))
	appendFiles(t, w, data(w, "a.parquet"))
	require.Equal(t, 2, current(t, w).Files.Len())
}

// TestLiveEntries: removed files are gone from later snapshots, stay in earlier ones, and survivors keep their numbers.
func TestLiveEntries(t *testing.T) {
	for version := 1; version <= 3; version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			ctx := context.Background()
			w := create(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "id", column.Int)), FormatVersion: version})
			first := appendFiles(t, w, data(w, "a"), data(w, "b"), data(w, "c"))
			second, err := w.Replace(ctx, []string{w.Location() + "/data/b"}, data(w, "d"))
			require.NoError(t, err)
			names := func(s *facts.Snapshot) (out []string) {
				for _, p := range s.Files.Path {
					out = append(out, filepath.Base(p))
				}
				return out
			}
			before, after := at(t, w, Selector{ID: first}), at(t, w, Selector{ID: second})
			require.Equal(t, []string{"a", "b", "c"}, names(before))
			require.Equal(t, []string{"d", "a", "c"}, names(after))
			require.Equal(t, []int64{second, first, first}, after.Files.Snapshot)
			switch version {
			case 1:
				require.Equal(t, []int64{0, 0, 0}, after.Files.Sequence)
			default:
				require.Equal(t, []int64{2, 1, 1}, after.Files.Sequence)
			}
			if version == 3 {
				require.Equal(t, []int64{0, 1, 2}, before.Files.FirstRowID)
				require.Equal(t, []int64{3, 0, 2}, after.Files.FirstRowID)
			} else {
				require.Equal(t, []int64{facts.Unknown, facts.Unknown, facts.Unknown}, after.Files.FirstRowID)
			}
		})
	}
}

// TestUpgrade: what v1 wrote has sequence number 0 and no row ids until the v3 commit assigns them.
func TestUpgrade(t *testing.T) {
	ctx := context.Background()
	w := create(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "id", column.Int)), FormatVersion: 1})
	appendFiles(t, w, data(w, "v1"))
	require.NoError(t, w.Upgrade(ctx, 2))
	appendFiles(t, w, data(w, "v2"))
	s := current(t, w)
	require.Equal(t, []int64{1, 0}, s.Files.Sequence)
	require.NoError(t, w.Upgrade(ctx, 3))
	require.Equal(t, []int64{facts.Unknown, facts.Unknown}, current(t, w).Files.FirstRowID)
	appendFiles(t, w, data(w, "v3"))
	s = current(t, w)
	require.Equal(t, []int64{2, 1, 0}, s.Files.Sequence)
	require.ElementsMatch(t, []int64{0, 1, 2}, s.Files.FirstRowID)
}

// TestPartitionEvolution: a file whose spec lacks a field does not know it.
func TestPartitionEvolution(t *testing.T) {
	ctx := context.Background()
	w := create(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "a", column.Int), field(2, "b", column.String)), Partition: identity(1000, 1, "a")})
	one := facts.PartitionValue{Value: column.IntValue(column.Int, 1)}
	appendFiles(t, w, data(w, "old", one))
	require.NoError(t, w.SetSpec(ctx, &facts.Spec{ID: 1, Fields: []facts.PartitionField{
		{ID: 1000, SourceID: 1, Name: "a", Transform: "void"}, {ID: 1001, SourceID: 2, Name: "b_trunc", Transform: "truncate[2]"},
	}}))
	appendFiles(t, w, data(w, "new", facts.PartitionValue{Null: true}, text("xy")))
	p := current(t, w).Files.Partition
	require.Equal(t, []bool{true, true}, p[1000].Known)
	require.Equal(t, []bool{true, false}, p[1000].Null)
	require.Equal(t, []bool{true, false}, p[1001].Known)
	require.Equal(t, column.StringValue("xy"), p[1001].Value[0])
}

// TestPromotedPartition: values that were written as int read as long after the promotion.
func TestPromotedPartition(t *testing.T) {
	ctx := context.Background()
	w := create(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "a", column.Int)), Partition: identity(1000, 1, "a")})
	appendFiles(t, w, data(w, "old", facts.PartitionValue{Value: column.IntValue(column.Int, 7)}))
	require.NoError(t, w.SetSchema(ctx, schemaOf(1, field(1, "a", column.Long))))
	appendFiles(t, w, data(w, "new", facts.PartitionValue{Value: column.IntValue(column.Long, 1<<40)}))
	p := current(t, w).Files.Partition[1000]
	require.Equal(t, column.Of(column.Long), p.Type)
	require.Equal(t, []column.Value{column.IntValue(column.Long, 1<<40), column.IntValue(column.Long, 7)}, p.Value)
}

// TestEmbeddedManifests: a v1 table may name manifests in its metadata, without spec ids, across specs.
func TestEmbeddedManifests(t *testing.T) {
	ctx := context.Background()
	w := create(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "a", column.Int)), FormatVersion: 1, Embed: true, UUID: "-"})
	appendFiles(t, w, data(w, "plain"))
	require.NoError(t, w.SetSpec(ctx, &facts.Spec{ID: 1, Fields: identity(1000, 1, "a").Fields}))
	appendFiles(t, w, data(w, "parted", facts.PartitionValue{Value: column.IntValue(column.Int, 5)}))
	s := current(t, w)
	require.Equal(t, "", s.TableUUID)
	require.Equal(t, []int32{1, 0}, s.Files.SpecID)
	require.Equal(t, []bool{true, false}, s.Files.Partition[1000].Known)
}

// TestUnknownDeleteScope: which partition a delete file is for is never guessed; a data file whose value is unknown is kept.
func TestUnknownDeleteScope(t *testing.T) {
	ctx := context.Background()
	w := create(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "a", column.Int)), Partition: identity(1000, 1, "a")})
	one := facts.PartitionValue{Value: column.IntValue(column.Int, 1)}
	appendFiles(t, w, data(w, "d", one))
	require.NoError(t, w.SetSchema(ctx, schemaOf(1, field(1, "a", column.String)))) // no promotion at all
	require.Equal(t, []bool{false}, current(t, w).Files.Partition[1000].Known)

	w = create(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "a", column.Int)), Partition: identity(1000, 1, "a")})
	del := data(w, "x", one)
	del.Content, del.EqualityID = lakewrite.EqualityDeletes, []int{1}
	appendFiles(t, w, del)
	require.NoError(t, w.SetSchema(ctx, schemaOf(1, field(1, "a", column.String))))
	_, err := w.open(t).Snapshot(ctx, Current())
	require.Equal(t, fault.Corrupt, fault.ClassOf(err))
	require.ErrorContains(t, err, "data/x has no value of type string")
}

// TestReferencedByBounds: position deletes of one data file name it by equal bounds of their paths; others name none.
func TestReferencedByBounds(t *testing.T) {
	w := create(t, lakewrite.Spec{Schema: schemaOf(0, field(1, "a", column.Int))})
	deletes := func(name, lower, upper string) lakewrite.File {
		f := data(w, name)
		f.Content = lakewrite.PositionDeletes
		f.Metrics = map[int]lakewrite.Metric{filePathID: {Lower: []byte(lower), Upper: []byte(upper)}}
		return f
	}
	equality := deletes("eq", "p", "p")
	equality.Content, equality.EqualityID = lakewrite.EqualityDeletes, []int{1}
	named := deletes("named", "p", "q")
	named.Referenced = "r"
	appendFiles(t, w, deletes("one", "p", "p"), deletes("two", "p", "q"), equality, named, deletes("none", "", ""))
	require.Equal(t, []string{"p", "", "", "r", ""}, current(t, w).Deletes.Referenced)
}
