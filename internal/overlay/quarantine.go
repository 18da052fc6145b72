package overlay

import (
	"context"
	"slices"

	"github.com/skomerdb/skomer/internal/fault"
)

// Quarantined is an index that is not believed until it is released.
type Quarantined struct {
	ID      string `json:"id"`
	Reason  string `json:"reason"`
	Version uint64 `json:"version"` // the first one in which it is silent
}

const maxReason = 1024

type quarantine struct{ id, reason string }

// Quarantine silences an index: its artifacts and derived objects stay, and a commit sees them, but no query finds them, until it is
// released. An index that is in quarantine already keeps its first reason.
func Quarantine(id, reason string) Change { return quarantine{id, reason} }

func (c quarantine) apply(_ context.Context, d *draft) error {
	if err := d.mounted(); err != nil {
		return err
	}
	if !d.declared(c.id) {
		return fault.New(fault.NotFound, c.id, "no such index").WithFix("skomer index list shows the ids")
	}
	h := &d.header
	if !slices.ContainsFunc(h.Quarantined, func(x Quarantined) bool { return x.ID == c.id }) {
		h.Quarantined = append(slices.Clone(h.Quarantined), Quarantined{c.id, c.reason[:min(len(c.reason), maxReason)], h.Version})
		d.changed = true
	}
	return nil
}

type release struct{ id string }

// Release ends the quarantine of an index: it was built anew, or was found to be right.
func Release(id string) Change { return release{id} }

func (c release) apply(_ context.Context, d *draft) error {
	if err := d.mounted(); err != nil {
		return err
	}
	h := &d.header
	left := slices.DeleteFunc(slices.Clone(h.Quarantined), func(x Quarantined) bool { return x.ID == c.id })
	d.changed = d.changed || len(left) < len(h.Quarantined)
	h.Quarantined = left
	return nil
}

// Quarantined is why the index is in quarantine, if it is.
func (v *Version) Quarantined(id string) (q Quarantined, ok bool) {
	for _, q := range v.body.header.Quarantined {
		if q.ID == id {
			return q, true
		}
	}
	return q, false
}
