package cli

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/fault"
)

// TestOneOfAThingIsNoPlural: what is counted is named by its number.
func TestOneOfAThingIsNoPlural(t *testing.T) {
	require.Equal(t, "0 files", counted(0, "file"))
	require.Equal(t, "1 file", counted(int64(1), "file"))
	require.Equal(t, "1,000 row groups", counted(1000, "row group"))
	var out bytes.Buffer
	a := &app{out: &out, err: &out}
	require.NoError(t, a.showExplanation(&skomer.Explanation{FilesTotal: 1, FilesKept: 1, Analyzed: true, Stats: skomer.Stats{Rows: 1, FilesOpened: 1, Requests: 1, Waves: 1}}))
	require.NoError(t, a.printStatus(&skomer.Status{Mounted: true, Rejected: map[string]int64{"tag": 1}, Indexes: []skomer.Index{{}}, Backlog: skomer.Backlog{Files: 1, Rows: 1}}))
	require.Contains(t, followed(&skomer.SyncReport{FilesIndexed: 1, Skipped: map[string]string{"x": "y"}, Swept: &skomer.Swept{Withdrawn: 1}}), "1 file indexed, 1 artifact of overwritten files withdrawn, 1 file cannot")
	require.Contains(t, out.String(), "1 row from 1 file\n")
	require.Contains(t, out.String(), "1 request in 1 wave,")
	require.Contains(t, out.String(), "1 artifact: tag")
	require.Contains(t, out.String(), "1 file, 1 row,")
	require.NotRegexp(t, `\b1 (files|rows|requests|waves|artifacts)\b`, out.String())
}

// TestNoControlReachesTheTerminal: lines, hints and pairs show escape sequences of names and reasons as text.
func TestNoControlReachesTheTerminal(t *testing.T) {
	const evil = "\x1b]0;title\a\u009b31m\x9b\r"
	var out bytes.Buffer
	a := &app{out: &out, err: &out}
	a.say("%s: %s", evil, evil)
	a.hint("%s", evil)
	require.NoError(t, a.pairs([2]string{"name", evil}))
	require.NoError(t, a.showIndexes([]skomer.Index{{Expr: evil}}))
	require.NoError(t, a.showExplanation(&skomer.Explanation{
		Predicate: evil, CostRule: evil, Indexes: []skomer.IndexUse{{Expr: evil, Reason: evil}}, Files: []skomer.FileDecision{{Path: evil, By: evil}},
		Rejected: []skomer.RejectedIndex{{Index: evil, Reason: evil, Detail: evil}},
	}))
	require.NoError(t, a.showSync(&skomer.SyncReport{Skipped: map[string]string{evil: evil}, Declined: map[string]string{evil: evil}}))
	printError(&out, fault.New(fault.Invalid, evil, "%s", evil).WithFix("%s", evil), false)
	require.Contains(t, out.String(), `\x1b]0;title\x07\x9b31m\x9b\x0d`)
	for _, r := range out.String() {
		require.False(t, r != '\n' && (r < 32 || r >= 127 && r < 160 || r == '\uFFFD'), "%q", r)
	}
}

// TestWhatIsCappedIsSaid: an index that gave up on values is named wherever indexes are listed, with the way out.
func TestWhatIsCappedIsSaid(t *testing.T) {
	for _, kind := range []string{"bitmap", "valueset", "bloom"} {
		var out bytes.Buffer
		a := &app{out: &out, err: &out}
		x := skomer.Index{Expr: kind + "(v)", Kind: kind, Artifacts: 1, Capped: 1}
		require.NoError(t, a.showIndexes([]skomer.Index{x, {Expr: "ordered(v)", Kind: "ordered", Artifacts: 1}}))
		require.Contains(t, out.String(), "capped: "+kind+"(v): 1 of 1 artifact left out the values")
		require.Contains(t, out.String(), "declare it with a higher")
		require.NotContains(t, out.String(), "capped: ordered")
		out.Reset()
		require.NoError(t, a.showIndex(&x))
		require.Contains(t, out.String(), "capped")
	}
}
