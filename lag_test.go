package skomer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/overlay"
)

func TestLag(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC) }
	history := []lake.SnapshotInfo{
		{ID: 1, Parent: -1, TimestampMs: at(1).UnixMilli()},
		{ID: 2, Parent: 1, TimestampMs: at(2).UnixMilli()},
		{ID: 3, Parent: 2, TimestampMs: at(3).UnixMilli()},
		{ID: 4, Parent: 1, TimestampMs: at(4).UnixMilli()}, // a branch, or where the table went after a rollback
	}
	for _, c := range []struct {
		name            string
		current, synced int64
		lastSync        time.Time
		hours           float64
	}{
		{"in step", 3, 3, at(5), 0},
		{"two snapshots behind: since the first of them", 3, 1, at(1), 8},
		{"one behind", 3, 2, at(2), 7},
		{"never synced: since the first that is known", 3, 3, time.Time{}, 9},
		{"an empty table", -1, -1, time.Time{}, 0},
		{"rolled back: since the sync", 2, 3, at(6), 4},
		{"rolled back and went on", 4, 3, at(6), 4},
		{"the synced snapshot expired", 3, 77, at(6), 4},
		{"a clock that goes wrong", 3, 2, at(2), 0},
	} {
		now := at(10)
		if c.name == "a clock that goes wrong" {
			now = at(0)
		}
		require.InDelta(t, c.hours, lag(history, c.current, c.synced, c.lastSync, now).Hours(), 1e-9, c.name)
	}
	loop := []lake.SnapshotInfo{{ID: 1, Parent: 2, TimestampMs: 1}, {ID: 2, Parent: 1, TimestampMs: 1}}
	require.Positive(t, lag(loop, 1, 9, time.Time{}, at(1)), "metadata that goes in a circle ends")
}

// TestBacklogCountsEveryIndex: what a sync is expected to take grows with each index that lacks rows, and with each row; every kind has a time.
func TestBacklogCountsEveryIndex(t *testing.T) {
	long, text := column.Of(column.Long), column.Of(column.String)
	one := Backlog{Files: 60}
	one.lacking("bloom", long, 6e6)
	four := one
	for _, kind := range []string{"ordered", "bitmap", "zonemap"} {
		was := four.Seconds
		four.lacking(kind, long, 6e6)
		require.Greater(t, four.Seconds.Low, was.Low, kind)
		require.Greater(t, four.Seconds.High, was.High, kind)
	}
	texts := Backlog{Files: 60}
	texts.lacking("bloom", text, 6e6)
	require.Greater(t, texts.Seconds.High, one.Seconds.High)
	half := four
	half.shared(2)
	require.InDelta(t, four.Seconds.High, 2*half.Seconds.High, 1e-9)
	single := Backlog{Files: 1, Seconds: four.Seconds}
	single.shared(8)
	require.Equal(t, four.Seconds, single.Seconds, "a file is built by one worker")
	for _, e := range kinds.All() {
		byType, ok := buildTakes[e.Name]
		require.True(t, ok, e.Name)
		for _, x := range byType {
			require.Positive(t, x.low)
			require.Greater(t, x.high, x.low)
		}
	}
}

// TestBacklogByTheLastBuilds: what the last builds took decides over what other machines took, unless it says too little.
func TestBacklogByTheLastBuilds(t *testing.T) {
	long := column.Of(column.Long)
	expected := func() *Backlog {
		b := &Backlog{Files: 60}
		b.lacking("bloom", long, 6e6)
		return b
	}
	of := func(seconds float64, what string, rows int64) *overlay.Pace {
		return &overlay.Pace{Seconds: seconds, Bytes: 1, Rows: map[string]int64{what: rows}}
	}
	b := expected()
	b.paced(of(3, "bloom long", 1e6))
	require.InDelta(t, 18, b.Seconds.middle(), 1e-9, "six times as many rows of the same index")
	require.Equal(t, &Pace{Seconds: 3, Bytes: 1, Rows: 1e6}, b.Pace)
	slow, other := expected(), expected()
	slow.paced(of(6, "bloom long", 1e6))
	require.InDelta(t, 36, slow.Seconds.middle(), 1e-9)
	other.paced(of(3, "ordered string", 1e6))
	require.Less(t, other.Seconds.middle(), b.Seconds.middle(), "what was built was more work a row")
	for _, p := range []*overlay.Pace{
		nil, {}, of(3, "bloom long", 1e4), of(3, "later long", 1e6), of(0, "bloom long", 1e6), of(3, "bloom long", -1e6), of(-3, "bloom long", 1e6),
	} {
		b := expected()
		b.paced(p)
		require.Equal(t, expected(), b, "%+v", p)
	}
}
