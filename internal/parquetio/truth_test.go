package parquetio_test

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/realdata"
	"github.com/skomerdb/skomer/internal/rowset"
)

// TestStatisticsHold reads every real file that can be read and holds all its believed bounds and counts against the values.
func TestStatisticsHold(t *testing.T) {
	root := realdata.Root(t)
	groups, pages := 0, 0
	for _, l := range inventory(t) {
		data, err := os.ReadFile(filepath.Join(root, l.path))
		if err != nil {
			t.Fatal(err)
		}
		o := object(data)
		f, err := o.open(l.path)
		if err != nil {
			continue
		}
		for _, path := range allPaths(f) {
			if path.Leaf().Type.Kind.Nested() {
				continue
			}
			b, err := f.Bind([]column.Path{path}, nil)
			if err != nil {
				continue
			}
			if err := b.LoadPageIndex(nil, o.fetch(t, b.PageIndexSpans(nil))); err != nil {
				t.Fatal(err)
			}
			tab := table{note: l.path + " " + path.Name()}
			var values []any
			err = o.scan(t, f, []column.Path{path}, nil, false, func(batch *column.Batch) error {
				for _, row := range rowsOf(batch) {
					values = append(values, row[1])
				}
				return nil
			})
			if err != nil {
				continue
			}
			s := b.Statistics(0)
			for g := range s.Groups {
				if s.Groups[g].Min != nil {
					groups++
				}
				pages += len(s.Pages[g])
				for _, x := range append(s.Pages[g], s.Groups[g]) {
					checkBounds(t, tab, path.Leaf().Type, values, x)
				}
			}
		}
	}
	if groups < 1000 || pages < 1000 {
		t.Errorf("only %d bounded row groups and %d pages were checked", groups, pages)
	}
}

// openReal opens a real file and binds its columns with their page indexes.
func openReal(t *testing.T, path string) (object, *parquetio.File, *parquetio.Binding) {
	t.Helper()
	data, err := os.ReadFile(realdata.Path(t, path))
	if err != nil {
		t.Fatal(err)
	}
	f, err := object(data).open(path)
	if err != nil {
		t.Fatal(err)
	}
	return data, f, bound1(t, data)
}

// TestFloatingOrders holds the file of both float orders and NaN counts against its description: row groups without, with some
// and with only NaNs, then with a zero as minimum and as maximum.
func TestFloatingOrders(t *testing.T) {
	_, f, b := openReal(t, "parquet-testing/data/floating_orders_nan_count.parquet")
	if f.Rows() != 50 || len(f.RowGroups()) != 5 {
		t.Fatalf("%d rows in %v", f.Rows(), f.RowGroups())
	}
	for i := range b.Len() {
		s := b.Statistics(i)
		where := b.Resolution(i).Leaf
		if g := s.Groups[2]; g.Min != nil || g.Max != nil {
			t.Errorf("%s: bounds of NaNs only: %v %v", where, g.Min, g.Max)
		}
		if g := s.Groups[3]; g.Min != nil && !math.Signbit(g.Min.Float64()) {
			t.Errorf("%s: zero minimum %v", where, g.Min)
		}
		if g := s.Groups[4]; g.Max != nil && math.Signbit(g.Max.Float64()) {
			t.Errorf("%s: zero maximum %v", where, g.Max)
		}
		if strings.Contains(where, "ieee") && s.Groups[2].NaNs != 10 && f.Schema().Fields[i].Type.Kind.Floating() {
			t.Errorf("%s: %d NaNs, stated are 10", where, s.Groups[2].NaNs)
		}
	}
}

func TestInt32WithNullPages(t *testing.T) {
	_, _, b := openReal(t, "parquet-testing/data/int32_with_null_pages.parquet")
	s := b.Statistics(0)
	pages := s.Pages[0]
	if len(pages) != 10 || !pages[2].AllNull() || pages[2].Rows != (rowset.Range{Start: 200, End: 300}) {
		t.Fatalf("pages %+v", pages)
	}
	nulls := int64(0)
	for _, p := range pages {
		nulls += p.Nulls
	}
	if nulls != 275 || pages[6].Min.Int64() != -2136906554 || pages[7].Max.Int64() != 2145722375 {
		t.Errorf("%d nulls, min %v, max %v", nulls, pages[6].Min, pages[7].Max)
	}
}

func TestINT96FromSpark(t *testing.T) {
	data, f, _ := openReal(t, "parquet-testing/data/int96_from_spark.parquet")
	var got []any
	if err := data.scan(t, f, allPaths(f), nil, false, func(b *column.Batch) error {
		for _, r := range rowsOf(b) {
			got = append(got, r[1])
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := []any{int64(1704141296123456), int64(1704070800000000), int64(253402225200000000), int64(1735599600000000), nil, int64(9089380393200000000)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTruncatedBounds(t *testing.T) {
	_, f, b := openReal(t, "parquet-testing/data/binary_truncated_min_max.parquet")
	if f.Rows() != 12 {
		t.Fatalf("%d rows", f.Rows())
	}
	exact, cut := 0, 0
	for i := range b.Len() {
		g := b.Statistics(i).Groups[0]
		if g.Max == nil {
			continue
		}
		if g.MaxExact {
			exact++
		} else {
			cut++
		}
		if g.Max.S == "Kf" && g.MaxExact {
			t.Error("a truncated maximum is taken for exact")
		}
	}
	if exact == 0 || cut == 0 {
		t.Errorf("%d exact and %d cut maxima", exact, cut)
	}
}

// TestManyPages: more pages in a row group than an int16 counts, and pages without rows.
func TestManyPages(t *testing.T) {
	for path, rows := range map[string]int64{
		"parquet-testing/data/overflow_i16_page_cnt.parquet": 40000, "impala/parquet/alltypes_empty_pages.parquet": 500,
		"impala/parquet/alltypes_invalid_pages.parquet": 500, "impala/parquet/customer_multiblock_page_index.parquet": 2000,
		"duckdb/incorrect_index_page_offsets.parquet": 10,
	} {
		data, f, _ := openReal(t, path)
		if f.Rows() != rows {
			t.Fatalf("%s: %d rows", path, f.Rows())
		}
		all := map[uint32]string{}
		for _, step := range []uint32{1, 7} {
			set := rowset.All(uint32(rows))
			if step > 1 {
				var picked []uint32
				for r := uint32(3); r < uint32(rows); r += step {
					picked = append(picked, r)
				}
				set = rowset.FromRows(uint32(rows), picked)
			}
			n := 0
			err := data.scan(t, f, allPaths(f), set, step > 1, func(b *column.Batch) error {
				for _, r := range rowsOf(b) {
					n++
					at := r[0].(uint32)
					if was, seen := all[at]; seen && was != text(r) {
						t.Fatalf("%s: row %d is %s through the page index, %s without", path, at, text(r), was)
					}
					all[at] = text(r)
				}
				return nil
			})
			if err != nil || int64(n) != set.Count() {
				t.Errorf("%s: %d rows of %d, %v", path, n, set.Count(), err)
			}
		}
	}
}
