package ordered

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
)

// TestMergesHoldTheirBudget merges many artifacts whose blocks take much memory as pairs, and looks at every write what the merge holds: no
// more than its budget, and of each source a block and a directory page.
func TestMergesHoldTheirBudget(t *testing.T) {
	const budget, sources = 4 << 20, 48
	for name, v := range map[string]*column.Vector{
		"numbers of many rows": longs(30_000, func(i int) int64 { return int64(i/17) << 20 }),
		"numbers of one row":   longs(30_000, func(i int) int64 { return int64(i) << 9 }),
		"texts of many rows":   texts(21_000, func(i int) string { return fmt.Sprintf("%0100d", i/17) }),
		"two numbers":          longs(30_000, func(i int) int64 { return int64(i / 3 % 2) }),
	} {
		t.Run(name, func(t *testing.T) {
			var rows []uint32
			var from []index.Source
			root, body := build(t, v, v.Len, 0)
			for range sources {
				from, rows = append(from, index.Source{Root: root, Rows: uint32(v.Len), Body: bytes.NewReader(body.Bytes()), Size: int64(body.Len())}), append(rows, uint32(v.Len))
			}
			// Every third row of each goes in front: rows that were together are not.
			m := index.NewOrdinalMap(rows)
			for s := range from {
				to := make([]uint32, v.Len)
				for i := range to {
					to[i] = uint32((i%3*sources+s)*v.Len/3 + i/3)
				}
				m.Scatter(s, 0, to)
			}
			if err := m.Seal(uint32(sources * v.Len)); err != nil {
				t.Fatal(err)
			}
			sink := &watched{}
			sink.base = sink.held()
			spec := index.Spec{Columns: []column.Path{it.Path(v.Type)}, Rows: m.Rows()}
			if root, reason, err := (Kind{}).Merge(spec, from, m, index.Budget{Memory: budget, TempDir: t.TempDir()}, sink); root == nil || err != nil {
				t.Fatal(reason, err)
			}
			t.Logf("held %d KiB in %d writes", sink.most>>10, sink.writes)
			if most := int64(budget + sources*(blockTarget+pageTarget) + int(m.Rows())/8); sink.most > most || sink.writes < 10 {
				t.Errorf("held %d KiB of %d in %d writes", sink.most>>10, most>>10, sink.writes)
			}
		})
	}
}

// watched is a sink that keeps nothing and looks at what the process holds beside what it held at first.
type watched struct {
	discarded
	base, most int64
	writes     int
}

func (w *watched) held() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc) - w.base
}

func (w *watched) Write(p []byte) (int, error) {
	if w.writes++; w.writes%8 == 0 {
		w.most = max(w.most, w.held())
	}
	return w.discarded.Write(p)
}
