package page

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/skomerdb/skomer"
)

// hostile is text that would run, close or open something wherever it is not escaped.
const hostile = `"></td><script>alert(1)</script><img src=x onerror=alert(1)>'&<!--`

// TestHostileNamesAreText: whatever a table, column, file or reason is called, the page runs and fetches nothing and shows it as it is.
func TestHostileNamesAreText(t *testing.T) {
	e := &skomer.Explanation{
		Table: hostile, Predicate: hostile, CostRule: hostile, FilesTotal: 2, FilesKept: 1, Analyzed: true,
		Indexes:  []skomer.IndexUse{{Expr: hostile, Use: hostile, Reason: hostile}},
		Files:    []skomer.FileDecision{{Path: hostile, Kept: true, By: hostile}, {Path: hostile, By: hostile}},
		Rejected: []skomer.RejectedIndex{{Index: hostile, File: hostile, Reason: hostile, Detail: hostile}},
		Waves:    []skomer.WaveCost{{Of: hostile, First: hostile, Seconds: 1}},
		Estimate: &skomer.CostEstimate{Profile: hostile, Selectivity: -1},
		Money:    &skomer.Money{Profile: hostile},
	}
	var b bytes.Buffer
	require.NoError(t, Write(&b, e))
	texts := 0
	z := html.NewTokenizer(&b)
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			require.ErrorIs(t, z.Err(), io.EOF)
			break
		}
		token := z.Token()
		if kind == html.TextToken {
			texts += strings.Count(token.Data, hostile)
			continue
		}
		require.NotContains(t, []string{"script", "img", "iframe", "link", "object", "embed", "base", "form"}, token.Data)
		for _, a := range token.Attr {
			require.False(t, strings.HasPrefix(a.Key, "on"), a.Key)
			require.NotContains(t, []string{"src", "href", "action"}, a.Key)
		}
	}
	require.GreaterOrEqual(t, texts, 12, "the names are shown")
}

// TestThePageTellsTheStory: waves in order with their costs, files by reason, the estimate and the money.
func TestThePageTellsTheStory(t *testing.T) {
	e := &skomer.Explanation{
		Table: "lake/flights", Predicate: "delay > 600", FilesTotal: 60, FilesKept: 2, FilesPruned: 58, Analyzed: true,
		Stats:    skomer.Stats{Rows: 7, Requests: 9, Waves: 3, Bytes: 137090, Seconds: 0.0123},
		Waves:    []skomer.WaveCost{{Of: "index", Seconds: 0.001, Objects: 1, Requests: 1, Bytes: 4096}, {Of: "table", Start: 0.001, Seconds: 0.009, Objects: 2, Requests: 8, Bytes: 132994}},
		Estimate: &skomer.CostEstimate{Selectivity: 0.0004, Profile: "local files", Scan: skomer.Cost{Requests: 120, Bytes: 1e6, Seconds: 0.2}},
	}
	for i := range 60 {
		f := skomer.FileDecision{Path: fmt.Sprint("f", i), By: "bounds of delay: -20 to 300"}
		if i < 2 {
			f.Kept, f.By, f.May = true, "", 10
		}
		e.Files = append(e.Files, f)
	}
	e.At(skomer.Price{Name: "s3", Get: 1e-3})
	var b bytes.Buffer
	require.NoError(t, Write(&b, e))
	page := b.String()
	for _, want := range []string{
		"The query found 7 rows and took 9 requests in 3 waves, 137.1 kB and 12.3 ms; 2 of 60 files are left to read.",
		"At s3 prices that is $0.009; a plain scan would be about $0.12.",
		"index: 1 request for 1 object, 4.1 kB, 1.0 ms", "table: 8 requests for 2 objects, 133 kB, 9.0 ms", "left:10.00%;width:90.00%",
		"0.0004 of the rows match", "a plain scan of the filter&#39;s columns",
		`<td class="n">58</td><td>out</td><td>bounds of delay: -20 to 300</td>`, `<td class="n">2</td><td>read</td><td>nothing speaks against it</td><td class="n">20</td>`,
	} {
		require.Contains(t, page, want)
	}
	require.NotContains(t, page, "<script")
	require.NotContains(t, page, "http://")
	require.NotContains(t, page, "https://")
}

// TestNoControlReachesThePage: escape sequences of names and filters are shown as text, also to whoever prints the page on a terminal.
func TestNoControlReachesThePage(t *testing.T) {
	const evil = "\x1b]0;title\a\x1b[2J\u009b31m\x9b"
	e := &skomer.Explanation{
		Table: evil, Predicate: evil, CostRule: evil, Indexes: []skomer.IndexUse{{Expr: evil, Reason: evil}}, Files: []skomer.FileDecision{{Path: evil, By: evil}},
		Rejected: []skomer.RejectedIndex{{Index: evil, File: evil, Reason: evil, Detail: evil}}, Waves: []skomer.WaveCost{{Of: evil, First: evil, Seconds: 1}},
	}
	var b bytes.Buffer
	require.NoError(t, Write(&b, e))
	require.Contains(t, b.String(), `\x1b]0;title\x07`)
	for _, r := range b.String() {
		require.False(t, r != '\n' && (r < 32 || r >= 127 && r < 160), "%q", r)
	}
	require.Equal(t, strings.ToValidUTF8(b.String(), ""), b.String())
}
