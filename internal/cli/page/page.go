// Package page answers: how does an explanation look as one HTML page?
//
// The page is self-contained: no script, no font and no picture is fetched, and every name from the table is escaped, control characters
// as \x1b. It knows
// explanations, not tables.
package page

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/render"
)

//go:embed explain.html
var source string

var explain = template.Must(template.New("explain").Parse(source))

// data is what the template shows.
type data struct {
	*skomer.Explanation
	Title, Headline string
	Bars            []bar
	Groups          []group
	Facts           [][2]string
	Estimates       []estimate
}

// bar is one wave of the waterfall, in percent of the whole time.
type bar struct {
	Of, First   string
	Left, Width float64
	Text        string
}

// group is the files that share a decision and its reason.
type group struct {
	Kept  bool
	Why   string
	Files int
	Rows  int64
	First string
}

// estimate is a line of the cost rule.
type estimate struct {
	What string
	Cost skomer.Cost
	Time string
}

// Write writes the page of an explanation.
func Write(w io.Writer, e *skomer.Explanation) error {
	d := data{Explanation: e, Title: "skomer explain " + e.Table, Headline: headline(e), Bars: bars(e.Waves), Groups: groups(e.Files)}
	d.Facts = [][2]string{
		{"snapshot", fmt.Sprint(e.SnapshotID)},
		{"overlay version", fmt.Sprint(e.OverlayVersion)},
		{"files", fmt.Sprint(e.FilesTotal)},
		{"ruled out by the table's metadata", fmt.Sprint(e.FilesPruned)},
		{"ruled out by indexes", fmt.Sprint(e.FilesRuledOut)},
		{"left to read", fmt.Sprintf("%d, %s of %s", e.FilesKept, Size(e.KeptBytes), Size(e.ScanBytes))},
		{"rows that may match", fmt.Sprintf("%d, %d of them surely", e.RowsMay, e.RowsMust)},
	}
	if x := e.Estimate; x != nil {
		d.Estimates = []estimate{
			{"a plain scan of the filter's columns", x.Scan, seconds(x.Scan.Seconds)},
			{"asking the indexes", x.Index, seconds(x.Index.Seconds)},
			{"what the scan then takes less", x.Saved, seconds(x.Saved.Seconds)},
		}
	}
	var b strings.Builder
	if err := explain.Execute(&b, d); err != nil {
		return err
	}
	_, err := io.WriteString(w, render.PrintableLines(b.String()))
	return err
}

// headline is the answer in one sentence.
func headline(e *skomer.Explanation) string {
	what := "Planning"
	if e.Analyzed {
		what = fmt.Sprintf("The query found %s and", counted(e.Stats.Rows, "row"))
	}
	left := "are"
	if e.FilesKept == 1 {
		left = "is"
	}
	out := fmt.Sprintf("%s took %s in %s, %s and %s; %d of %s %s left to read.", what, counted(e.Stats.Requests, "request"), counted(e.Stats.Waves, "wave"),
		Size(e.Stats.Bytes), seconds(e.Stats.Seconds), e.FilesKept, counted(e.FilesTotal, "file"), left)
	if e.CostRule != "" {
		out += " No index was asked: " + e.CostRule + "."
	}
	if e.Money != nil {
		out += fmt.Sprintf(" At %s prices that is $%.3g; a plain scan would be about $%.3g.", e.Money.Profile, e.Money.Query, e.Money.Scan)
	}
	return out
}

func bars(waves []skomer.WaveCost) []bar {
	total := 0.0
	for _, w := range waves {
		total = max(total, w.Start+w.Seconds)
	}
	var out []bar
	for _, w := range waves {
		out = append(out, bar{
			Of: w.Of, First: w.First, Left: 100 * w.Start / max(total, 1e-9), Width: max(0.4, 100*w.Seconds/max(total, 1e-9)),
			Text: fmt.Sprintf("%s for %s, %s, %s", counted(w.Requests, "request"), counted(w.Objects, "object"), Size(w.Bytes), seconds(w.Seconds)),
		})
	}
	return out
}

// groups joins files with the same decision, the largest group first within those read and those ruled out.
func groups(files []skomer.FileDecision) []group {
	byReason := map[string]*group{}
	var out []*group
	for i := range files {
		f := &files[i]
		why := f.By
		if why == "" {
			why = "nothing speaks against it"
		}
		key := fmt.Sprint(f.Kept, why)
		g := byReason[key]
		if g == nil {
			g = &group{Kept: f.Kept, Why: why, First: f.Path}
			byReason[key] = g
			out = append(out, g)
		}
		g.Files++
		g.Rows += f.May
	}
	slices.SortStableFunc(out, func(a, b *group) int {
		if a.Kept != b.Kept {
			if a.Kept {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.Files, a.Files)
	})
	all := make([]group, 0, len(out))
	for _, g := range out[:min(len(out), maxGroups)] {
		all = append(all, *g)
	}
	if rest := len(out) - len(all); rest > 0 {
		more := group{Why: counted(rest, "further reason")}
		for _, g := range out[maxGroups:] {
			more.Files += g.Files
			more.Rows += g.Rows
		}
		all = append(all, more)
	}
	return all
}

// maxGroups bounds the page.
const maxGroups = 500

// counted is so many of a thing.
func counted[T int | int64 | uint64](n T, one string) string {
	return fmt.Sprint(n, " ", render.Plural(n, one))
}

// Size is n bytes for people.
func Size(n int64) string {
	f, units := float64(n), []string{"B", "kB", "MB", "GB", "TB", "PB"}
	for f >= 1000 && len(units) > 1 {
		f, units = f/1000, units[1:]
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0") + " " + units[0]
}

func seconds(s float64) string {
	switch {
	case s >= 1:
		return fmt.Sprintf("%.2f s", s)
	case s >= 1e-3:
		return fmt.Sprintf("%.1f ms", s*1e3)
	default:
		return fmt.Sprintf("%.0f µs", s*1e6)
	}
}
