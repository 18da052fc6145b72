package parquetio_test

import (
	"context"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/realdata"
)

func field(id int, name string, k column.Kind) column.Field {
	return column.Field{ID: id, Name: name, Type: column.Of(k)}
}

func structure(id int, name string, fields ...column.Field) column.Field {
	return column.Field{ID: id, Name: name, Type: column.Type{Kind: column.Struct, Fields: fields}}
}

// bindAll reads all rows of the given paths.
func bindAll(t *testing.T, o object, names []facts.MappedField, paths ...column.Path) ([][]any, *parquetio.Binding) {
	t.Helper()
	f, err := o.open("file")
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.Bind(paths, names)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]any
	err = b.Decode(context.Background(), o.fetch(t, b.Spans(nil)), nil, 0, func(batch *column.Batch) error {
		out = append(out, rowsOf(batch)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, b
}

func countNulls(rows [][]any, col int) (n int) {
	for _, r := range rows {
		if r[col+1] == nil {
			n++
		}
	}
	return n
}

// TestNameMappingVariants binds a file without ids under every variant of its table's mapping. The name of a column counts only
// where the mapping gives it to the wanted id.
func TestNameMappingVariants(t *testing.T) {
	paths := realdata.Glob(t, "duckdb-iceberg/name_mapping/warehouse_1/mydb/t1/*/*.parquet")
	data, err := os.ReadFile(paths[len(paths)-1])
	if err != nil {
		t.Fatal(err)
	}
	f, err := object(data).open("t1")
	if err != nil {
		t.Fatal(err)
	}
	rows := int(f.Rows())
	a, b, b3 := field(1, "a", column.Int), field(2, "b", column.Long), field(3, "b", column.Long)
	m := func(id int, names ...string) facts.MappedField { return facts.MappedField{ID: id, Names: names} }
	for name, c := range map[string]struct {
		names  []facts.MappedField
		second column.Field
		nulls  [2]int
		how    parquetio.How
	}{
		"v3":   {[]facts.MappedField{m(1, "a"), m(2, "b")}, b, [2]int{0, 0}, parquetio.ByMapping},
		"v3.1": {[]facts.MappedField{m(1, "a")}, b, [2]int{0, rows}, parquetio.Absent},
		"v3.2": {[]facts.MappedField{}, b, [2]int{rows, rows}, parquetio.Absent},
		"v5":   {[]facts.MappedField{m(1, "a"), m(2), m(3, "b")}, b3, [2]int{0, 0}, parquetio.ByMapping},
		"v7":   {[]facts.MappedField{m(1, "a"), m(3, "b")}, b, [2]int{0, rows}, parquetio.Absent},
		"none": {nil, b, [2]int{0, 0}, parquetio.ByPosition},
	} {
		got, binding := bindAll(t, data, c.names, column.Path{a}, column.Path{c.second})
		if n := [2]int{countNulls(got, 0), countNulls(got, 1)}; n != c.nulls {
			t.Errorf("%s: %v nulls, want %v", name, n, c.nulls)
		}
		if how := binding.Resolution(1).How; how != c.how {
			t.Errorf("%s: resolved by %s, want %s", name, how, c.how)
		}
	}
}

// TestO16DroppedAndAddedColumn: a column is its id. A name that fits an id that does not is another column.
func TestO16DroppedAndAddedColumn(t *testing.T) {
	f := newRawFile(t, 2)
	e := requiredLong("value")
	e.FieldID = 2
	f.column(e, []rawPage{longPage(1, 2)}, nil)
	o := f.finish()
	got, b := bindAll(t, o, []facts.MappedField{{ID: 3, Names: []string{"value"}}}, column.Path{field(3, "value", column.Long)}, column.Path{field(2, "renamed", column.Long)})
	want := [][]any{{uint32(0), nil, int64(1)}, {uint32(1), nil, int64(2)}}
	if !reflect.DeepEqual(got, want) || b.Resolution(0).How != parquetio.Absent || b.Resolution(1).How != parquetio.ByID {
		t.Errorf("got %v", got)
	}
	if s := b.Statistics(0).Groups[0]; !s.AllNull() {
		t.Errorf("statistics of an absent column: %+v", s)
	}
}

// TestO17InitialDefault: a file older than a column has the column's initial default in every row, and says so.
func TestO17InitialDefault(t *testing.T) {
	f := newRawFile(t, 3)
	f.column(requiredLong("id"), []rawPage{longPage(1, 2, 3)}, nil)
	c := field(9, "c", column.String)
	us := column.StringValue("US")
	c.Initial = &us
	got, b := bindAll(t, f.finish(), nil, column.Path{c})
	if len(got) != 3 || got[2][1] != "US" {
		t.Errorf("got %v", got)
	}
	if s := b.Statistics(0).Groups[0]; s.Min == nil || s.Max == nil || s.Min.S != "US" || s.Max.S != "US" || s.Nulls != 0 {
		t.Errorf("%+v", s)
	}
	if spans := b.Spans(nil); len(spans) != 0 {
		t.Errorf("a default needs bytes: %v", spans)
	}
}

// TestMissingStructChild: a child that the file lacks has its default where the struct is there, and null where it is not.
func TestMissingStructChild(t *testing.T) {
	data, f, _ := openReal(t, "hyparquet/nullable.impala.parquet")
	s, _ := f.Schema().ByName("nested_struct")
	if s == nil {
		t.Fatal("no such column")
	}
	seven := column.IntValue(column.Int, 7)
	child := field(999, "new", column.Int)
	child.Initial = &seven
	parent := s.Leaf()
	parent.Type.Fields = append(append([]column.Field(nil), parent.Type.Fields...), child)
	got, _ := bindAll(t, data, nil, s, column.Path{parent, child}, column.Path{parent})
	nulls := 0
	for _, r := range got {
		if (r[1] == nil) != (r[2] == nil) || (r[1] == nil) != (r[3] == nil) {
			t.Errorf("struct %v, child %v, whole %v", r[1], r[2], r[3])
		}
		if r[1] == nil {
			nulls++
			continue
		}
		whole := r[3].([]any)
		if r[2] != int64(7) || whole[len(whole)-1] != int64(7) {
			t.Errorf("child %v, within the struct %v", r[2], whole)
		}
	}
	if nulls == 0 || nulls == len(got) {
		t.Errorf("%d of %d structs are null", nulls, len(got))
	}
}

// TestNestedLeaf: a primitive below optional structs is null wherever any of them is.
func TestNestedLeaf(t *testing.T) {
	data, f, _ := openReal(t, "hyparquet/nullable.impala.parquet")
	s, _ := f.Schema().ByName("nested_struct")
	leaf, _ := f.Schema().ByName("nested_struct.A")
	if leaf == nil {
		t.Fatal("no such leaf")
	}
	got, _ := bindAll(t, data, nil, leaf, s)
	for _, r := range got {
		var want any
		if whole, ok := r[2].([]any); ok {
			want = whole[0]
		}
		if r[1] != want {
			t.Errorf("leaf %v, struct %v", r[1], r[2])
		}
	}
}

func TestBindErrors(t *testing.T) {
	f := newRawFile(t, 1)
	f.column(requiredLong("x"), []rawPage{longPage(1)}, nil)
	file, err := f.finish().open("s3://b/file.parquet")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []column.Kind{column.Int, column.String, column.Bool, column.Double, column.Date, column.Timestamp, column.UUID} {
		_, err := file.Bind([]column.Path{{field(1, "x", k)}}, nil)
		if !fault.Is(err, fault.Unsupported) {
			t.Errorf("%s: %v", k, err)
			continue
		}
		for _, part := range []string{"s3://b/file.parquet", "column x", "INT64", k.String()} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v: does not name %s", err, part)
			}
		}
	}
	list := column.Field{ID: 1, Name: "l", Type: column.Type{Kind: column.List, Fields: []column.Field{field(2, "element", column.Int)}}}
	if _, err := file.Bind([]column.Path{{list, list.Type.Fields[0]}}, nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("a path through a list: %v", err)
	}
	if _, err := file.Bind([]column.Path{{structure(1, "x", field(2, "y", column.Int)), field(2, "y", column.Int)}}, nil); !fault.Is(err, fault.Unsupported) {
		t.Errorf("a struct over a leaf: %v", err)
	}
}

// TestEncrypted: files and columns under encryption are refused by name.
func TestEncrypted(t *testing.T) {
	refused := 0
	for _, path := range append(realdata.Glob(t, "parquet-testing/data/*encrypt*"), realdata.Glob(t, "duckdb/encryption/*")...) {
		data, err := os.ReadFile(path)
		if err != nil || !strings.HasSuffix(strings.TrimSuffix(path, ".encrypted"), ".parquet") {
			continue
		}
		f, err := object(data).open(path)
		if err == nil {
			_, err = f.Bind(allPaths(f), nil)
		}
		if fault.Is(err, fault.Unsupported) && strings.Contains(err.Error(), "encrypted") {
			refused++
		} else if err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if refused < 5 {
		t.Errorf("only %d files were refused", refused)
	}
}
