package scan

import (
	"context"
	"sync"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/parquetio"
)

// emit decodes the projection of the units side by side, a few ahead, and hands it on in order, from the caller's goroutine:
// a panic of the caller's code is the caller's. When it returns, no goroutine of it is left.
func (x *run) emit(ctx context.Context, units []*unit) error {
	ctx, cancel := context.WithCancel(ctx)
	q := newQueue(len(units), x.memory()/2)
	defer context.AfterFunc(ctx, q.wake)()
	var g sync.WaitGroup
	defer g.Wait()
	defer cancel()
	for i, started := 0, 0; i < len(units); i++ {
		for ; started < len(units) && started <= i+x.workers(); started++ {
			at := started
			g.Go(func() { q.end(at, units[at].decode(ctx, q, at)) })
		}
		for {
			b, err := q.next(ctx)
			if err != nil {
				return err
			}
			if b == nil {
				break
			}
			x.emitted++
			if err := x.rows(units[i].file.plan, b); err != nil {
				return err
			}
		}
		units[i].held = parquetio.Held{}
	}
	return nil
}

// queue is decoded batches on their way from several goroutines to one, unit by unit in order. Units ahead of their turn stop
// when more than a number of bytes wait; the one whose turn it is always gets one batch through.
type queue struct {
	mu    sync.Mutex
	moved *sync.Cond
	free  int64
	turn  int
	lines []line
}

type line struct {
	batches []*column.Batch
	ended   bool
	err     error
}

func newQueue(units int, bytes int64) *queue {
	q := &queue{free: bytes, lines: make([]line, units)}
	q.moved = sync.NewCond(&q.mu)
	return q
}

func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.moved.Broadcast()
}

// room waits until unit i may go on.
func (q *queue) room(ctx context.Context, i int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for ctx.Err() == nil && q.free <= 0 && (i != q.turn || len(q.lines[i].batches) > 0) {
		q.moved.Wait()
	}
	return ctx.Err()
}

// put adds a batch of unit i, which the queue then owns.
func (q *queue) put(i int, b *column.Batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free -= b.MemorySize()
	q.lines[i].batches = append(q.lines[i].batches, b)
	q.moved.Broadcast()
}

// end tells that unit i has no more batches, and why if it failed.
func (q *queue) end(i int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lines[i].ended, q.lines[i].err = true, err
	q.moved.Broadcast()
}

// next is the next batch of the unit whose turn it is; nil ends the turn.
func (q *queue) next(ctx context.Context) (*column.Batch, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &q.lines[q.turn]
	for len(l.batches) == 0 && !l.ended {
		q.moved.Wait()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	defer q.moved.Broadcast()
	if len(l.batches) == 0 {
		q.turn++
		return nil, l.err
	}
	b := l.batches[0]
	l.batches[0], l.batches = nil, l.batches[1:]
	q.free += b.MemorySize()
	return b, nil
}
