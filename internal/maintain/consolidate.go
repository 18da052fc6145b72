package maintain

import (
	"cmp"
	"context"
	"slices"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
)

// Consolidator makes few large bundles of many small ones. Artifacts of kinds that cover segments are merged, those of one data file
// are copied beside each other; what is about files that no retained snapshot has is left behind. Bundles are merged in tiers, as a
// log-structured merge tree does, so that every byte is written at most three times. Its fields are set once.
type Consolidator struct {
	Overlay  *overlay.Overlay
	Store    store.Store // the overlay's
	Snapshot *facts.Snapshot
	TempDir  string // "": the system's
	Memory   int64  // bytes that merges may hold; 0: 256 MiB
	DryRun   bool
	// Snapshots reads the retained snapshots of the table, those of all refs. Files of none of them are left out of the merged segments.
	// Where it is empty, or a snapshot cannot be read, every file stays.
	Snapshots []func(context.Context) (*facts.Snapshot, error)

	tiers tiering // zero: usualTiers
	short *short  // nil: every bundle is looked at
}

// ConsolidateReport is what a consolidation did, or would do.
type ConsolidateReport struct {
	DryRun       bool
	Version      *overlay.Version
	Before       int               // bundles that artifacts are in
	After        int               // and when it ended; with a dry run, what would be
	Merges       int               // bundles written, each of several
	Segments     int               // artifacts merged from several
	Copied       int               // artifacts taken over as they are
	Dropped      int               // files left out of segments, once per index, since no retained snapshot has them
	Retired      int               // artifacts all of whose files no retained snapshot has
	BytesRead    int64             // of artifacts
	BytesWritten int64             // of bundles
	Passed       map[string]string // bundle → why it was passed over
	Unmerged     map[string]string // index id → why some of its artifacts were copied instead of merged
}

// Run consolidates until no tier is full. Each merge is a commit of its own: one that is interrupted loses itself alone, and the next run
// goes on from there. Of two that run at once the first to commit wins.
func (c *Consolidator) Run(ctx context.Context) (*ConsolidateReport, error) {
	if c.tiers == (tiering{}) {
		c.tiers = usualTiers
	}
	w := &consolidation{Consolidator: c, report: ConsolidateReport{DryRun: c.DryRun, Passed: map[string]string{}, Unmerged: map[string]string{}}}
	err := w.run(ctx)
	return &w.report, err
}

// tiering is when bundles are merged.
type tiering struct {
	full     int64 // the weight of a bundle that is merged no more
	fanOut   int   // how many bundles fill a tier, and the ratio between tiers
	fileRows int64 // what a file weighs at least, in rows
}

// A bundle of 4 M rows or 256 files is full. One file alone weighs a 256th of that, so two merges make full bundles of the smallest.
var usualTiers = tiering{full: unitRows, fanOut: 16, fileRows: unitRows / 256}

// maxFanIn bounds the bundles of one merge, and with them the artifacts that are read side by side.
const maxFanIn = 64

// parcel is a bundle with the artifacts in it that speak.
type parcel struct {
	bundle    string
	sequence  int64
	artifacts []overlay.ArtifactInfo
	weight    int64 // rows, or what its files weigh at least, of the index with the most
	bytes     int64
	dead      bool // most of its files are not in the present snapshot
}

// tasks are the merges that the tiers ask for: each a list of parcels, oldest first.
func (t tiering) tasks(parcels []parcel) [][]parcel {
	slices.SortFunc(parcels, func(a, b parcel) int {
		return cmp.Or(cmp.Compare(a.sequence, b.sequence), cmp.Compare(a.bundle, b.bundle))
	})
	tiers := make([][]parcel, 2)
	var out [][]parcel
	for _, p := range parcels {
		switch {
		case p.weight < t.full/int64(t.fanOut):
			tiers[0] = append(tiers[0], p)
		case p.weight < t.full:
			tiers[1] = append(tiers[1], p)
		case p.dead:
			out = append(out, []parcel{p})
		}
	}
	for _, tier := range tiers {
		for len(tier) > 1 {
			n, weight := 0, int64(0)
			for n < len(tier) && n < maxFanIn && weight < t.full {
				weight += tier[n].weight
				n++
			}
			if n < 2 || n < t.fanOut && weight < t.full {
				break
			}
			out = append(out, tier[:n])
			tier = tier[n:]
		}
	}
	return out
}

// consolidation is one run.
type consolidation struct {
	*Consolidator
	version  *overlay.Version
	present  map[string]bool // paths of the snapshot
	retained map[string]bool // paths of the retained snapshots; nil: not known
	known    bool            // retained was looked for
	report   ConsolidateReport
}

func (w *consolidation) run(ctx context.Context) error {
	w.present = map[string]bool{}
	for _, path := range w.Snapshot.Files.Stated {
		w.present[path] = true
	}
	lost := 0 // merges in a row that others made void
	for first := true; ; first = false {
		parcels, err := w.parcels(ctx)
		if err != nil {
			return err
		}
		if w.report.After = len(parcels); first {
			w.report.Before = len(parcels)
		}
		tasks := w.tiers.tasks(slices.DeleteFunc(parcels, func(p parcel) bool { return w.report.Passed[p.bundle] != "" }))
		if w.DryRun {
			w.foretell(tasks)
			return nil
		}
		if len(tasks) == 0 || lost > 3 {
			return nil
		}
		done, err := w.merge(ctx, tasks[0])
		if err != nil {
			return err
		}
		if lost++; done {
			lost = 0
		}
	}
}

