package parquetio_test

import (
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/realdata"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
)

// object is a file in memory that counts what was asked of it.
type object []byte

func (o object) fetch(t testing.TB, spans []store.Span) [][]byte {
	t.Helper()
	var out [][]byte
	for _, s := range spans {
		if s.Off < 0 || s.Len < 0 || s.End() > int64(len(o)) {
			t.Fatalf("span %+v outside a file of %d bytes", s, len(o))
		}
		out = append(out, append([]byte(nil), o[s.Off:s.End()]...))
	}
	return out
}

// open parses the footer as a caller would: guess, then come back.
func (o object) open(name string) (*parquetio.File, error) {
	f, need, err := parquetio.ParseFooter(name, o[max(0, len(o)-64):], int64(len(o)), "tag")
	if err == nil && need > 0 {
		f, need, err = parquetio.ParseFooter(name, o[max(0, int64(len(o))-need):], int64(len(o)), "tag")
		if err == nil && need > 0 {
			panic("asked twice")
		}
	}
	return f, err
}

func allPaths(f *parquetio.File) []column.Path {
	var paths []column.Path
	for _, field := range f.Schema().Fields {
		paths = append(paths, column.Path{field})
	}
	return paths
}

// scan decodes the given rows of columns; nil rows mean all.
func (o object) scan(t testing.TB, f *parquetio.File, paths []column.Path, rows *rowset.Set, pageIndex bool, emit func(*column.Batch) error) error {
	b, err := f.Bind(paths, nil)
	if err != nil {
		return err
	}
	if pageIndex {
		if err := b.LoadPageIndex(rows, o.fetch(t, b.PageIndexSpans(rows))); err != nil {
			t.Fatal(err)
		}
	}
	err = b.Decode(context.Background(), o.fetch(t, b.Spans(rows)), rows, 1000, emit)
	if parquetio.PageIndexWrong(err) {
		b.DropPageIndex()
		err = b.Decode(context.Background(), o.fetch(t, b.Spans(rows)), rows, 1000, emit)
	}
	return err
}

func (o object) count(t testing.TB, f *parquetio.File) (rows int64, err error) {
	err = o.scan(t, f, allPaths(f), nil, false, func(b *column.Batch) error {
		rows += int64(b.Rows)
		for _, c := range b.Cols {
			if c.Len != b.Rows {
				t.Fatalf("vector of %d in a batch of %d", c.Len, b.Rows)
			}
		}
		return nil
	})
	return rows, err
}

type inventoryLine struct{ path, rows, full, err string }

func inventory(t testing.TB) []inventoryLine {
	file, err := os.Open(realdata.Path(t, "parquet-inventory.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r := csv.NewReader(file)
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = '\t', true, -1
	lines, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []inventoryLine
	for _, l := range lines[1:] {
		out = append(out, inventoryLine{path: l[0], rows: l[3], full: l[4], err: l[len(l)-1]})
	}
	if len(out) < 800 {
		t.Fatalf("inventory of %d files", len(out))
	}
	return out
}

// refused lists the files that DuckDB reads and we do not, with the reason.
var refused = map[string]string{
	"parquet-testing/data/datapage_v1-corrupt-checksum.parquet":           "checksum",
	"parquet-testing/data/rle-dict-uncompressed-corrupt-checksum.parquet": "checksum",
	"parquet-testing/data/large_string_map.brotli.parquet":                "the limit is",
	"parquet-testing/bad_data/ARROW-GH-45185.parquet":                     "starts inside a row",
	"parquet-testing/bad_data/ARROW-RS-GH-6229-LEVELS.parquet":            "more than the chunk's 1 values",
}

func TestInventory(t *testing.T) {
	root := realdata.Root(t)
	for _, l := range inventory(t) {
		data, err := os.ReadFile(filepath.Join(root, l.path))
		if err != nil {
			t.Fatal(err)
		}
		o := object(data)
		f, err := o.open(l.path)
		var n int64
		if err == nil {
			n, err = o.count(t, f)
		}
		want, bad := strconv.ParseInt(l.rows, 10, 64)
		reason, known := refused[l.path]
		switch {
		case known:
			if err == nil || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s: got %v, want an error about %q", l.path, err, reason)
			}
		case bad != nil || l.full != "ok":
			if err == nil && n > 1<<20 {
				t.Errorf("%s: %d rows of a broken file", l.path, n)
			}
		case fault.Is(err, fault.Unsupported) && strings.Contains(err.Error(), "shredded variant"):
		case err != nil:
			t.Errorf("%v", err)
		case n != want:
			t.Errorf("%s: %d rows, DuckDB counts %d", l.path, n, want)
		}
		if err != nil && (fault.ClassOf(err) == fault.Unclassified || !strings.Contains(err.Error(), l.path)) {
			t.Errorf("%s: unclassified or nameless error: %v", l.path, err)
		}
	}
}
