package maintain

import (
	"bytes"
	"context"
	"encoding/json"
	"path"
	"slices"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/overlay"
)

// FactsKind is the derived objects that hold what a manifest says. Their names are manifest paths.
const FactsKind = "facts"

const (
	// packBytes is how many bytes of manifests go into one pack, so that a sync holds few of them.
	packBytes = 32 << 20
	// maxPacks is how many packs there may be before the small ones are written anew as one.
	maxPacks = 16
	// fewManifests, and so many bytes of them, wait for others to be packed with.
	fewManifests = 4
	fewBytes     = 1 << 20
	// smallPack: a pack is small if it holds less than one in so many bytes of all.
	smallPack = 8
)

// packed is what the overlay records beside the place of a head.
type packed struct {
	Length int64 `json:"length"` // of the manifest
	Bytes  int64 `json:"bytes"`  // about the share of the pack that is the manifest's
}

// FactsSource is a snapshot of the table. A *lake.View is one.
type FactsSource struct {
	View *lake.View // nil: the table has left it behind
	// Kept is how facts that a version lists are read.
	Kept func(*overlay.Version) lake.Kept
}

// KeepFacts is the phase that keeps what the manifests of the current snapshot say, where they list from files data files on.
// Facts of manifests that the snapshot no longer has are dropped.
func KeepFacts(files int, source func(context.Context, *facts.Snapshot) (FactsSource, error)) Phase {
	return Phase{Name: "facts of manifests", Run: func(ctx context.Context, s *State) error {
		from, err := source(ctx, s.Snapshot)
		if err != nil || from.View == nil {
			return err
		}
		k := keeper{State: s, source: from}
		return k.run(ctx, files)
	}}
}

// few tells that manifests are not worth a pack of their own.
func few(manifests []lake.Manifest) bool {
	bytes := int64(0)
	for _, m := range manifests {
		bytes += m.Length
	}
	return len(manifests) < fewManifests && bytes < fewBytes
}

type keeper struct {
	*State
	source FactsSource
}

func (k *keeper) run(ctx context.Context, files int) error {
	var listed []lake.Manifest
	if n, _, err := k.source.View.Size(ctx); err != nil {
		return err
	} else if n >= files {
		if listed, err = k.source.View.Manifests(ctx); err != nil {
			return err
		}
	}
	write, remove := k.missing(k.speakable(listed))
	if few(write) && len(remove) == 0 && len(k.Version.Derived(FactsKind)) > 0 {
		return nil // they are read as they are until there are more
	}
	for len(write) > 0 || len(remove) > 0 {
		n, size := 0, int64(0)
		for n < len(write) && (n == 0 || size+write[n].Length <= packBytes) {
			size += write[n].Length
			n++
		}
		if err := k.pack(ctx, write[:n], remove); err != nil {
			return err
		}
		write, remove = write[n:], nil
	}
	return nil
}

// speakable is the manifests without those that list a file of which rows were erased: the bounds that they state may be the erased values.
func (k *keeper) speakable(listed []lake.Manifest) []lake.Manifest {
	f, erased := &k.Snapshot.Files, map[string]bool{}
	for i := range f.Len() {
		if k.Version.Erased(overlay.Identity{Path: f.Stated[i], Size: f.Size[i], Records: f.Records[i]}) {
			erased[path.Base(f.Manifests[f.Manifest[i]])] = true // names are unique, and paths may be mapped
		}
	}
	return slices.DeleteFunc(slices.Clone(listed), func(m lake.Manifest) bool { return erased[path.Base(m.Path)] })
}

// missing is the manifests that are to be packed, and the entries that are to go. Facts in small packs are packed again when
// there are many packs.
func (k *keeper) missing(listed []lake.Manifest) (write []lake.Manifest, remove []overlay.DerivedKey) {
	known := k.Version.Derived(FactsKind)
	small := smallPacks(known)
	lengths := map[string]int64{}
	for _, d := range known {
		if m, err := metaOf(d); err == nil && !small[d.Key] {
			lengths[d.Name] = m.Length
		}
	}
	now := map[string]bool{}
	for _, m := range listed {
		if now[m.Path] {
			continue
		}
		now[m.Path] = true
		if length, ok := lengths[m.Path]; !ok || length != m.Length {
			write = append(write, m)
		}
	}
	for _, d := range known {
		if !now[d.Name] {
			remove = append(remove, d.Is())
		}
	}
	return write, remove
}

func metaOf(d overlay.Derived) (m packed, err error) {
	err = json.Unmarshal(d.Meta, &m)
	return m, err
}

// smallPacks is the keys of the packs that are worth writing anew.
func smallPacks(known []overlay.Derived) map[string]bool {
	sizes, all := map[string]int64{}, int64(0)
	for _, d := range known {
		m, _ := metaOf(d)
		sizes[d.Key] += m.Bytes
		all += m.Bytes
	}
	small := map[string]bool{}
	if len(sizes) <= maxPacks {
		return small
	}
	for key, size := range sizes {
		if size < all/smallPack {
			small[key] = true
		}
	}
	return small
}

// pack writes one pack, if there are manifests, and commits its entries.
func (k *keeper) pack(ctx context.Context, manifests []lake.Manifest, remove []overlay.DerivedKey) error {
	if len(manifests) == 0 {
		return k.commit(ctx, nil, remove)
	}
	return shielded(ctx, k.Overlay, k.Version, func(id string) error {
		put, err := k.write(ctx, id, manifests)
		if err != nil {
			return err
		}
		return k.commit(ctx, put, remove)
	})
}

// write uploads one pack as the object of a declared build.
func (k *keeper) write(ctx context.Context, id string, manifests []lake.Manifest) (put []overlay.Derived, err error) {
	paths := make([]string, len(manifests))
	for i, m := range manifests {
		paths[i] = m.Path
	}
	object, heads, err := k.source.View.Pack(ctx, k.source.Kept(k.Version), paths)
	if err != nil {
		return nil, err
	}
	name := id + ".facts"
	if _, err := k.Store.PutNew(ctx, k.Overlay.DataKey(name), bytes.NewReader(object)); err != nil {
		return nil, fault.About(name, err)
	}
	k.Report.BytesWritten += int64(len(object))
	for i, h := range heads {
		meta, err := json.Marshal(packed{Length: manifests[i].Length, Bytes: int64(len(object) / len(heads))})
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, name, err)
		}
		put = append(put, overlay.Derived{
			Kind: FactsKind, Name: paths[i], Key: "data/" + name, Off: h.Off, Len: h.Len, CRC: h.CRC, Meta: meta, Build: id,
		})
	}
	return put, nil
}

func (k *keeper) commit(ctx context.Context, put []overlay.Derived, remove []overlay.DerivedKey) error {
	receipt, err := k.Overlay.Commit(ctx, k.Version, overlay.Sparing(overlay.Derive(put, slices.Clip(remove))))
	if err != nil {
		return err
	}
	k.Version = receipt.Version
	return nil
}
