package maintain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/overlay"
)

const (
	// recordRule is the version of what a record claims: a later one is not believed, nor is this one by later versions.
	recordRule = 1
	// lookEvery is how long syncs may go without a look at every file.
	lookEvery = 24 * time.Hour
	maxNamed  = 256 // runs that a record names
)

// notes is what a sync that found the indexes complete writes into the overlay's record of it: what the next one needs to know of files, lists,
// bundles and runs that it will not look at.
type notes struct {
	Rule     int    `json:"rule"`
	Basis    string `json:"basis"`     // what the claim depends on, beside the files: see basis
	LookedMs int64  `json:"looked_ms"` // when every file was looked at last, by that sync's clock
	// Tiers sums up the bundles that are not full. Closed and Open are the lists of artifacts with the number of those that ended: the closed
	// ones hold no artifact of such a bundle.
	Tiers  [2]tierSum     `json:"tiers"`
	Closed map[string]int `json:"closed,omitempty"`
	Open   map[string]int `json:"open,omitempty"`
	// Gone tells that a bundle that is not full, or most of a full one, is about files that are not in the snapshot. Holed names the runs of file
	// maps of which that is true of some files.
	Gone  bool     `json:"gone,omitempty"`
	Holed []string `json:"holed,omitempty"`
	// Stale tells that something was refused of a file that is not in the snapshot.
	Stale bool `json:"stale,omitempty"`
	// Rolled is the lists of artifacts whose files are all on the roll, which Roll tells from others: see rollName.
	Roll   string   `json:"roll,omitempty"`
	Rolled []string `json:"rolled,omitempty"`
}

// tierSum is the bundles of a tier and what they weigh together.
type tierSum struct {
	Bundles int   `json:"bundles"`
	Weight  int64 `json:"weight"`
}

// sum adds up the parcels of each tier; full ones count in neither.
func (t tiering) sum(parcels []parcel) (out [2]tierSum) {
	for _, p := range parcels {
		t.add(&out, p.weight)
	}
	return out
}

func (t tiering) add(sums *[2]tierSum, weight int64) {
	n := 0
	switch {
	case weight >= t.full:
		return
	case weight >= t.full/int64(t.fanOut):
		n = 1
	}
	sums[n].Bundles++
	sums[n].Weight += weight
}

// due tells whether tasks would find one in a tier.
func (t tiering) due(sums [2]tierSum) bool {
	return slices.ContainsFunc(sums[:], func(s tierSum) bool { return s.Bundles > 1 && (s.Bundles >= t.fanOut || s.Weight >= t.full) })
}

