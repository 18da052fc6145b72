package maintain

import (
	"context"
	"errors"
	"slices"

	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/scan"
	"github.com/skomerdb/skomer/internal/wave"
)

// mapped is what a sync found out about file maps, for its record.
type mapped struct {
	lacking bool     // a file that should be in a map is not
	holed   []string // runs that have files which left the table, or do not speak for some
}

// note enters what is left to do for the file map, and what its runs are like.
func (k *keeping) note() {
	k.maps.lacking = k.maps.lacking || len(k.uncovered()) > 0
	for _, r := range k.listed {
		if r.Run == nil || k.alive(r) < len(r.Run.Files) {
			k.maps.holed = append(k.maps.holed, r.Name)
		}
	}
}

// keepNew is keep after builds that entered every file that came in the file map: runs are merged as their descriptions ask for, and no other is
// read.
func (k *keeping) keepNew(ctx context.Context) error {
	field := k.index.Definition.FieldIDs[0]
	for _, e := range k.Version.Derived(filemap.Kind) {
		if !scan.OnField(k.Version, e.Index, field) {
			continue
		}
		r := &wave.ListedRun{Derived: e}
		if r.Meta, r.Err = filemap.ParseMeta(e.Name, e.Meta); r.Err != nil {
			return &whole{"a file map cannot be read"}
		}
		k.listed = append(k.listed, r)
	}
	alike, err := k.alike(func(*wave.ListedRun) bool { return true })
	if err != nil {
		return err
	}
	for _, runs := range alike {
		keys := make([]uint64, len(runs))
		for i, r := range runs {
			keys[i] = r.Meta.Keys
		}
		for _, set := range merges(keys) {
			var names []string
			for _, i := range set {
				names = append(names, runs[i].Name)
			}
			if err := k.mergeNew(ctx, names); err != nil {
				return err
			}
		}
	}
	return nil
}

// mergeNew merges some runs of which every file is in the table.
func (k *keeping) mergeNew(ctx context.Context, names []string) error {
	if slices.ContainsFunc(names, func(n string) bool { return slices.Contains(k.short.notes.Holed, n) }) {
		return &whole{"runs of a file map with files that left the table are to be merged"}
	}
	sources, err := k.runs.LoadNamed(ctx, k.Store, k.Overlay.Prefix(), k.Version, names)
	if err != nil {
		return err
	}
	for _, r := range sources {
		if r.Run == nil {
			return &whole{"a file map cannot be read"}
		}
	}
	var bad *filemap.SourceError
	if err := k.merge(ctx, sources); !errors.As(err, &bad) || !lost(err) {
		return err
	}
	return &whole{"a file map cannot be read"}
}
