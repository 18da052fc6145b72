package local

import "sync"

// pool bounds the goroutines of a store.
type pool chan struct{}

// newPool allows n goroutines beside the callers' own.
func newPool(n int) pool { return make(pool, max(0, n-1)) }

// each runs f(0) … f(n-1) and waits for all. It borrows goroutines while there are some and works on the caller's
// otherwise, so nested calls cannot wait for each other.
func (p pool) each(n int, f func(int)) {
	var wg sync.WaitGroup
	for i := range n {
		if i == n-1 {
			f(i)
			break
		}
		select {
		case p <- struct{}{}:
			wg.Go(func() {
				defer func() { <-p }()
				f(i)
			})
		default:
			f(i)
		}
	}
	wg.Wait()
}
