package sqltext_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/predicate/sqltext"
)

func BenchmarkParseInList(b *testing.B) {
	s := &column.Schema{Fields: []column.Field{{ID: 1, Name: "a", Type: column.Of(column.Int)}}}
	var text strings.Builder
	text.WriteString("a IN (0")
	for i := range 100_000 {
		fmt.Fprintf(&text, ", %d", i)
	}
	text.WriteString(")")
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sqltext.Parse(text.String(), s); err != nil {
			b.Fatal(err)
		}
	}
}