// foretell enters what tasks would do.
func (w *consolidation) foretell(tasks [][]parcel) {
	for _, task := range tasks {
		w.report.Merges++
		w.report.After -= len(task) - 1
		for _, p := range task {
			w.report.BytesRead += p.bytes
		}
	}
	w.report.BytesWritten = w.report.BytesRead
}

// parcels lists the bundles of the newest version. Artifacts of kinds that this build does not know keep their bundle as it is.
func (w *consolidation) parcels(ctx context.Context) ([]parcel, error) {
	v, err := w.latest(ctx)
	if err != nil {
		return nil, err
	}
	if err := v.Broken(); err != nil {
		return nil, fault.About(w.Overlay.Prefix(), err)
	}
	w.version, w.report.Version = v, v
	out, unknown := parcelsOf(v, w.tiers)
	for bundle := range unknown {
		w.report.Passed[bundle] = "holds an index of a kind that this build does not know"
	}
	return out, w.findDead(ctx, out)
}

// latest is the overlay's newest version; of a sync that takes a shortcut without the lists in which every bundle is full.
func (w *consolidation) latest(ctx context.Context) (*overlay.Version, error) {
	if w.short == nil {
		return w.Overlay.Latest(ctx)
	}
	v, err := w.Overlay.Lean(ctx)
	if err != nil {
		return nil, err
	}
	v, _, err = w.short.parcels(ctx, v)
	return v, err
}

// parcelsOf is the bundles of a version, as far as its lists were read, and those with indexes of kinds that this build does not know.
func parcelsOf(v *overlay.Version, tiers tiering) (out []parcel, unknown map[string]bool) {
	at := map[string]int{}
	unknown = map[string]bool{}
	weights := map[[2]string]int64{}
	v.Each(func(a overlay.ArtifactInfo) bool {
		i, ok := at[a.Bundle]
		if !ok {
			i = len(out)
			at[a.Bundle] = i
			out = append(out, parcel{bundle: a.Bundle, sequence: a.Sequence})
		}
		p := &out[i]
		p.artifacts = append(p.artifacts, a)
		p.bytes += a.Body.Len + a.Root.Len
		of := [2]string{a.Bundle, a.IndexID}
		weights[of] += max(int64(a.Rows), int64(a.Files)*tiers.fileRows)
		p.weight = max(p.weight, weights[of])
		if d, ok := v.Index(a.IndexID); !ok || !known(d) {
			unknown[a.Bundle] = true
		}
		return true
	})
	return out, unknown
}

func known(d overlay.Definition) bool {
	k, ok := kinds.ByName(d.Kind)
	return ok && d.KindVersion <= k.Version
}

// findDead marks full parcels of which the retained snapshots have less than half: only then is it worth to read these.
func (w *consolidation) findDead(ctx context.Context, parcels []parcel) error {
	if len(w.Snapshots) == 0 {
		return nil
	}
	for i := range parcels {
		p := &parcels[i]
		if p.weight < w.tiers.full {
			continue
		}
		dead, err := w.mostly(ctx, p, w.present)
		if err != nil {
			return err
		}
		if !dead {
			continue
		}
		if retained := w.retainedPaths(ctx); retained != nil {
			if p.dead, err = w.mostly(ctx, p, retained); err != nil {
				return err
			}
		}
	}
	return nil
}

// mostly tells whether more than half of the rows of a parcel are of files that are not among the paths.
func (w *consolidation) mostly(ctx context.Context, p *parcel, among map[string]bool) (bool, error) {
	gone, all := int64(0), int64(0)
	for _, a := range p.artifacts {
		paths, _, err := w.version.Paths(ctx, a.At)
		if err != nil {
			return false, err
		}
		for i, f := range w.version.Segment(a.At) {
			all += int64(f.Records)
			if i < len(paths) && !among[paths[i]] {
				gone += int64(f.Records)
			}
		}
	}
	return 2*gone > all, nil
}

// retainedPaths is the paths of all retained snapshots, nil where they cannot be known. They are read once.
func (w *consolidation) retainedPaths(ctx context.Context) map[string]bool {
	if w.known || len(w.Snapshots) == 0 {
		return w.retained
	}
	w.known = true
	paths := map[string]bool{}
	for path := range w.present {
		paths[path] = true
	}
	for _, read := range w.Snapshots {
		s, err := read(ctx)
		if err != nil {
			return nil
		}
		for _, path := range s.Files.Stated {
			paths[path] = true
		}
	}
	w.retained = paths
	return paths
}

// tiered reports whether artifacts of the kind cover segments.
func tiered(k kinds.Entry) bool { return k.Scope == index.Tiered }

// Consolidate is the phase of a sync that merges bundles where what the sync built made a tier full.
func Consolidate(c Consolidator) Phase {
	return Phase{Name: "consolidate", Run: func(ctx context.Context, s *State) error {
		if s.Report.Bundles == 0 {
			return nil
		}
		c.Overlay, c.Store, c.Snapshot = s.Overlay, s.Store, s.Snapshot
		if s.short != nil {
			return s.short.consolidate(ctx, c, s)
		}
		report, err := c.Run(ctx)
		if report.Version != nil {
			s.Version = report.Version
		}
		s.Report.BytesWritten += report.BytesWritten
		return err
	}}
}
