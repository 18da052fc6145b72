package skomer

import (
	"math"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/overlay"
)

// Backlog is what a sync would do now.
type Backlog struct {
	Files int   `json:"files"` // data files that an index lacks
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"` // of those files
	// Seconds is what building is expected to take with the client's workers: by the pace of the last builds, else by rows, columns and kinds
	// of the indexes that lack them, as another machine took for them. Estimate measures it on the table itself.
	Seconds Range `json:"seconds"`
	// Pace is that of the last builds; nil where Seconds is not by it.
	Pace *Pace `json:"pace,omitempty"`
}

// Pace is how fast the last builds of an overlay were, each with one worker, newer ones counting more.
type Pace struct {
	Seconds float64 `json:"seconds"`
	Bytes   int64   `json:"bytes"` // of data files that were read
	Rows    int64   `json:"rows"`  // those of an index on two columns count twice
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
	b.Seconds.add(kind, typ.Kind == column.String || typ.Kind == column.Binary, rows)
}

// add is what rows of an index take; false: the kind is not known.
func (r *Range) add(kind string, text bool, rows int64) bool {
	build, known := buildTakes[kind]
	for _, t := range []taking{reading[text], build[text]} {
		r.Low += t.low * float64(rows) / 1e9
		r.High += t.high * float64(rows) / 1e9
	}
	return known
}

// middle is between both ends, as far from one as from the other by factors.
func (r Range) middle() float64 { return math.Sqrt(r.Low * r.High) }

const (
	paceSpread = 2    // by which factor the next builds may be slower or faster than the last
	paceShare  = 0.01 // of the work to do; builds of less say little, since each file takes a while by itself
)

// paced corrects what is expected by what the last builds took.
func (b *Backlog) paced(p *overlay.Pace) {
	if p == nil {
		return
	}
	var expected Range
	var rows int64
	for what, n := range p.Rows {
		kind, typ, _ := strings.Cut(what, " ")
		if n < 0 || !expected.add(kind, typ == column.String.String() || typ == column.Binary.String(), n) {
			return
		}
		rows += n
	}
	if expected.middle() <= paceShare*b.Seconds.middle() || p.Seconds <= 0 {
		return
	}
	takes := b.Seconds.middle() * p.Seconds / expected.middle()
	b.Seconds = Range{Low: takes / paceSpread, High: takes * paceSpread}
	b.Pace = &Pace{Seconds: p.Seconds, Bytes: p.Bytes, Rows: rows}
}

// shared divides the work among workers, of which the last file keeps one.
func (b *Backlog) shared(workers int) {
	n := float64(max(1, min(workers, b.Files)))
	b.Seconds.Low, b.Seconds.High = b.Seconds.Low/n, b.Seconds.High/n
}
