package skomer_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// tally counts what happened, over all lives.
type tally struct {
	steps, asked, nonEmpty, indexed int
	ops, stops                      map[string]int
	faults                          map[string]int64
}

func newTally() *tally {
	return &tally{ops: map[string]int{}, stops: map[string]int{}, faults: map[string]int64{}}
}

// report demands that everything happened often enough.
func (a *tally) report(t *testing.T, steps int) {
	for _, m := range []map[string]int{a.ops, a.stops} {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			t.Logf("%-40s %d", name, m[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.faults)) {
		t.Logf("%-40s %d", name, a.faults[name])
	}
	t.Logf("%d steps, %d queries, %d with rows, %d index answers", a.steps, a.asked, a.nonEmpty, a.indexed)
	require.Positive(t, a.indexed)
	require.Greater(t, a.nonEmpty*6, a.asked)
	least := steps / 1000
	if least < 5 {
		return // too short for everything to happen
	}
	for _, op := range []string{
		"sync", "add", "drop", "unmount", "reopen", "query", "sweep", "consolidate", "repair", "scrub", "reindex", "vacuum", "erase", "rollback", "purge",
		"silence", "resume", "table: append", "table: delete", "table: update", "table: overwrite", "table: compact", "table: remove", "table: rename",
		"table: add", "table: drop", "table: promote", "table: partition", "table: expire", "table: back", "table: orphans",
	} {
		require.GreaterOrEqual(t, a.ops[op], least, op)
	}
	for _, kind := range []string{"bitmap", "bloom", "ordered", "valueset", "zonemap"} {
		require.GreaterOrEqual(t, a.ops["answer: "+kind], least, kind)
	}
	for _, rare := range []string{"answer: ngram", "answer: several columns", "kept: sketch", "value map", "fingerprint run"} {
		require.Positive(t, a.ops[rare], rare)
	}
	for _, stop := range []string{"paused", "killed"} {
		require.GreaterOrEqual(t, a.stops[stop], least, stop)
	}
	for _, names := range faultNames {
		for _, name := range names {
			require.GreaterOrEqual(t, a.faults[name], int64(least), name)
		}
	}
}
