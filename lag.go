package skomer

import (
	"time"

	"github.com/skomerdb/skomer/internal/lake"
)

// buildRate is how many bytes of data files a worker turns into artifacts in a second: what an estimate of a backlog supposes.
// It is the slowest of the cheap kinds' rates in docs/performance.md, rounded down.
const buildRate = 40 << 20

// Backlog is what a sync would do now.
type Backlog struct {
	Files int   `json:"files"` // data files that an index lacks
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"` // of those files
	// Seconds is an estimate: Bytes at 40 MiB a second and worker, which reading from a far store can fall below.
	Seconds float64 `json:"seconds"`
}

// lag is how long the table has been ahead of the overlay: since the first snapshot after the one that was synced, or since the
// last sync where the synced one is no ancestor of the current (a rollback, an expiry). An overlay that was never synced lags since
// the first snapshot that the table knows.
func lag(history []lake.SnapshotInfo, current, synced int64, lastSync, now time.Time) time.Duration {
	if current < 0 || !lastSync.IsZero() && current == synced {
		return 0
	}
	byID := make(map[int64]*lake.SnapshotInfo, len(history))
	for i := range history {
		byID[history[i].ID] = &history[i]
	}
	since, met := lastSync, false
	for id, steps := current, 0; byID[id] != nil && steps < len(history) && !met; steps++ {
		s := byID[id]
		met = s.Parent == synced
		if met || lastSync.IsZero() {
			since = time.UnixMilli(s.TimestampMs)
		}
		id = s.Parent
	}
	if since.IsZero() {
		return 0
	}
	return max(0, now.Sub(since))
}

// estimate fills in the seconds that a backlog takes.
func (b *Backlog) estimate(workers int) {
	b.Seconds = float64(b.Bytes) / float64(buildRate*max(workers, 1))
}
