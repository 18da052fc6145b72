// Package verify answers: does an index change an answer?
//
// It draws random filters from the values of a table and asks each twice: with the indexes, and reading every row of every
// file. It uses the public API alone, so that it tests what users run.
package verify

import (
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"strings"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// Options bound a verification.
type Options struct {
	Answers  int    // filters to ask
	Seed     uint64 // of the filters
	At       string // snapshot, as in skomer.Query
	Progress func(done int)
}

// Report is what a verification found.
type Report struct {
	Seed     uint64 `json:"seed"`
	Answers  int    `json:"answers"`
	NonEmpty int    `json:"non_empty"` // answers with a row
	// FilesSkipped and FilesTotal are summed over all answers with indexes.
	FilesSkipped int64        `json:"files_skipped"`
	FilesTotal   int64        `json:"files_total"`
	IndexesUsed  []string     `json:"indexes_used"`
	Differences  []Difference `json:"differences"`
}

// Difference is a filter whose answer an index changed.
type Difference struct {
	Filter      string `json:"filter"`
	RowsIndexed int64  `json:"rows_indexed"`
	RowsScanned int64  `json:"rows_scanned"`
}

// Run draws filters and compares their answers: the same rows with the same values, in the same order.
func Run(ctx context.Context, t *skomer.Table, o Options) (*Report, error) {
	rng := rand.New(rand.NewPCG(o.Seed, 0))
	samples, err := draw(ctx, t, o.At, rng)
	if err != nil {
		return nil, err
	}
	d := drawer{rng: rng, samples: samples}
	r := &Report{Seed: o.Seed, IndexesUsed: []string{}, Differences: []Difference{}}
	used := map[string]bool{}
	for r.Answers < o.Answers {
		filter := d.filter(2)
		indexed, err := ask(ctx, t, skomer.Query{Where: filter, At: o.At, Limit: -1}, samples)
		if err != nil {
			return nil, fault.About(filter, err)
		}
		scanned, err := ask(ctx, t, skomer.Query{Where: filter, At: o.At, Limit: -1, NoPrune: true}, samples)
		if err != nil {
			return nil, fault.About(filter, err)
		}
		r.Answers++
		if scanned.stats.Rows > 0 {
			r.NonEmpty++
		}
		r.FilesTotal += int64(indexed.stats.FilesTotal)
		r.FilesSkipped += int64(indexed.stats.FilesTotal - indexed.stats.FilesOpened)
		for _, x := range indexed.stats.IndexesUsed {
			if !used[x] {
				used[x] = true
				r.IndexesUsed = append(r.IndexesUsed, x)
			}
		}
		if indexed.sum != scanned.sum {
			r.Differences = append(r.Differences, Difference{filter, indexed.stats.Rows, scanned.stats.Rows})
		}
		if o.Progress != nil {
			o.Progress(r.Answers)
		}
	}
	return r, nil
}

type answer struct {
	sum   [sha256.Size]byte
	stats skomer.Stats
}

// ask hashes the rows of an answer: where they are and what they hold in the columns that filters name.
func ask(ctx context.Context, t *skomer.Table, q skomer.Query, samples []*sample) (answer, error) {
	q.Select = []string{"_file", "_pos"}
	for _, s := range samples {
		q.Select = append(q.Select, plain(s.name))
	}
	rows, err := t.Query(ctx, q)
	if err != nil {
		return answer{}, err
	}
	hash := newRowHash()
	if err := rows.Each(ctx, hash.add); err != nil {
		return answer{}, err
	}
	return answer{hash.sum(), rows.Stats()}, nil
}

func fields(rows *skomer.Rows) []skomer.Field {
	names, types := rows.Columns()
	out := make([]skomer.Field, len(names))
	for i := range names {
		out[i] = skomer.Field{Name: names[i], Type: types[i]}
	}
	return out
}

// draw reads the table once and samples the values of its primitive top-level columns.
func draw(ctx context.Context, t *skomer.Table, at string, rng *rand.Rand) ([]*sample, error) {
	rows, err := t.Query(ctx, skomer.Query{At: at, Limit: -1, NoIndex: true})
	if err != nil {
		return nil, err
	}
	var samples []*sample
	var slots []int
	for i, f := range fields(rows) {
		if usable(f.Type.Kind) {
			samples = append(samples, &sample{name: ident(f.Name), kind: f.Type.Kind})
			slots = append(slots, i)
		}
	}
	if len(samples) == 0 {
		return nil, fault.New(fault.Unsupported, t.Name(), "has no column that a filter can name")
	}
	return samples, rows.Each(ctx, func(b *skomer.Batch) error {
		for k, slot := range slots {
			for row := range b.Rows {
				if v, ok := b.Cols[slot].Value(row); ok {
					samples[k].add(v, rng)
				}
			}
		}
		return nil
	})
}

func usable(k column.Kind) bool {
	switch k {
	case column.Unknown, column.Struct, column.List, column.Map, column.Variant, column.Geometry, column.Geography:
		return false
	default:
		return true
	}
}

// ident is a column's name in SQL text.
func ident(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func plain(quoted string) string {
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `""`, `"`)
}
