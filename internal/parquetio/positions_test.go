package parquetio_test

import (
	"bytes"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// TestO30PositionsAreOfTheFile: positions count the rows of the file, not those that are read.
func TestO30PositionsAreOfTheFile(t *testing.T) {
	f := newRawFile(t, 3)
	f.column(requiredLong("id"), []rawPage{longPage(4, 5), longPage(6)}, nil)
	got := pick(t, f.finish(), 0, 2)
	if len(got) != 2 || got[0][0] != uint32(0) || got[1][0] != uint32(2) || got[1][1] != int64(6) {
		t.Errorf("got %v", got)
	}
}

// TestO31PositionsOverRowGroups: row groups that are skipped still count.
func TestO31PositionsOverRowGroups(t *testing.T) {
	type row struct {
		ID int64 `parquet:"id"`
	}
	var file bytes.Buffer
	w := parquet.NewGenericWriter[row](&file, parquet.MaxRowsPerRowGroup(100))
	for i := range 200 {
		if _, err := w.Write([]row{{int64(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var rows []uint32
	for i := uint32(100); i < 200; i++ {
		if i != 150 {
			rows = append(rows, i)
		}
	}
	got := pick(t, file.Bytes(), rows...)
	if len(got) != len(rows) {
		t.Fatalf("%d rows of %d", len(got), len(rows))
	}
	for i, r := range got {
		if r[0] != rows[i] || r[1] != int64(rows[i]) {
			t.Fatalf("row %d: position and value %v, want %d", i, r, rows[i])
		}
	}
}
