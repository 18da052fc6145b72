package overlay

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPaceForgets: what is recorded of builds is about the last ones, survives a reader that knows nothing, and stays small.
func TestPaceForgets(t *testing.T) {
	st := newMem()
	o := mounted(t, st)
	require.Nil(t, latest(t, o).Pace())
	commit(t, o, nil, Built(Pace{Seconds: 8, Bytes: 800, Rows: map[string]int64{"bloom long": 80, "ngram string": 1}}))
	first := fresh(t, o)
	commit(t, o, nil, Built(Pace{Seconds: 1, Bytes: 100, Rows: map[string]int64{"bloom long": 10}}))
	require.Equal(t, &Pace{Seconds: 8, Bytes: 800, Rows: map[string]int64{"bloom long": 80}}, fresh(t, o).Pace())
	require.Equal(t, int64(80), first.Pace().Rows["bloom long"], "an older version stays as it is")
	for i := range 600 {
		commit(t, o, nil, Built(Pace{Seconds: 1, Rows: map[string]int64{fmt.Sprint("kind", i): 1 << 50}}))
	}
	p := fresh(t, o).Pace()
	require.LessOrEqual(t, len(p.Rows), maxPaced)
	require.InDelta(t, 8, p.Seconds, 1e-9)
}