// basis is a hash of what a claim of completeness depends on beside the files of the snapshot: the declarations, what this build makes of them, and how
// the columns of files are found.
func basis(v *overlay.Version, s *facts.Snapshot) string {
	h := sha256.New()
	say := func(x any) {
		raw, err := json.Marshal(x)
		fmt.Fprintf(h, "%s %v\n", raw, err)
	}
	for _, d := range v.Indexes() {
		k, ok := kinds.ByName(d.Kind)
		q, _ := v.Quarantined(d.ID)
		say([]any{d.ID, d.Kind, d.KindVersion, d.FieldIDs, ok, k.Version, q.Version})
		for _, name := range slices.Sorted(maps.Keys(d.Params)) { // none is none, whether or not it was read
			say([2]string{name, d.Params[name]})
		}
	}
	specs := make([]int, 0, len(s.Specs))
	for id := range s.Specs {
		specs = append(specs, id)
	}
	slices.Sort(specs)
	say([]any{recordRule, s.TableUUID, s.FormatVersion, s.Schema.ID, s.NameMapping, specs, v.ErasedIn()})
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// claim is what the sync may claim after its phases, and the roll that goes with it; a zero claim claims nothing.
func (r *run) claim(ctx context.Context) (c overlay.Complete, roll []byte, err error) {
	none := overlay.Complete{}
	if r.short != nil {
		c, err = r.short.record(r.report.Version, r.snapshot)
		return c, nil, err
	}
	if r.only != nil || r.moved != nil || r.maps.lacking || !r.recordable() {
		return none, nil, nil
	}
	v, err := r.report.Version.Full(ctx)
	if err != nil {
		return none, nil, err
	}
	covers, ok := r.complete(v)
	if !ok {
		return none, nil, nil
	}
	n := notes{Rule: recordRule, Basis: basis(v, r.snapshot), LookedMs: r.start.UnixMilli(), Holed: r.maps.holed}
	parcels, unknown := parcelsOf(v, usualTiers)
	if len(unknown) > 0 || len(n.Holed) > maxNamed {
		return none, nil, nil
	}
	n.Tiers = usualTiers.sum(parcels)
	n.shelve(v, parcels)
	n.Gone = slices.ContainsFunc(parcels, func(p parcel) bool { return p.gone(covers) })
	n.Stale = r.refused.stale(r.stillThere())
	if chunks := v.Chunks(); len(chunks) >= rollFrom {
		roll = v.Roll()
		n.Roll = rollName(int64(len(roll)), bytescan.CRC32C(roll))
		for _, c := range chunks {
			n.Rolled = append(n.Rolled, c.Name)
		}
	}
	c, err = n.claim(r.snapshot.ID, v.Number())
	return c, roll, err
}

// recordable tells that the overlay is one of which a later sync need not see everything.
func (r *run) recordable() bool {
	v := r.report.Version
	return len(r.report.Skipped) == 0 && !r.Overlay.Keyed() && v.ErasedIn() == 0 && len(v.Warnings()) == 0 &&
		!slices.ContainsFunc(v.Indexes(), func(d overlay.Definition) bool {
			_, silent := v.Quarantined(d.ID)
			return silent || d.Kind == SketchKind
		})
}

const (
	// RollKind is the derived object that holds the roll of the files which artifacts are about.
	RollKind = "roll"
	// rollFrom is the number of lists of artifacts from which on a roll is worth its request.
	rollFrom = 3
)

// rollName tells a roll from others: of two syncs that end at once, one may leave the record and the other the roll.
func rollName(length int64, crc uint32) string { return fmt.Sprintf("%d-%08x", length, crc) }

// putRoll writes a roll under a declared build.
func (r *run) putRoll(ctx context.Context, id string, roll []byte) (overlay.Change, error) {
	key := "derived/" + id + ".roll"
	if _, err := r.Store.PutNew(ctx, r.Overlay.Prefix()+"/"+key, bytes.NewReader(roll)); err != nil {
		return nil, fault.About(key, err)
	}
	r.report.BytesWritten += int64(len(roll))
	return overlay.Derive([]overlay.Derived{{
		Kind: RollKind, Name: RollKind, Key: key, Len: int64(len(roll)), CRC: bytescan.CRC32C(roll), Build: id,
	}}, nil), nil
}

func (n *notes) claim(snapshot int64, version uint64) (overlay.Complete, error) {
	raw, err := json.Marshal(n)
	return overlay.Complete{SnapshotID: snapshot, Version: version, Notes: raw}, err
}

// shelve notes which lists hold artifacts of bundles that are not full. Lists that were not read stay what they were noted as, or count as open.
func (n *notes) shelve(v *overlay.Version, parcels []parcel) {
	open := map[int32]bool{}
	for _, p := range parcels {
		for _, a := range p.artifacts {
			open[a.At.Chunk] = open[a.At.Chunk] || p.weight < usualTiers.full
		}
	}
	was := n.Closed
	n.Closed, n.Open = map[string]int{}, map[string]int{}
	for i, c := range v.Chunks() {
		dead, known := was[c.Name]
		if c.Read && !open[int32(i)] || !c.Read && known && dead == c.Dead {
			n.Closed[c.Name] = c.Dead
		} else {
			n.Open[c.Name] = c.Dead
		}
	}
}

// covers is how many files and rows of the snapshot artifacts are about.
type covers map[overlay.Place]struct {
	files int
	rows  int64
}

// complete tells whether every file is covered by every index that can be built, or was found not to be worth it.
func (r *run) complete(v *overlay.Version) (covers, bool) {
	f, out, seen := &r.snapshot.Files, covers{}, map[string]bool{}
	var found []overlay.Placement
	for i, path := range f.Stated {
		if seen[path] {
			continue
		}
		seen[path] = true
		found = v.AppendCovering(found[:0], path)
		for n, d := range v.Indexes() {
			if r.covered(v, i, n, found) {
				continue
			}
			x, ok := r.index(d)
			if ok && !r.refused.holds(d.ID, x.Kind.Algorithm(), path, f.Size[i], f.Records[i]) {
				return nil, false
			}
		}
		for _, p := range found {
			c := out[p.At]
			c.files, c.rows = c.files+1, c.rows+int64(p.Rows)
			out[p.At] = c
		}
	}
	return out, true
}

// gone tells of a parcel that is not full whether it is about a file that is not in the snapshot, and of a full one whether that is true of most
// of its rows.
func (p *parcel) gone(c covers) bool {
	rows, gone := int64(0), int64(0)
	for _, a := range p.artifacts {
		if p.weight < usualTiers.full && c[a.At].files < a.Files {
			return true
		}
		rows, gone = rows+int64(a.Rows), gone+int64(a.Rows)-c[a.At].rows
	}
	return p.weight >= usualTiers.full && 2*gone > rows
}
