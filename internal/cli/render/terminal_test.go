package render

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
)

// hostileText is random text with C0, DEL, C1, bytes that are no UTF-8, and letters between them.
func hostileText(rng *rand.Rand) string {
	var out []byte
	for range 1 + rng.IntN(40) {
		switch rng.IntN(5) {
		case 0:
			out = append(out, byte(rng.IntN(32)))
		case 1:
			out = append(out, string(rune(0x7f+rng.IntN(33)))...)
		case 2:
			out = append(out, byte(0x80+rng.IntN(128)))
		case 3:
			out = append(out, "\x1b]0;title\a\x1b[2J\u009b31m"...)
		default:
			out = append(out, []string{"a", "ü", "日", `\`, "�"}[rng.IntN(5)]...)
		}
	}
	return string(out)
}

func seededText(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("replay: SKOMER_SEED=%d go test ./internal/cli/render -run '^%s$'", seed, t.Name())
	return rand.New(rand.NewPCG(seed, 1))
}

// requireTame fails where a terminal would obey: at a control other than a line end, and at a byte that is no text.
func requireTame(t *testing.T, out string) {
	t.Helper()
	require.Equal(t, strings.ToValidUTF8(out, "?"), out)
	for _, r := range out {
		require.False(t, r != '\n' && (r < 32 || r >= 127 && r < 160), "%q in %q", r, out)
	}
}

// TestNoControlReachesATerminal: whatever names and values hold, tables, the answer's among them, and formatted lines are tame, each value on
// one line.
func TestNoControlReachesATerminal(t *testing.T) {
	rng := seededText(t)
	for range 200 {
		x, y := hostileText(rng), hostileText(rng)
		for _, s := range PrintableArgs([]any{x, column.Kind(3), hostileError(x), named(x)}) {
			if text, ok := s.(string); ok {
				requireTame(t, text)
				require.NotContains(t, text, "\n")
			}
		}
		requireTame(t, strings.ReplaceAll(PrintableLines(x), "\t", ""))

		b := column.NewBuilder(column.Of(column.String))
		b.Append(column.StringValue(x))
		v := b.Finish()
		list := column.Type{Kind: column.List, Fields: []column.Field{{ID: 9, Name: "element", Type: v.Type}}}
		lists := &column.Vector{Type: list, Len: 1, Off: []uint32{0, 1}, Kids: []*column.Vector{v}}
		var out bytes.Buffer
		sink, err := New("table", &out, []column.Field{{Name: y, Type: v.Type}, {Name: "l", Type: list}})
		require.NoError(t, err)
		require.NoError(t, sink.Write(&column.Batch{Rows: 1, Cols: []*column.Vector{v, lists}}))
		require.NoError(t, sink.Close())
		requireTame(t, out.String())
		require.Equal(t, 3, strings.Count(out.String(), "\n"))

		out.Reset()
		tw := Plain()
		tw.AppendHeader(table.Row{x, "n"})
		tw.AppendRow(table.Row{y, 1})
		tw.AppendRows([]table.Row{{named(x), hostileError(y)}})
		require.NoError(t, Print(&out, tw))
		requireTame(t, out.String())
		require.Equal(t, 4, strings.Count(out.String(), "\n"))
	}
}

type hostileError string

func (e hostileError) Error() string { return string(e) }

type named string

// TestTextThatIsTameStays, and controls are written as their codes.
func TestTextThatIsTameStays(t *testing.T) {
	for text, want := range map[string]string{
		"größe 日本 \\x1b �": "größe 日本 \\x1b �",
		"\x1b[2J\a":        `\x1b[2J\x07`,
		"a\nb\tc":          `a\x0ab\x09c`,
		"\u009b31m\u0085":  `\x9b31m\x85`,
		"\x9b\xff\xe2\x82": `\x9b\xff\xe2\x82`,
		"":                 "",
	} {
		require.Equal(t, want, Printable(text))
	}
	require.Equal(t, "a\n\tb\\x0d", PrintableLines("a\n\tb\r"))
}
