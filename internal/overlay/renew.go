package overlay

import (
	"context"
	"slices"
)

// Renewed records that no artifact of the index is of a version of its kind before this one. An index that was dropped stays so.
func Renewed(index string, kindVersion int) Change { return renewed{index, kindVersion} }

type renewed struct {
	id      string
	version int
}

func (r renewed) apply(_ context.Context, d *draft) error {
	i := slices.IndexFunc(d.header.Indexes, func(x Definition) bool { return x.ID == r.id })
	if i >= 0 && d.header.Indexes[i].KindVersion < r.version {
		d.header.Indexes[i].KindVersion, d.changed = r.version, true
	}
	return nil
}
