package parquetio_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/realdata"
)

// maxHostileRows ends the reading of a hostile file: a run-length encoded page may honestly claim billions.
const maxHostileRows = 1 << 20

type enough struct{}

func (enough) Error() string { return "enough rows" }

// exercise does everything a caller could do with untrusted bytes. It must end, with or without an error.
func exercise(t testing.TB, o object, name string) error {
	f, err := o.open(name)
	if err != nil {
		return err
	}
	for _, path := range allPaths(f) {
		b, err := f.Bind([]column.Path{path}, nil)
		if err != nil {
			continue
		}
		for _, pageIndex := range []bool{false, true} {
			if pageIndex {
				if err := b.LoadPageIndex(nil, o.fetch(t, b.PageIndexSpans(nil))); err != nil {
					t.Fatal(err)
				}
			}
			b.Statistics(0)
			b.PageStarts(0)
			rows := 0
			derr := b.Decode(context.Background(), o.fetch(t, b.Spans(nil)), nil, 0, func(batch *column.Batch) error {
				for i := 0; i < batch.Rows; i += 1 + batch.Rows/50 {
					render(batch.Cols[0], i)
				}
				if rows += batch.Rows; rows > maxHostileRows {
					return enough{}
				}
				return nil
			})
			if derr != nil && !errors.Is(derr, enough{}) {
				err = derr
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func TestHostileFiles(t *testing.T) {
	folders := []string{"parquet-testing/bad_data", "arrow-testing/parquet/fuzzing", "parquet-go/malformed", "duckdb/broken", "impala/parquet"}
	for _, folder := range folders {
		files := 0
		err := filepath.WalkDir(realdata.Path(t, folder), func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			files++
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			err = exercise(t, data, path)
			runtime.ReadMemStats(&after)
			if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > 1<<30 {
				t.Errorf("%s: %d MiB allocated", path, grown>>20)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("%s: took %v", path, took)
			}
			if err != nil && fault.ClassOf(err) == fault.Unclassified {
				t.Errorf("%s: unclassified: %v", path, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if files == 0 {
			t.Errorf("%s is empty", folder)
		}
	}
}

// TestDamagedFiles flips bytes of good files: every outcome but a panic or a nameless error is fine.
func TestDamagedFiles(t *testing.T) {
	good := []string{
		"parquet-testing/data/alltypes_tiny_pages_plain.parquet", "parquet-testing/data/nested_maps.snappy.parquet",
		"parquet-testing/data/delta_byte_array.parquet", "hyparquet/continued_page.parquet", "parquet-testing/data/datapage_v2.snappy.parquet",
		"parquet-testing/data/int32_with_null_pages.parquet", "parquet-testing/data/byte_stream_split.zstd.parquet",
	}
	var files []object
	for _, name := range good {
		data, err := os.ReadFile(realdata.Path(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 1<<17 {
			continue
		}
		files = append(files, data)
	}
	if len(files) < 4 {
		t.Fatalf("only %d small files", len(files))
	}
	seeds(t, 200, func(t *testing.T, g generator) {
		o := append(object(nil), files[g.IntN(len(files))]...)
		for range 1 + g.IntN(4) {
			at := g.IntN(len(o))
			if g.IntN(2) == 0 { // the footer is where most goes wrong
				at = len(o) - 1 - g.IntN(min(len(o), 2000))
			}
			o[at] ^= byte(1 << g.IntN(8))
		}
		if err := exercise(t, o, "damaged"); err != nil && (fault.ClassOf(err) == fault.Unclassified || !strings.Contains(err.Error(), "damaged")) {
			t.Errorf("unclassified or nameless error: %v", err)
		}
	})
}

func FuzzFile(f *testing.F) {
	root := os.Getenv("SKOMER_TESTDATA")
	if root == "" {
		root = "../../../shared/data"
	}
	for _, name := range []string{
		"parquet-testing/data/nonnullable.impala.parquet", "parquet-testing/data/null_list.parquet", "parquet-testing/data/delta_length_byte_array.parquet",
		"parquet-testing/data/lz4_raw_compressed.parquet", "hyparquet/offset_index_no_dict_offset.parquet", "parquet-testing/data/rle_boolean_encoding.parquet",
	} {
		if data, err := os.ReadFile(filepath.Join(root, name)); err == nil {
			f.Add(data)
		}
	}
	f.Add([]byte("PAR1\x15\x00\x19\x1c\x00\x16\x00\x19\x0c\x00\x0a\x00\x00\x00PAR1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = exercise(t, data, "fuzzed")
	})
}

func TestO51FooterLimits(t *testing.T) {
	tail := append(binary.LittleEndian.AppendUint32(make([]byte, 100), 1<<31-1), "PAR1"...)
	if _, need, err := parquetio.ParseFooter("claims", tail, 1<<40, ""); !fault.Is(err, fault.Exhausted) || need != 0 {
		t.Errorf("a footer of 2^31-1 bytes in a large file: need %d, %v", need, err)
	}
	if _, need, err := parquetio.ParseFooter("claims", tail, int64(len(tail)), ""); !fault.Is(err, fault.Corrupt) || need != 0 {
		t.Errorf("a footer larger than its file: need %d, %v", need, err)
	}
	tail = append(binary.LittleEndian.AppendUint32(make([]byte, 100), 20<<20), "PAR1"...)
	if _, need, err := parquetio.ParseFooter("large", tail, 1<<30, ""); err != nil || need != 20<<20+8 {
		t.Errorf("a footer of 20 MB: need %d, %v", need, err)
	}
	f := newRawFile(t, 1)
	f.note = strings.Repeat("x", 20<<20)
	f.column(requiredLong("x"), []rawPage{longPage(1)}, nil)
	if got, err := f.finish().open("large"); err != nil || got.Rows() != 1 {
		t.Errorf("a footer of 20 MB is not read: %v", err)
	}
}
