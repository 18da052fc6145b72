package plan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
)

// TestValuesForPeople: what is shown is what the value is; only long ones are cut, and no character in two.
func TestValuesForPeople(t *testing.T) {
	for want, v := range map[string]column.Value{
		`""`:                                    column.StringValue(""),
		`"a\xffb\x1b[31m"`:                      column.StringValue("a\xffb\x1b[31m"),
		`"` + strings.Repeat("x", 39) + `…"`:    column.StringValue(strings.Repeat("x", 39) + "京京"),
		`"` + strings.Repeat("é", 20) + `"`:     column.StringValue(strings.Repeat("é", 20)),
		`"` + strings.Repeat(`\xbf`, 36) + `…"`: column.StringValue(strings.Repeat("\xbf", 50)),
		"X'00ff'":                               column.BytesValue(column.Binary, []byte{0, 255}),
		"00000000-0000-0000-0000-0000000000ff":  column.BytesValue(column.UUID, append(make([]byte, 15), 255)),
	} {
		require.Equal(t, want, Show(v))
	}
}
