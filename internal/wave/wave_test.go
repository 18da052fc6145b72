package wave

import (
	"bytes"
	"context"
	"testing"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/cache"
	"github.com/skomerdb/skomer/internal/store/mem"
)

// chain reads one byte after another, each at the place that the byte before names.
type chain struct {
	at   []byte
	left int
	fail bool
}

func (c *chain) Need() []store.Span {
	if c.left == 0 {
		return nil
	}
	return []store.Span{{Off: int64(c.at[len(c.at)-1]), Len: 1}}
}

func (c *chain) Feed(data [][]byte) error {
	if c.fail {
		return fault.New(fault.Corrupt, "chain", "told to fail")
	}
	c.at = append(c.at, data[0][0])
	c.left--
	return nil
}

// TestWavesAreTheLongestChain: tasks of 1, 2 and 3 steps over two objects take three waves and not six, neighbours in one
// object are one request, and a task that fails does not hold the others up.
func TestWavesAreTheLongestChain(t *testing.T) {
	ctx := context.Background()
	st := mem.New()
	for _, key := range []string{"a", "b"} {
		if _, err := st.PutNew(ctx, key, bytes.NewReader([]byte{1, 2, 3, 4})); err != nil {
			t.Fatal(err)
		}
	}
	var tasks []*Task
	for i := range 6 {
		tasks = append(tasks, &Task{Key: []string{"a", "b"}[i%2], Steps: &chain{at: []byte{0}, left: 1 + i/2}})
	}
	broken := &Task{Key: "a", Steps: &chain{at: []byte{0}, left: 9, fail: true}}
	missing := &Task{Key: "c", Steps: &chain{at: []byte{0}, left: 1}}
	var c store.Counter
	if err := Run(store.WithCounter(ctx, &c), st, append(tasks, broken, missing)); err != nil {
		t.Fatal(err)
	}
	for i, task := range tasks {
		if got := task.Steps.(*chain).at; task.Err != nil || !bytes.Equal(got, []byte{0, 1, 2, 3}[:2+i/2]) {
			t.Errorf("task %d: %v, %v", i, got, task.Err)
		}
	}
	if !fault.Is(broken.Err, fault.Corrupt) || !fault.Is(missing.Err, fault.NotFound) {
		t.Errorf("the failed tasks say %v and %v", broken.Err, missing.Err)
	}
	if u := c.Usage(); u.Waves != 3 || u.Gets != 7 {
		t.Errorf("%d waves and %d requests, want 3 and 7 (2 objects three times, and a missing one)", u.Waves, u.Gets)
	}
}

// TestOneSpanPastTheEnd spoils its own task only.
func TestOneSpanPastTheEnd(t *testing.T) {
	ctx, st := context.Background(), mem.New()
	if _, err := st.PutNew(ctx, "a", bytes.NewReader([]byte{1, 2, 3, 4})); err != nil {
		t.Fatal(err)
	}
	good, bad := &Task{Key: "a", Steps: &chain{at: []byte{0}, left: 2}}, &Task{Key: "a", Steps: &chain{at: []byte{200}, left: 1}}
	if err := Run(ctx, st, []*Task{good, bad}); err != nil || good.Err != nil || !fault.Is(bad.Err, fault.Corrupt) {
		t.Errorf("run %v, good %v, bad %v", err, good.Err, bad.Err)
	}
}

// TestDamageIsNotKept: bytes that were damaged on the way once do not stay in the cache.
func TestDamageIsNotKept(t *testing.T) {
	ctx, inner := context.Background(), mem.New()
	if _, err := inner.PutNew(ctx, "a", bytes.NewReader([]byte{1, 2, 3, 4})); err != nil {
		t.Fatal(err)
	}
	kept := cache.New(inner, 1<<20, func(string) bool { return true })
	damaged := &Task{Key: "a", Steps: &chain{at: []byte{0}, left: 1, fail: true}}
	for want := int64(1); want <= 2; want++ {
		var c store.Counter
		if err := Run(store.WithCounter(ctx, &c), kept, []*Task{damaged}); err != nil || damaged.Err == nil {
			t.Fatal(err, damaged.Err)
		}
		if c.Usage().Gets != 1 {
			t.Errorf("reading %d came from the cache, which held damaged bytes", want)
		}
		damaged.Err = nil
	}
}

// TestCancelledRun: a cancelled context ends the run with its error.
func TestCancelledRun(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := Run(ctx, mem.New(), []*Task{{Key: "a", Steps: &chain{at: []byte{0}, left: 1}}})
	if err == nil {
		t.Error("a cancelled run ended well")
	}
}
