package overlay

import (
	"context"
	"slices"

	"github.com/skomerdb/skomer/internal/fault"
)

// Ends is what a vacuum ends before it deletes anything.
type Ends struct {
	Oldest uint64   // the oldest version that stays readable; never moved back
	Builds []string // whose artifacts may never be published any more
	Purged []string // dropped indexes whose artifacts are deleted from retained versions, too
}

// Revoked is a build that a vacuum took for dead.
type Revoked struct {
	Build string `json:"build"`
	Ms    int64  `json:"ms"` // when, by the clock of the vacuum
}

const (
	maxRevoked = 4096
	// revokedMs is how long a revoked id is remembered: no build runs for as long.
	revokedMs = 30 * 24 * 3600 * 1000
)

type end struct{ Ends }

// End revokes builds and expires versions. It always makes a new version: commits that planned on an older one lose the race,
// and what they wrote before is written anew. So whoever commits it first, and then deletes what no version names, deletes
// nothing that a commit under way is about to name.
//
// Only so many builds can be revoked at a time; Version.Revoked tells which are.
func End(e Ends) Change { return end{e} }

func (c end) apply(_ context.Context, d *draft) error {
	h := &d.header
	h.Vacuumed, d.changed = h.Version, true
	if c.Oldest > 0 {
		h.Expired = max(h.Expired, min(c.Oldest, h.Version)-1)
	}
	h.Revoked = slices.DeleteFunc(slices.Clone(h.Revoked), func(x Revoked) bool { return x.Ms < h.CommittedMs-revokedMs })
	for _, id := range c.Builds {
		if !d.revoked(id) && len(h.Revoked) < maxRevoked {
			h.Revoked = append(h.Revoked, Revoked{id, h.CommittedMs})
		}
	}
	for i := range h.Dropped {
		h.Dropped[i].Purged = h.Dropped[i].Purged || slices.Contains(c.Purged, h.Dropped[i].ID)
	}
	return nil
}

func (d *draft) revoked(build string) bool {
	return slices.ContainsFunc(d.header.Revoked, func(x Revoked) bool { return x.Build == build })
}

// Revoked reports whether a vacuum revoked the build.
func (v *Version) Revoked(build string) bool {
	return slices.ContainsFunc(v.body.header.Revoked, func(x Revoked) bool { return x.Build == build })
}

// Oldest is the oldest version that can still be read.
func (v *Version) Oldest() uint64 { return v.body.header.Expired + 1 }

type rollback struct{ to *Version }

// Rollback brings back the indexes, artifacts and derived objects of an earlier version, and its notion of the table. It must be the
// first change of a commit. A version that expired, or that an erasure came after, is refused. Indexes whose artifacts were purged stay
// dropped.
func Rollback(to *Version) Change { return rollback{to} }

func (c rollback) apply(_ context.Context, d *draft) error {
	if err := d.mounted(); err != nil {
		return err
	}
	h, to := &d.header, c.to
	switch {
	case fault.Is(to.broken, fault.Refused) && d.overlay.Keyed(): // only the newest version can be signed afterwards
		return fault.New(fault.Refused, d.overlay.prefix, "version %d cannot be gone back to", to.number).WithCause(to.broken).
			WithFix("skomer overlay versions TABLE lists those that are signed with the configured key; what was only in others comes back by " +
				"skomer index add and skomer sync")
	case to.broken != nil:
		return fault.About(d.overlay.prefix, to.broken)
	case to.number <= h.Expired:
		return expired(d.overlay.prefix, to.number, h.Expired+1)
	case to.number < h.ErasedIn:
		return fault.New(fault.Refused, d.overlay.prefix, "values were erased in version %d: going back to version %d would bring them back", h.ErasedIn, to.number)
	case d.changed || len(d.fresh) > 0:
		return fault.New(fault.Invalid, d.overlay.prefix, "a rollback must be the first change of a commit")
	case to.number == d.base.number:
		return nil
	}
	dropped := d.header.Dropped
	h.Indexes, h.Upstream = nil, to.Upstream()
	for _, x := range to.Indexes() {
		if !slices.ContainsFunc(dropped, func(y Dropped) bool { return y.ID == x.ID && y.Purged }) {
			h.Indexes = append(h.Indexes, x)
		}
	}
	h.Dropped = slices.DeleteFunc(dropped, func(x Dropped) bool { return d.declared(x.ID) })
	for _, x := range d.base.Indexes() {
		if !d.declared(x.ID) {
			h.drop(x.ID)
		}
	}
	h.Quarantined = slices.DeleteFunc(slices.Clone(h.Quarantined), func(q Quarantined) bool { return !d.declared(q.ID) })
	d.base, d.changed = to, true
	d.tombstones()
	return nil
}

func expired(prefix string, number, oldest uint64) error {
	return fault.New(fault.NotFound, prefix, "version %d has expired; the oldest that is kept is %d", number, oldest)
}

// drop moves an index to the dropped ones.
func (h *header) drop(id string) {
	h.Indexes = slices.DeleteFunc(h.Indexes, func(x Definition) bool { return x.ID == id })
	h.Quarantined = slices.DeleteFunc(slices.Clone(h.Quarantined), func(x Quarantined) bool { return x.ID == id })
	h.Dropped = append(h.Dropped, Dropped{ID: id, Version: h.Version})
	if n := len(h.Dropped); n > maxDropped {
		h.Dropped = h.Dropped[n-maxDropped:]
	}
}

type clearAll struct{}

// Clear ends the mount and every index, and names nothing any more: the overlay is about to be deleted.
func Clear() Change { return clearAll{} }

func (clearAll) apply(_ context.Context, d *draft) error {
	h := &d.header
	if d.base.number == 0 {
		return d.overlay.notMounted()
	}
	d.changed = h.Mounted || len(h.Indexes)+len(d.base.body.chunks)+len(d.base.body.lists) > 0
	for _, x := range slices.Clone(h.Indexes) {
		h.drop(x.ID)
	}
	h.Mounted, d.erased = false, nil
	d.base = d.overlay.versionOf(&body{header: d.base.body.header})
	d.tombstones()
	return nil
}
