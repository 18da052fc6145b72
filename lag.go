package skomer

import (
	"time"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/lake"
)

// Backlog is what a sync would do now.
type Backlog struct {
	Files int   `json:"files"` // data files that an index lacks
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"` // of those files
	// Seconds is what building is expected to take with the client's workers, by rows, columns and kinds of the indexes that lack them. A far
	// store, or a machine with other work, takes longer; Estimate measures it on the table itself.
	Seconds Range `json:"seconds"`
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

// taking is the nanoseconds of a core for a row.
type taking struct{ low, high float64 }

// reading is what a row of a column takes to be decoded and hashed; buildTakes what it takes to build an index of a kind on a column of values of
// fixed size (false), and on one of texts (true): what Estimate measured on 600,000 flights, rounded, from the fastest to the slowest row
// group, on a machine with other work.
var (
	reading    = map[bool]taking{false: {30, 250}, true: {60, 500}}
	buildTakes = map[string]map[bool]taking{
		"zonemap":  {false: {10, 50}, true: {10, 60}},
		"bloom":    {false: {25, 300}, true: {60, 1800}},
		"valueset": {false: {30, 200}, true: {30, 250}},
		"bitmap":   {false: {50, 300}, true: {50, 600}},
		"ordered":  {false: {90, 800}, true: {1200, 6500}},
		"ngram":    {true: {1600, 6500}},
		"sketch":   {false: {80, 1600}, true: {300, 3000}},
	}
)

// lacking adds rows that an index on a column lacks.
func (b *Backlog) lacking(kind string, typ column.Type, rows int64) {
	text := typ.Kind == column.String || typ.Kind == column.Binary
	for _, t := range []taking{reading[text], buildTakes[kind][text]} {
		b.Seconds.Low += t.low * float64(rows) / 1e9
		b.Seconds.High += t.high * float64(rows) / 1e9
	}
}

// shared divides the work among workers, of which the last file keeps one.
func (b *Backlog) shared(workers int) {
	n := float64(max(1, min(workers, b.Files)))
	b.Seconds.Low, b.Seconds.High = b.Seconds.Low/n, b.Seconds.High/n
}
