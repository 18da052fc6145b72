package parquetio

import (
	"errors"
	"strings"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// TestDecoderErrorsAreClassified: what a library's decoder says of bad bytes, and its panics, are corrupt faults that name file
// and column; a class that is known stays.
func TestDecoderErrorsAreClassified(t *testing.T) {
	d := &decoder{b: &Binding{file: &File{name: "f.parquet"}, cols: []*bound{{path: column.Path{{Name: "x"}}}}}}
	for _, c := range []struct {
		work func() error
		want fault.Class
	}{
		{func() error { return errors.New("invalid mini block size") }, fault.Corrupt},
		{func() error { panic("index out of range") }, fault.Corrupt},
		{func() error { return fault.New(fault.Unsupported, "", "codec") }, fault.Unsupported},
	} {
		err := d.guard(0, nil, c.work)
		if !fault.Is(err, c.want) || !strings.Contains(err.Error(), "f.parquet") || !strings.Contains(err.Error(), "column x") {
			t.Errorf("%v is %v, want %v with file and column", err, fault.ClassOf(err), c.want)
		}
	}
	if err := d.guard(0, nil, func() error { return nil }); err != nil {
		t.Error(err)
	}
}
