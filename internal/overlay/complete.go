package overlay

import (
	"context"
	"encoding/json"
	"slices"
)

// Complete is the record of a sync that found the indexes complete: every file of a snapshot of the table was covered, or was one that an index
// has nothing to say of. It spares later syncs from looking at these files again.
//
// It holds until a commit may have taken something away. Which do not is known of few changes: publishing what replaces nothing, listing derived
// objects, merging lists, and what Sparing vouches for. A Skomer that does not know the record drops it with its next commit.
type Complete struct {
	SnapshotID int64           `json:"snapshot_id"`
	Version    uint64          `json:"version"` // of the overlay, that was looked at
	Notes      json.RawMessage `json:"notes"`   // of who looked
}

const maxNotes = 64 << 10

// Complete is the record, if it holds.
func (v *Version) Complete() (c Complete, ok bool) {
	h := &v.body.header
	if h.Complete == nil || h.Lowered > h.Complete.Version || h.Complete.SnapshotID != h.Upstream.SnapshotID {
		return c, false
	}
	return *h.Complete, true
}

type complete struct{ record Complete }

// Completed puts a record in the place of the one before. It is left out if something was taken away since the version that it speaks of, or if
// the overlay was brought to another snapshot meanwhile.
func Completed(c Complete) Change { return complete{c} }

func (c complete) apply(_ context.Context, d *draft) error {
	if err := d.mounted(); err != nil {
		return err
	}
	h := &d.header
	if c.record.Version == 0 || h.Lowered > c.record.Version || h.Upstream.SnapshotID != c.record.SnapshotID || len(c.record.Notes) > maxNotes {
		d.changed = d.changed || h.Complete != nil
		h.Complete = nil
		return nil
	}
	record := c.record
	h.Complete, d.changed = &record, true
	return nil
}

type sparing struct{ Change }

// Sparing vouches for a change that takes nothing away from what a record of completeness speaks of, though it replaces or removes something.
func Sparing(c Change) Change {
	if _, ok := c.(touching); !ok {
		return c
	}
	return sparing{c}
}

// lowered notes whether the draft may lack something. Of a base that does not tell, a Skomer made it that knows no records: it may.
func (d *draft) lowered(changes []Change) {
	switch h := &d.header; {
	case slices.ContainsFunc(changes, lowers):
		h.Lowered = h.Version
	case h.Lowered == 0:
		h.Lowered = h.Version - 1
	}
}

// lowers reports whether a change may take something away.
func lowers(c Change) bool {
	switch c := c.(type) {
	case *publish:
		for b := range c.builds {
			for i := range c.builds[b].Artifacts {
				if len(c.builds[b].Artifacts[i].Replaces) > 0 {
					return true
				}
			}
		}
		return c.repair
	case derive:
		return len(c.remove) > 0
	case replaceDerived:
		return c.lowers()
	case retire:
		return len(c.keys) > 0
	case synced, built, complete, compact, sparing, end:
		return false
	default:
		return true
	}
}

// lowers reports whether objects go without others in their place, or only the description of one changes.
func (c replaceDerived) lowers() bool {
	for i := range c.put {
		for k := range c.made {
			if c.put[i].Key == c.made[k].Key {
				return true
			}
		}
	}
	return len(c.put) == 0 && len(c.made) > 0
}
