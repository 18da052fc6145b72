package overlay

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
)

// Derived is an object, or a part of one, that was derived for the table as a whole and not for one segment: facts of a
// manifest, a file map, statistics of terms. The overlay keeps the list; what the bytes mean is the business of the room
// that reads them.
type Derived struct {
	Kind string
	Name string // unique within its kind in a version: a manifest path, the id of a run
	// Index is the id of the index that it belongs to, and with which it is dropped; "" where it belongs to none.
	Index    string
	Key      string // of the object, below the overlay's prefix
	Off, Len int64  // bytes of the part
	CRC      uint32 // CRC32C of the part
	// SHA256 is that of the part; zero: not known, so that signed versions do not list it.
	SHA256 [32]byte
	Made   []string
	Meta   json.RawMessage // small; of the room that reads the part
	// Build is the id of the build that wrote the object, where one was declared: one that a vacuum revoked is left out. It
	// is not kept.
	Build string
}

// DerivedKey names a derived object in a version.
type DerivedKey struct{ Kind, Name string }

// Is is the name of the object in a version.
func (e *Derived) Is() DerivedKey { return DerivedKey{e.Kind, e.Name} }

func compareDerived(a, b DerivedKey) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
}

// Derived lists the derived objects of a kind by name: those whose index, if any, is declared and not in quarantine, and that no damaged
// list held. Do not write to it.
func (v *Version) Derived(kind string) []Derived {
	all := v.allDerived()
	from, _ := slices.BinarySearchFunc(all, kind, func(e Derived, kind string) int { return strings.Compare(e.Kind, kind) })
	to := from
	for to < len(all) && all[to].Kind == kind {
		to++
	}
	return all[from:to:to]
}

// EveryDerived lists the derived objects of all kinds that are kept: those that Derived lists, and those of indexes in quarantine.
func (v *Version) EveryDerived() []Derived {
	var out []Derived
	for i, list := range v.lists {
		if list == nil {
			continue
		}
		for k := range list.entries {
			if e := &list.entries[k]; !v.body.lists[i].dead.has(k) && (e.Index == "" || v.indexNo(e.Index) >= 0) {
				out = append(out, *e)
			}
		}
	}
	return out
}

// allDerived is the entries that speak, by kind and name. They are gathered once.
func (v *Version) allDerived() []Derived {
	v.gather.Do(func() {
		seen := map[DerivedKey]bool{}
		for i := len(v.lists) - 1; i >= 0; i-- {
			list := v.lists[i]
			if list == nil {
				continue
			}
			for k := range list.entries {
				e := &list.entries[k]
				if !v.body.lists[i].dead.has(k) && v.speaks(e) && !seen[e.Is()] {
					seen[e.Is()] = true
					v.derived = append(v.derived, *e)
				}
			}
		}
		slices.SortFunc(v.derived, func(a, b Derived) int { return compareDerived(a.Is(), b.Is()) })
	})
	return v.derived
}

// Check compares the bytes of the part with its checksums.
func (e *Derived) Check(raw []byte) error {
	if err := bytescan.CheckCRC(e.Key, raw, e.CRC); err != nil || e.SHA256 == [32]byte{} {
		return err
	}
	return checkSum(e.Key, e.SHA256, raw)
}

func (v *Version) speaks(e *Derived) bool {
	if v.overlay != nil && v.overlay.Keyed() && e.Len > 0 && e.SHA256 == [32]byte{} {
		return false
	}
	if e.Index == "" {
		return true
	}
	n := v.indexNo(e.Index)
	return n >= 0 && !v.muted[n]
}

type derive struct {
	put    []Derived
	remove []DerivedKey
	whole  bool
}

// Derive adds derived objects to the version and removes others. One that is put takes the place of the one with its kind and name;
// of those with equal names the last one counts. One whose index was dropped is left out, and the receipt tells so; so is everything where values
// were erased since the caller's version. Removing what is not
// there is no error.
//
// The caller must have written the objects itself, under names that nobody used before, after it declared its build: an object that
// merely was there already may be one that a vacuum is about to delete.
func Derive(put []Derived, remove []DerivedKey) Change { return derive{put: put, remove: remove} }

