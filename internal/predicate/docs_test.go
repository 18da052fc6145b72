package predicate_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/predicate/icebergjson"
	"github.com/skomerdb/skomer/internal/predicate/sqltext"
)

func docsSchema() *column.Schema {
	of := column.Of
	return &column.Schema{Fields: []column.Field{
		{ID: 1, Name: "active", Type: of(column.Bool)},
		{ID: 2, Name: "price", Type: of(column.Double)},
		{ID: 3, Name: "score", Type: of(column.Float)},
		{ID: 4, Name: "qty", Type: of(column.Int)},
		{ID: 5, Name: "user_id", Type: of(column.Long)},
		{ID: 6, Name: "amount", Type: column.DecimalOf(9, 2)},
		{ID: 7, Name: "day", Type: of(column.Date)},
		{ID: 8, Name: "ts", Type: of(column.Timestamp)},
		{ID: 9, Name: "tz", Type: of(column.TimestampTZ)},
		{ID: 10, Name: "name", Type: of(column.String)},
		{ID: 11, Name: "order by", Type: of(column.Int)},
		{ID: 12, Name: "address", Type: column.Type{Kind: column.Struct, Fields: []column.Field{{ID: 13, Name: "city", Type: of(column.String)}}}},
		{ID: 14, Name: "tags", Type: column.Type{Kind: column.List, Fields: []column.Field{{ID: 15, Name: "element", Type: of(column.String)}}}},
		{ID: 16, Name: "nums", Type: column.Type{Kind: column.List, Fields: []column.Field{{ID: 17, Name: "element", Type: of(column.Long)}}}},
		{ID: 18, Name: "attrs", Type: column.Type{Kind: column.Map, Fields: []column.Field{
			{ID: 19, Name: "key", Type: of(column.String)}, {ID: 20, Name: "value", Type: of(column.String)},
		}}},
		{ID: 21, Name: "payload", Type: of(column.String)},
		{ID: 22, Name: "items", Type: column.Type{Kind: column.List, Fields: []column.Field{{ID: 23, Name: "element", Type: column.Type{
			Kind: column.Struct, Fields: []column.Field{{ID: 24, Name: "sku", Type: of(column.String)}},
		}}}}},
	}}
}

// TestDocs runs the examples of docs/predicates.md.
func TestDocs(t *testing.T) {
	raw, err := os.ReadFile("../../docs/predicates.md")
	require.NoError(t, err)
	s := docsSchema()
	ran := map[string]int{}
	language := ""
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimRight(line, "\n")
		if rest, fence := strings.CutPrefix(line, "```"); fence {
			language = rest
			continue
		}
		switch language {
		case "sql":
			text, want, ok := strings.Cut(line, " -- ")
			require.True(t, ok, line)
			require.Equal(t, want, sql(t, s, text).String(), text)
		case "sql-error":
			_, err := sqltext.Parse(line, s)
			require.Error(t, err, line)
		case "json":
			_, err := icebergjson.Parse([]byte(line), s, true)
			require.NoError(t, err, line)
		}
		ran[language]++
	}
	for _, language := range []string{"sql", "sql-error", "json"} {
		require.Greater(t, ran[language], 7, language)
	}
}
