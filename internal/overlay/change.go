package overlay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
)

// Change is one step from a version to the next. Several of them can be committed together. After a lost race a change is
// applied anew to the version that won.
type Change interface {
	apply(ctx context.Context, d *draft) error
}

// draft is the version that a commit is making.
type draft struct {
	overlay *Overlay
	planned *Version // the version that the caller saw
	base    *Version // the version that is built upon; version 0 is the empty one
	commit  string
	header  header
	dead    []bitset // per chunk of base
	fresh   []entry
	merge   []int            // chunks of base that are written anew together with fresh
	taken   map[claimed]bool // by fresh
	keys    map[Key]bool     // of fresh
	bundles map[string]bundleInfo

	erased      erasedSet
	deadDerived []bitset // per list of base
	putDerived  map[DerivedKey]Derived
	mergeLists  []int // lists of base that are written anew
	// stale tells of a chunk, or of a list of derived objects, that it is to be written anew; the other number is -1.
	stale func(chunk, list int) bool

	inlined int              // bytes of roots in fresh
	columns []lineage.Column // of the artifact before
	shape   string           // and their JSON
	receipt *Receipt
	changed bool
}

// claimed is what at most one artifact may be for.
type claimed struct {
	index string
	file  Identity
}

// Receipt is the outcome of a commit.
type Receipt struct {
	Version   *Version
	Changed   bool         // false: nothing was left to do, and Version is the one that already said so
	Indexes   []string     // per Add, in order: the id of the new index or of the equal one that was there
	Discarded []Discarded  // artifacts that were not published
	Unfit     []DerivedKey // derived objects that were not put: their index is dropped, or what they were made from is gone
}

// Discarded is an artifact that was not published, and why.
type Discarded struct {
	Build    string
	Artifact int // its number in the build
	IndexID  string
	Reason   string
}

type mount struct {
	table    Table
	upstream Upstream
}

// Mount makes the overlay that of a table, or mounts it again after Unmount. An overlay of another table is refused.
func Mount(t Table, u Upstream) Change {
	t.UUID = strings.ToLower(t.UUID)
	return mount{t, u}
}

func (m mount) apply(_ context.Context, d *draft) error {
	h := &d.header
	if d.base.number == 0 {
		h.Table, h.Upstream, h.Mounted, d.changed = m.table, m.upstream, true, true
		return nil
	}
	if h.Table.UUID != m.table.UUID || m.table.UUID == "" && h.Table.Location != m.table.Location {
		return fault.New(fault.Refused, d.overlay.prefix, "belongs to table %s at %s, not to %s", orNone(h.Table.UUID), h.Table.Location, orNone(m.table.UUID)).
			WithFix("give the table an overlay of its own with --overlay")
	}
	if !h.Mounted || h.Table != m.table {
		h.Table, h.Mounted, d.changed = m.table, true, true
	}
	return nil
}

type unmount struct{}

// Unmount ends the mount. Indexes and artifacts stay, and a later Mount finds them.
func Unmount() Change { return unmount{} }

func (unmount) apply(_ context.Context, d *draft) error {
	if err := d.mounted(); err != nil {
		return err
	}
	d.header.Mounted, d.changed = false, true
	return nil
}

type add struct{ def Definition }

// AddIndex declares an index. If an equal one is declared already, by whomever, that one is meant.
func AddIndex(def Definition) Change { return add{def} }

func (a add) apply(_ context.Context, d *draft) error {
	if err := d.mounted(); err != nil {
		return err
	}
	def := a.def
	if def.Kind == "" || len(def.FieldIDs) == 0 {
		return fault.New(fault.Invalid, "index", "needs a kind and at least one column")
	}
	for _, other := range d.header.Indexes {
		if sameIndex(other, def) {
			d.receipt.Indexes = append(d.receipt.Indexes, other.ID)
			return nil
		}
	}
	if len(d.header.Indexes) == maxIndexes {
		return fault.New(fault.Exhausted, d.overlay.prefix, "has %d indexes already", maxIndexes)
	}
	def.CreatedVersion = d.header.Version
	if def.ID == "" {
		def.ID = d.newID(def)
	}
	if d.idUsed(def.ID) {
		return fault.New(fault.Invalid, def.ID, "this index id is or was in use")
	}
	def.FieldIDs, def.Names, def.Params = slices.Clone(def.FieldIDs), slices.Clone(def.Names), maps.Clone(def.Params)
	d.header.Indexes = append(d.header.Indexes, def)
	d.receipt.Indexes = append(d.receipt.Indexes, def.ID)
	d.changed = true
	return nil
}

func sameIndex(a, b Definition) bool {
	return a.Kind == b.Kind && slices.Equal(a.FieldIDs, b.FieldIDs) && maps.Equal(a.Params, b.Params)
}

// newID is the kind and a hash of definition, commit and version, so that a dropped index never comes back under its old id.
func (d *draft) newID(def Definition) string {
	b, _ := json.Marshal(def)
	sum := sha256.Sum256(append(b, d.commit...))
	return def.Kind + "-" + hex.EncodeToString(sum[:5])
}

func (d *draft) idUsed(id string) bool {
	return slices.ContainsFunc(d.header.Indexes, func(x Definition) bool { return x.ID == id }) ||
		slices.ContainsFunc(d.header.Dropped, func(x Dropped) bool { return x.ID == id })
}

type drop struct{ id string }

// DropIndex ends an index: from this version on its artifacts do not speak, whatever builds are under way.
func DropIndex(id string) Change { return drop{id} }

func (c drop) apply(_ context.Context, d *draft) error {
	if err := d.mounted(); err != nil {
		return err
	}
	if !d.declared(c.id) {
		if slices.ContainsFunc(d.header.Dropped, func(x Dropped) bool { return x.ID == c.id }) {
			return nil
		}
		return fault.New(fault.NotFound, c.id, "no such index").WithFix("skomer index list shows the ids")
	}
	d.header.drop(c.id)
	d.changed = true
	return nil
}

type synced struct{ upstream Upstream }

// Synced records the state of the table that the overlay was brought to. If another sync committed in between, the state
// with the later metadata stays.
func Synced(u Upstream) Change { return synced{u} }

func (s synced) apply(_ context.Context, d *draft) error {
	if err := d.mounted(); err != nil {
		return err
	}
	now := d.header.Upstream
	raced := !d.planned.Upstream().Equal(now)
	if now.Equal(s.upstream) || raced && now.LastUpdatedMs > s.upstream.LastUpdatedMs {
		return nil
	}
	d.header.Upstream, d.changed = s.upstream, true
	return nil
}

func (d *draft) mounted() error {
	if !d.header.Mounted {
		return d.overlay.notMounted()
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
