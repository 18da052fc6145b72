// Package verify answers: does an index change an answer?
//
// It draws random filters from the values of a table and asks each twice: with the indexes, and reading every row of every
// file. The first filters are such that one index after the other can answer one; the rest are free combinations. It asks by the
// public API alone, so that it tests what users run.
package verify

import (
	"context"
	"crypto/sha256"
	"math/rand/v2"

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
	d, compared, err := draw(ctx, t, o.At, rng)
	if err != nil {
		return nil, err
	}
	r := &Report{Seed: o.Seed, IndexesUsed: []string{}, Differences: []Difference{}}
	used := map[string]bool{}
	for r.Answers < o.Answers {
		filter := d.next(r.Answers)
		indexed, err := ask(ctx, t, skomer.Query{Where: filter, At: o.At, Limit: -1}, compared)
		if err != nil {
			return nil, fault.About(filter, err)
		}
		scanned, err := ask(ctx, t, skomer.Query{Where: filter, At: o.At, Limit: -1, NoPrune: true}, compared)
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

// ask hashes the rows of an answer: where they are and what they hold in the columns.
func ask(ctx context.Context, t *skomer.Table, q skomer.Query, columns []string) (answer, error) {
	q.Select = append([]string{"_file", "_pos"}, columns...)
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

// draw reads the table once and samples the values of its terms and of its indexes'. It also names the columns whose values answers are
// compared by: those of one plain value a row.
func draw(ctx context.Context, t *skomer.Table, at string, rng *rand.Rand) (*drawer, []string, error) {
	rows, err := t.Query(ctx, skomer.Query{At: at, Limit: -1, NoIndex: true})
	if err != nil {
		return nil, nil, err
	}
	status, err := t.Status(ctx)
	if err != nil {
		return nil, nil, err
	}
	d := &drawer{rng: rng, schema: &column.Schema{}}
	var compared []string
	names, types := rows.Columns()
	for i, name := range names {
		d.schema.Fields = append(d.schema.Fields, column.Field{ID: topLevel + i, Name: name, Type: types[i]})
		if usable(types[i].Kind) {
			compared = append(compared, name)
		}
	}
	d.terms, d.targets = termsOf(d.schema), targetsOf(d.schema, status.Indexes)
	rng.Shuffle(len(d.targets), func(i, j int) { d.targets[i], d.targets[j] = d.targets[j], d.targets[i] })
	if len(d.terms) == 0 {
		return nil, nil, fault.New(fault.Unsupported, t.Name(), "has no column that a filter can name")
	}
	all := append([]*target(nil), d.targets...)
	for _, x := range d.terms {
		all = append(all, &target{terms: []*term{x}})
	}
	return d, compared, rows.Each(ctx, func(b *skomer.Batch) error {
		cols := map[int]*column.Vector{}
		for i, v := range b.Cols {
			cols[topLevel+i] = v
		}
		for _, x := range all {
			if err := x.take(cols, b.Rows, rng); err != nil {
				return err
			}
		}
		return nil
	})
}

// topLevel is the first of the ids that columns of the table get here, above all that fields inside them have: answers tell none.
const topLevel = 1 << 40
