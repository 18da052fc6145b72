package skomer

import (
	"context"
	"fmt"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/maintain"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store/local"
)

// OverlayVersion is one version of a table's overlay.
type OverlayVersion struct {
	Version    uint64    `json:"version"`
	Committed  time.Time `json:"committed,omitzero"` // by the clock of its writer; zero where that is not known any more
	SnapshotID int64     `json:"snapshot_id"`
	Indexes    int       `json:"indexes"`
	Artifacts  int       `json:"artifacts"`
	Derived    int       `json:"derived"` // objects of the table as a whole
	Bytes      int64     `json:"bytes"`   // of its record
	State      string    `json:"state"`   // newest, kept, expired, unmounted; or damaged, refused, unreadable: and why
}

// Versions lists the newest versions of the overlay, the newest first; 0: all.
func (t *Table) Versions(ctx context.Context, most int) ([]OverlayVersion, error) {
	history, err := t.overlay.History(ctx, most)
	if err != nil {
		return nil, err
	}
	out := make([]OverlayVersion, len(history))
	for i, h := range history {
		out[i] = OverlayVersion{
			Version: h.Number, Committed: h.Committed, SnapshotID: h.Snapshot, Indexes: h.Indexes, Artifacts: h.Artifacts, Derived: h.Derived,
			Bytes: h.Size, State: "kept",
		}
		switch {
		case h.Expired:
			out[i].State = "expired"
		case h.Err != nil:
			out[i].State = unusable(h.Err) + ": " + h.Err.Error()
		case !h.Mounted:
			out[i].State = "unmounted"
		case i == 0:
			out[i].State = "newest"
		}
	}
	return out, nil
}

// unusable tells in a word what an error says of a version.
func unusable(err error) string {
	switch fault.ClassOf(err) {
	case fault.Corrupt, fault.NotFound:
		return "damaged"
	case fault.Refused:
		return "refused"
	default:
		return "unreadable"
	}
}

// Rollback brings back the indexes and artifacts of an earlier overlay version, in a version of its own. The next sync brings them to the
// present snapshot. The table is not touched.
func (t *Table) Rollback(ctx context.Context, version uint64) (*Status, error) {
	v, err := t.mounted(ctx)
	if err != nil {
		return nil, err
	}
	to, err := t.overlay.At(ctx, version)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.New(fault.NotFound, t.name, "overlay version %d cannot be gone back to", version).WithCause(err).
			WithFix("skomer overlay versions %s", t.name)
	}
	if err != nil {
		return nil, err
	}
	receipt, err := t.overlay.Commit(ctx, v, overlay.Rollback(to))
	if err != nil {
		return nil, err
	}
	t.saw(receipt.Version)
	return t.Status(ctx)
}

// Recover makes an overlay usable again of which the newest version, or a part of it, is damaged: the newest readable state
// becomes the newest version. What was lost is scanned until the next sync. Where that state is from before an erasure, only the declarations of its
// indexes come back; a warning of the status says so.
func (t *Table) Recover(ctx context.Context) (*Status, error) {
	v, err := t.overlay.Recover(ctx)
	if err != nil {
		return nil, err
	}
	t.saw(v)
	s, err := t.Status(ctx)
	if err == nil && v.ErasedIn() == v.Number() {
		s.Warnings = append(s.Warnings, fmt.Sprintf("values were erased after what could still be read was written: nothing of it is used any more; "+
			"skomer erase %s --snapshot-gone deletes what is left of it", t.name))
	}
	return s, err
}

// minKey is the least length of an overlay key.
const minKey = 32

// overlayKey is the configured key; nil if there is none.
func (c Config) overlayKey() ([]byte, error) {
	switch n := len(c.OverlayKey); {
	case n == 0:
		return nil, nil
	case n < minKey:
		return nil, fault.New(fault.Invalid, "overlay-key", "has %d characters", n).WithFix("use at least %d, such as those of: openssl rand -hex 32", minKey)
	}
	return []byte(c.OverlayKey), nil
}

// SignOverlay signs the newest version of the overlay with the configured key, whoever wrote it: from then on only what is signed is
// believed, and nobody without the key can change it.
func (t *Table) SignOverlay(ctx context.Context) (*Status, error) {
	v, err := t.overlay.Sign(ctx)
	if err != nil {
		return nil, err
	}
	t.saw(v)
	return t.Status(ctx)
}

// CopyReport is what a copy of an overlay copied.
type CopyReport = maintain.CopyReport

// CopyOverlay copies the newest version of the overlay to an empty place, checking every checksum on the way. There is no overlay at the
// target until all of it is there; a copy that was interrupted goes on when it is run again.
func (t *Table) CopyOverlay(ctx context.Context, to string) (*CopyReport, error) {
	if _, err := t.mounted(ctx); err != nil {
		return nil, err
	}
	if err := t.apart(to); err != nil {
		return nil, err
	}
	if err := overlay.CheckApart(to, t.where); err != nil {
		return nil, fault.New(fault.Refused, to, "lies inside the overlay at %s, or around it", t.where).WithFix("choose another place")
	}
	st, prefix, err := t.client.overlayStore(t.name, to)
	if err != nil {
		return nil, err
	}
	temp, done, err := local.Scratch("copy")
	if err != nil {
		return nil, err
	}
	defer done()
	key, err := t.client.config.overlayKey()
	if err != nil {
		return nil, err
	}
	target := overlay.Open(st, prefix, overlay.Options{Key: key})
	r, err := maintain.Copy{From: t.overlay, To: target, Src: t.overlayStore, Dst: st, TempDir: temp}.Run(ctx)
	return r, local.Spilled(err)
}
