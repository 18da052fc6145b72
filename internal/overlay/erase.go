package overlay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/skomerdb/skomer/internal/fault"
)

// eraseKey names a data file of which rows were erased: the first 128 bits of SHA-256 over the key of its path and its size and records
// as u64. Tags are no part of it: a file that was copied has another one and the same values.
type eraseKey [16]byte

const maxErased = 1 << 20

func eraseKeyOf(path pathKey, size, records int64) eraseKey {
	b := append([]byte(nil), path[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(size))
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64(b, uint64(records)))
	return eraseKey(sum[:16])
}

func (f *Identity) eraseKey() eraseKey { return eraseKeyOf(keyOf(f.Path), f.Size, f.Records) }

// erasedSet is ascending.
type erasedSet []eraseKey

func (s erasedSet) has(k eraseKey) bool {
	_, ok := slices.BinarySearchFunc(s, k, compareEraseKeys)
	return ok
}

func compareEraseKeys(a, b eraseKey) int { return bytes.Compare(a[:], b[:]) }

type erase struct {
	files   []Identity
	derived []DerivedKey
}

// Erase marks incarnations of data files of which rows were erased, and takes out every artifact that covers one of them, the
// derived objects made from one of them, and those named. From then on no artifact that covers one is published, whenever its build
// read it, unless its build left out the rows that deletes hide, and no rollback goes back behind it. Nothing is listed that was
// derived by who planned on an earlier version, and a build that read one of the files publishes nothing at all: its bundle holds the
// values. The lists of the new version are written anew where they hold tombstones, since entries repeat roots and descriptions.
func Erase(files []Identity, derived []DerivedKey) Change { return erase{files, derived} }

func (c erase) apply(_ context.Context, d *draft) error {
	if err := d.mounted(); err != nil {
		return err
	}
	if lost := d.base.warnings; len(lost) > 0 {
		return fault.New(fault.Refused, lost[0].Part, "what version %d has of the erased files is not known, since a part of it cannot be read", d.base.number).
			WithCause(lost[0].Reason).WithFix("skomer overlay recover TABLE")
	}
	paths := map[string]bool{}
	all := slices.Clone(d.erased)
	for i := range c.files {
		paths[c.files[i].Path] = true
		if k := c.files[i].eraseKey(); !d.erased.has(k) {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, compareEraseKeys)
	if all = slices.Compact(all); len(all) > maxErased {
		return fault.New(fault.Exhausted, d.overlay.prefix, "%d erased files, limit %d", len(all), maxErased)
	}
	d.erased = all
	for i := range d.base.body.chunks {
		d.buryErased(i)
	}
	for _, key := range c.derived {
		d.removeDerived(key)
	}
	for i, list := range d.base.lists {
		if list == nil {
			continue
		}
		for k := range list.entries {
			if slices.ContainsFunc(list.entries[k].Made, func(m string) bool { return paths[m] }) && !d.deadDerived[i].has(k) {
				d.deadDerived[i] = d.deadDerived[i].with(k)
			}
		}
	}
	d.header.ErasedIn, d.changed = d.header.Version, true
	d.stale = d.tombstoned
	return nil
}

// readErased reports whether an artifact of a build covers an erased file, with the rows that were deleted.
func (d *draft) readErased(b *Build) bool {
	if len(d.erased) == 0 {
		return false
	}
	return slices.ContainsFunc(b.Artifacts, func(a Artifact) bool {
		return !a.WithoutDeleted && slices.ContainsFunc(a.Files, func(f Identity) bool { return d.erased.has(f.eraseKey()) })
	})
}

// tombstoned tells which lists of base hold something that does not speak in the draft.
func (d *draft) tombstoned(chunk, list int) bool {
	if list >= 0 {
		l := d.base.lists[list]
		return l != nil && d.speaking(list, func(*Derived) {}) < len(l.entries)
	}
	c := d.base.views[chunk].chunk
	return c != nil && (d.dead[chunk].count() > 0 || slices.ContainsFunc(c.indexes, func(id string) bool { return !d.declared(id) }))
}

// buryErased puts a tombstone on every artifact of a chunk of base that covers an erased incarnation.
func (d *draft) buryErased(chunk int) {
	c := d.base.views[chunk].chunk
	if c == nil {
		return
	}
	for i := range c.files.n {
		f := c.file(i)
		if !d.erased.has(eraseKeyOf(pathKey(c.files.at(i)[:16]), f.size, int64(f.records))) {
			continue
		}
		for r := f.fromRef; r < f.toRef; r++ {
			if artifact, _ := c.ref(r); artifact < c.artifacts.n && !d.dead[chunk].has(artifact) {
				d.dead[chunk] = d.dead[chunk].with(artifact)
			}
		}
	}
}

// ErasedIn is the version of the last erasure, 0: none.
func (v *Version) ErasedIn() uint64 { return v.body.header.ErasedIn }

// Erased reports whether rows of the incarnation were erased, so that only a build that leaves out deleted rows may cover it.
func (v *Version) Erased(f Identity) bool {
	return len(v.body.erased) > 0 && v.body.erased.has(f.eraseKey())
}
