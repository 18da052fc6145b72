package skomer

import (
	"context"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/mask"
	"github.com/skomerdb/skomer/internal/scan"
	"github.com/skomerdb/skomer/internal/store"
)

// maskFiles is how many data files' masks are saved together.
const maskFiles = 256

// masker finds deleted rows of the table by the table alone.
func (t *Table) masker(data store.Store) *mask.Masker {
	c := t.client
	return &mask.Masker{
		Store: data, Footers: c.footers, Cache: c.masks, Map: t.mapping.Apply, Workers: c.config.Workers, Memory: c.config.Memory / 4,
	}
}

// masker finds deleted rows with the help of the overlay: masks that a sync saved, and indexes of the keys. A strict query does
// without.
func (r *Rows) masker() *mask.Masker {
	m := r.table.masker(r.data)
	if r.version == nil || !r.version.Mounted() || r.query.Strict {
		return m
	}
	m.Archive = r.table.archive
	m.Evidence, m.EvidenceFrom = &scan.Evidence{Planner: r.planner(), Version: r.version}, r.table.client.config.MinPlannedScanBytes
	return m
}

// saveMasks puts what deletes hide in a snapshot into the overlay and tells how many masks are new.
func (t *Table) saveMasks(ctx context.Context, s *facts.Snapshot, data store.Store) (saved int, err error) {
	if s.Deletes.Len() == 0 {
		return 0, nil
	}
	m := t.masker(data)
	m.Archive = t.archive
	for at := 0; at < s.Files.Len(); at += maskFiles {
		files := make([]mask.File, min(maskFiles, s.Files.Len()-at))
		for i := range files {
			files[i].Ordinal = at + i
		}
		_, report, err := m.Masks(ctx, s, files, mask.Options{Save: true})
		saved += report.Saved
		if err != nil {
			return saved, err
		}
	}
	return saved, nil
}
