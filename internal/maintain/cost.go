package maintain

import (
	"fmt"
	"sync"

	"github.com/skomerdb/skomer/internal/store"
)

// Prices is what an object store charges, in US dollars.
type Prices struct {
	Put       float64 // a PUT or LIST request
	Get       float64 // a GET or HEAD request
	ReadByte  float64 // a byte that leaves the store
	MonthByte float64 // a byte that is kept for a month
}

// S3 is the list prices of S3 Standard in us-east-1 as of November 2026 (aws.amazon.com/s3/pricing): 1,000 PUT or LIST requests 0.005
// USD, 1,000 GET or HEAD requests 0.0004 USD, a GB read from another region 0.02 USD, a GB kept for a month 0.023 USD. Reads within the
// region are free, so that the estimate is high there.
var S3 = Prices{Put: 0.005 / 1000, Get: 0.0004 / 1000, ReadByte: 0.02 / 1e9, MonthByte: 0.023 / 1e9}

// Of is the price of usage. Deletes are free.
func (p Prices) Of(u store.Usage) float64 {
	return p.Put*float64(u.Puts+u.Lists) + p.Get*float64(u.Gets+u.Heads) + p.ReadByte*float64(u.BytesRead) + p.MonthByte*float64(u.BytesWritten)
}

// What the requests of a unit are besides those for its files: the declaration and its end, the listing of others, the bundle, a chunk, a
// version and the head, and what is read around them.
const (
	unitPuts = 7
	unitGets = 6
	// bytesWritten is what a unit writes of a byte it reads, until the sync has measured it.
	bytesWritten = 0.5
)

// budget stops a sync before it costs more than a limit.
type budget struct {
	prices Prices
	limit  float64 // 0: none
	used   store.Counter

	mu       sync.Mutex
	held     float64 // estimates of units at work
	size     int64   // of the files of finished units
	read     int64   // bytes that they read
	wrote    int64
	reserved map[string]float64
}

// spent is what the sync has cost so far.
func (b *budget) spent() float64 { return b.prices.Of(b.used.Usage()) }

// estimate is the usage of a unit whose files have size bytes in all; share is the part of their columns that it reads.
func (b *budget) estimate(u unit, size int64, share float64, columns int) store.Usage {
	read, wrote := share, bytesWritten
	if b.size > 0 && b.read > 0 {
		read, wrote = float64(b.read)/float64(b.size), float64(b.wrote)/float64(b.read)
	}
	bytes := float64(size) * min(read, 1)
	return store.Usage{
		Puts: unitPuts, Gets: unitGets + int64(len(u.files))*(2+int64(columns)),
		BytesRead: int64(bytes), BytesWritten: int64(bytes * wrote),
	}
}

// reserve holds the estimated cost of a unit, or tells why the limit does not allow it.
func (b *budget) reserve(id string, estimate store.Usage) (refusal string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	cost := b.prices.Of(estimate)
	if spent := b.spent(); b.limit > 0 && spent+b.held+cost > b.limit {
		return fmt.Sprintf("the next unit would cost about $%.6f, and of $%.6f $%.6f are spent or held", cost, b.limit, spent+b.held)
	}
	if b.reserved == nil {
		b.reserved = map[string]float64{}
	}
	b.reserved[id] = cost
	b.held += cost
	return ""
}

// settle ends what reserve began and learns from it.
func (b *budget) settle(id string, size, read, wrote int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= b.reserved[id]
	delete(b.reserved, id)
	if read > 0 {
		b.size, b.read, b.wrote = b.size+size, b.read+read, b.wrote+wrote
	}
}
