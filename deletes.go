package skomer

import (
	"context"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/mask"
	"github.com/skomerdb/skomer/internal/store"
)

// maskFiles is how many data files' masks are saved together.
const maskFiles = 256

// masker finds deleted rows of the table. archive is what an earlier sync saved, nil to do without.
func (t *Table) masker(data store.Store, archive *mask.Archive) *mask.Masker {
	c := t.client
	return &mask.Masker{
		Store: data, Footers: c.footers, Cache: c.masks, Map: t.mapping.Apply, Workers: c.config.Workers, Memory: c.config.Memory / 4,
		Archive: archive,
	}
}

// saveMasks puts what deletes hide in a snapshot into the overlay and tells how many masks are new.
func (t *Table) saveMasks(ctx context.Context, s *facts.Snapshot, data store.Store) (saved int, err error) {
	if s.Deletes.Len() == 0 {
		return 0, nil
	}
	m := t.masker(data, t.archive)
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