// ReplaceDerived puts objects that were made from others in the place of these. Where one of the others is no longer there as
// it was, or the build that wrote one of them was revoked, nothing is put or removed: who merges runs and lost the race begins anew.
func ReplaceDerived(put, made []Derived) Change {
	c := derive{put: put, whole: true}
	for i := range made {
		c.remove = append(c.remove, made[i].Is())
	}
	return replaceDerived{c, made}
}

type replaceDerived struct {
	derive
	made []Derived
}

func (c replaceDerived) apply(ctx context.Context, d *draft) error {
	lost := slices.ContainsFunc(c.put, func(e Derived) bool { return e.Build != "" && d.revoked(e.Build) })
	for i := range c.made {
		at, ok := d.findDerived(c.made[i].Is())
		lost = lost || !ok || d.base.lists[at.list].entries[at.row].Key != c.made[i].Key || d.base.lists[at.list].entries[at.row].Off != c.made[i].Off
	}
	if !lost {
		return c.derive.apply(ctx, d)
	}
	for k := range c.put {
		d.receipt.Unfit = append(d.receipt.Unfit, c.put[k].Is())
	}
	return d.mounted()
}

func (c derive) apply(_ context.Context, d *draft) error {
	if err := d.mounted(); err != nil {
		return err
	}
	for _, key := range c.remove {
		d.removeDerived(key)
	}
	for i := range c.put {
		e := &c.put[i]
		if err := e.check(d.overlay.prefix); err != nil {
			return err
		}
		if d.planned.number < d.base.body.header.ErasedIn || e.Index != "" && !d.declared(e.Index) || e.Build != "" && d.revoked(e.Build) {
			d.receipt.Unfit = append(d.receipt.Unfit, e.Is())
			continue
		}
		d.removeDerived(e.Is())
		kept := *e
		kept.Build = ""
		d.putDerived[e.Is()] = kept
		d.changed = true
	}
	return nil
}

// removeDerived takes an object out of the draft.
func (d *draft) removeDerived(key DerivedKey) {
	if _, ok := d.putDerived[key]; ok {
		delete(d.putDerived, key)
		d.changed = true
	}
	for at, ok := d.findDerived(key); ok; at, ok = d.findDerived(key) {
		d.deadDerived[at.list] = d.deadDerived[at.list].with(at.row)
		d.changed = true
	}
}

// derivedAt is the place of an entry in a version's lists.
type derivedAt struct{ list, row int }

// findDerived finds an entry of base that the draft did not remove.
func (d *draft) findDerived(key DerivedKey) (at derivedAt, ok bool) {
	for i := len(d.base.lists) - 1; i >= 0; i-- {
		if list := d.base.lists[i]; list != nil {
			if row := list.find(key); row >= 0 && !d.deadDerived[i].has(row) {
				return derivedAt{i, row}, true
			}
		}
	}
	return at, false
}

// check refuses what cannot be listed.
func (e *Derived) check(prefix string) error {
	total := len(e.Key) + len(e.Index) + len(e.Meta)
	for _, m := range e.Made {
		total += len(m)
	}
	switch {
	case e.Kind == "" || e.Name == "" || e.Key == "":
		return fault.New(fault.Invalid, prefix, "a derived object needs kind, name and key")
	case strings.HasPrefix(e.Key, "/") || strings.Contains("/"+e.Key+"/", "/../"):
		return fault.New(fault.Invalid, prefix, "a derived object has the key %q, which is not below the prefix", e.Key)
	case e.Off < 0 || e.Len < 0 || e.Off+e.Len < e.Off:
		return fault.New(fault.Invalid, prefix, "no range: offset %d, length %d", e.Off, e.Len)
	case len(e.Kind) > maxName || len(e.Name) > maxPath || len(e.Made) > maxMade || total > maxDerivedBytes:
		return fault.New(fault.Exhausted, prefix, "derived object %q with %d bytes of description, limit %d", e.Name, total, maxDerivedBytes)
	case len(e.Meta) > 0 && !json.Valid(e.Meta):
		return fault.New(fault.Invalid, prefix, "derived object %q with a description that is no JSON", e.Name)
	}
	return nil
}
