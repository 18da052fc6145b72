package meter_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/mem"
	"github.com/skomerdb/skomer/internal/store/meter"
	"github.com/skomerdb/skomer/internal/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Subject {
		return storetest.Subject{Store: meter.New(meter.New(mem.New())), Root: "root/"}
	})
}

// TestEachQueryGetsItsOwnNumbers runs queries of different cost at once.
func TestEachQueryGetsItsOwnNumbers(t *testing.T) {
	s := meter.New(mem.New(mem.WithGap(0)))
	_, err := s.PutNew(t.Context(), "o", strings.NewReader(strings.Repeat("x", 1000)))
	require.NoError(t, err)
	before := s.Total()
	var wg sync.WaitGroup
	var want store.Counter
	for query := range 20 {
		wg.Go(func() {
			var own store.Counter
			ctx := store.WithCounter(t.Context(), &own)
			for range 10 {
				var spans []store.Span
				for i := range query {
					spans = append(spans, store.Span{Off: int64(i * 10), Len: 3})
				}
				if query > 0 {
					s.Fetch(ctx, []store.Read{{Key: "o", Spans: spans}})
				}
			}
			n := int64(10 * query)
			expect := store.Usage{Waves: min(n, 10), Gets: n, BytesRead: 3 * n}
			if own.Usage() != expect {
				t.Errorf("query %d: %+v, want %+v", query, own.Usage(), expect)
			}
			want.Add(expect)
		})
	}
	wg.Wait()
	require.Equal(t, want.Usage(), s.Total().Sub(before))
}
