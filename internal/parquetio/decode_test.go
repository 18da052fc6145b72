package parquetio_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/rowset"
)

func TestDecodeStops(t *testing.T) {
	data, f, b := openReal(t, "parquet-testing/data/alltypes_tiny_pages.parquet")
	spans := data.fetch(t, b.Spans(nil))
	ctx, cancel := context.WithCancel(context.Background())
	stop := errors.New("stop")
	if err := b.Decode(ctx, spans, nil, 10, func(*column.Batch) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("emit's error became %v", err)
	}
	batches := 0
	err := b.Decode(ctx, spans, nil, 10, func(batch *column.Batch) error {
		if batches++; batch.Rows > 10 {
			t.Errorf("batch of %d rows", batch.Rows)
		}
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || batches != 1 {
		t.Errorf("%d batches after cancelling, %v", batches, err)
	}
	keep := func(*column.Batch) error { return nil }
	if err := b.Decode(context.Background(), spans[1:], nil, 0, keep); !fault.Is(err, fault.Invalid) {
		t.Errorf("too few spans: %v", err)
	}
	if err := b.Decode(context.Background(), append(spans, nil), nil, 0, keep); !fault.Is(err, fault.Invalid) {
		t.Errorf("too many spans: %v", err)
	}
	if err := b.Decode(context.Background(), nil, rowset.All(3), 0, keep); !fault.Is(err, fault.Invalid) {
		t.Errorf("rows of another file (%d rows): %v", f.Rows(), err)
	}
	if err := b.Decode(context.Background(), nil, rowset.None(uint32(f.Rows())), 0, keep); err != nil {
		t.Errorf("no rows: %v", err)
	}
}

// TestConcurrentDecode reads parts of one file in several goroutines through one binding, while others bind and load.
func TestConcurrentDecode(t *testing.T) {
	data, f, b := openReal(t, "parquet-testing/data/alltypes_tiny_pages.parquet")
	n := uint32(f.Rows())
	var wg sync.WaitGroup
	total := make([]int, 4)
	for i := range uint32(4) {
		rows := rowset.FromRanges(n, []rowset.Range{{Start: n / 4 * i, End: n / 4 * (i + 1)}})
		spans := data.fetch(t, b.Spans(rows))
		wg.Go(func() {
			err := b.Decode(context.Background(), spans, rows, 100, func(batch *column.Batch) error {
				total[i] += batch.Rows
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() { bound1(t, data).Statistics(0) })
	}
	wg.Wait()
	for i, got := range total {
		if got != int(n/4) {
			t.Errorf("part %d has %d rows", i, got)
		}
	}
}

// TestDictionariesAreKept: a filter runs once per distinct value where a batch has more rows than the dictionary values.
func TestDictionariesAreKept(t *testing.T) {
	data, _, b := openReal(t, "parquet-testing/data/alltypes_tiny_pages.parquet")
	for _, batchRows := range []int{1000, 2} {
		kept := 0
		err := b.Decode(context.Background(), data.fetch(t, b.Spans(nil)), nil, batchRows, func(batch *column.Batch) error {
			for _, c := range batch.Cols {
				if c.Dict != nil {
					kept++
					if c.Dict.Len > batch.Rows {
						t.Errorf("dictionary of %d values for %d rows", c.Dict.Len, batch.Rows)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if kept == 0 {
			t.Errorf("no dictionary was kept in batches of %d rows", batchRows)
		}
	}
}
