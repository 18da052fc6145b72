package skomer_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/faulty"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

func ofData(key string) bool    { return filepath.Base(key) == "a.parquet" }
func ofDeletes(key string) bool { return strings.HasPrefix(filepath.Base(key), "delete-") }

// over opens a table whose files are read by rules.
func over(t *testing.T, made *tabletest.Table, rules ...faulty.Rule) (*skomer.Table, *faulty.Store) {
	t.Helper()
	data := faulty.New(local.New(), 1, rules...)
	at := func(location string) (store.Store, string, error) { return data, location, nil }
	c, err := skomer.New(skomer.Config{OverlayRoot: t.TempDir(), MinPlannedFiles: -1}.WithStores(at, lake.LocalFiles()))
	require.NoError(t, err)
	table, err := c.Open(context.Background(), made.Dir, skomer.TableOptions{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	return table, data
}

func eachOf(ctx context.Context, table *skomer.Table) (n int, err error) {
	rows, err := table.Query(ctx, skomer.Query{Where: "id > 5", Select: []string{"id"}, Limit: -1})
	if err != nil {
		return 0, err
	}
	err = rows.Each(ctx, func(b *skomer.Batch) error { n += b.Rows; return nil })
	return n, err
}

// patience is when a test gives up on what should have happened long ago.
const patience = time.Minute

// TestDeletesAndFootersAreReadAtOnce: neither the read of a position delete file nor that of the footer ends before the other has begun.
// A count that manifests and deletes settle reads no data file.
func TestDeletesAndFootersAreReadAtOnce(t *testing.T) {
	made := numbers(t, 200)
	deletePositions(t, made, 3, 5)
	var both sync.WaitGroup
	both.Add(2)
	meet := func(context.Context, faulty.Op, string) {
		both.Done()
		met := make(chan struct{})
		go func() { both.Wait(); close(met) }()
		select {
		case <-met:
		case <-time.After(patience):
			t.Error("the other read did not begin")
		}
	}
	table, _ := over(t, made,
		faulty.Rule{Op: faulty.Fetch, Key: ofData, Nth: 1, Do: meet}, faulty.Rule{Op: faulty.Fetch, Key: ofDeletes, Nth: 1, Do: meet})
	n, err := eachOf(context.Background(), table)
	require.NoError(t, err)
	require.Equal(t, 196, n) // ids begin at 4: those of positions 0, 1 and 3 are no answer or deleted

	table, read := over(t, made, faulty.Rule{Op: faulty.Fetch, Key: ofData, Rate: 1})
	rows, err := table.Query(context.Background(), skomer.Query{Limit: -1})
	require.NoError(t, err)
	counted, err := rows.Count(context.Background())
	require.NoError(t, err)
	require.EqualValues(t, 198, counted)
	require.Equal(t, []int{0}, read.Injected())
}

// TestTheFirstFaultEndsBothReads: where the delete file or the footer cannot be read, the query tells which, and the other read is not
// waited for; nor is either when the caller has gone.
func TestTheFirstFaultEndsBothReads(t *testing.T) {
	made := numbers(t, 200)
	deletePositions(t, made, 3, 5)
	for _, c := range []struct{ bad, held func(string) bool }{{ofData, ofDeletes}, {ofDeletes, ofData}, {nil, ofData}, {nil, ofDeletes}} {
		ctx, cancel := context.WithCancel(context.Background())
		hold := func(of context.Context, _ faulty.Op, _ string) {
			if c.bad == nil {
				cancel()
			}
			select {
			case <-of.Done():
			case <-time.After(patience):
				t.Error("the read was not ended")
			}
		}
		rules := []faulty.Rule{{Op: faulty.Fetch, Key: c.held, Nth: 1, Do: hold}}
		if c.bad != nil {
			rules = append(rules, faulty.Rule{Op: faulty.Fetch, Key: c.bad, Rate: 1, Err: faulty.Class(fault.Denied)})
		}
		table, _ := over(t, made, rules...)
		n, err := eachOf(ctx, table)
		require.Error(t, err)
		require.Zero(t, n)
		if c.bad == nil {
			require.ErrorIs(t, err, context.Canceled)
		} else {
			require.Equal(t, fault.Denied, fault.ClassOf(err), "%v", err)
			var f *fault.Error
			require.ErrorAs(t, err, &f)
			require.True(t, c.bad(f.Subject), "%v", err)
		}
		cancel()
	}
}
