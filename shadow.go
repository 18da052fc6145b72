package skomer

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/scan"
	"github.com/skomerdb/skomer/internal/store"
)

const (
	// defaultShadowBytes bounds the data files that one shadow check scans.
	defaultShadowBytes = 256 << 20
	shadowTimeout      = 5 * time.Minute
)

// digest stands for a set of rows of one data file.
type digest struct {
	rows int64
	sum  uint64
}

// add mixes each position (splitmix64's finaliser) and sums, so that the order of batches does not matter.
func (d *digest) add(b *column.Batch) {
	for i := range b.Rows {
		x := uint64(b.Position(i)) + 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		d.sum += x ^ x>>31
	}
	d.rows += int64(b.Rows)
}

// answer is which rows of which data files, by ordinal, an answer held.
type answer map[int]digest

func (a answer) add(f *scan.File, b *column.Batch) {
	d := a[f.Ordinal]
	d.add(b)
	a[f.Ordinal] = d
}

// sampled is true for the share of queries that are to be checked: those that indexes took part in.
func (r *Rows) sampled() bool {
	share := r.table.client.config.ShadowShare
	return share > 0 && len(r.plan.Report.Used) > 0 && rand.Float64() < share
}

// shadow runs a sample of the files of a finished query again as a scan, behind the caller's back. A kind whose answer differs is
// quarantined: its indexes do not speak on this table until they are released.
func (r *Rows) shadow(ctx context.Context, got answer) {
	c := r.table.client
	select {
	case c.shadowing <- struct{}{}:
	default: // one at a time: checks must not pile up on a busy reader
		return
	}
	t := r.table
	t.background.Go(func() {
		defer func() { <-c.shadowing }()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shadowTimeout)
		defer cancel()
		var usage store.Counter
		kinds, err := r.differing(store.WithCounter(ctx, &usage), got)
		c.metrics.IO(ioOf(usage.Usage()))
		c.metrics.Shadow(err, kinds)
		switch {
		case err != nil:
			c.log.WarnContext(ctx, "a shadow check could not be made", "table", t.name, "reason", err.Error())
		case len(kinds) > 0:
			r.quarantine(ctx, kinds)
		}
	})
}

// What a shadow check finds besides kinds.
const (
	causeOverwritten = "overwritten_file" // a data file has other bytes than when it was indexed, which Iceberg forbids
	causePruning     = "pruning"          // no index is to blame
)

// differing is the kinds whose answer differs from that of a scan, or another cause.
func (r *Rows) differing(ctx context.Context, got answer) ([]string, error) {
	scanned, err := r.plain(ctx, scan.Options{NoIndex: true, Strict: true})
	if err != nil {
		return nil, err
	}
	files := sampleFiles(scanned.Files, r.table.client.config.ShadowBytes)
	truth, err := r.rowsOf(ctx, scanned, files, true)
	if err != nil || equalOn(files, got, truth) {
		return nil, err
	}
	for _, strict := range []bool{true, false} {
		guilty, err := r.guilty(ctx, files, truth, strict)
		switch {
		case !strict && (len(guilty) > 0 || fault.Is(err, fault.Stale)):
			return []string{causeOverwritten}, nil
		case err != nil || len(guilty) > 0:
			return guilty, err
		}
	}
	return []string{causePruning}, nil
}

// guilty asks each index that spoke by itself and returns the kinds of those whose rows are not the true ones.
func (r *Rows) guilty(ctx context.Context, files map[int]bool, truth answer, strict bool) (kinds []string, err error) {
	for _, id := range r.plan.Report.Used {
		d, ok := r.version.Index(id)
		if !ok || slices.Contains(kinds, d.Kind) {
			continue
		}
		alone, err := r.plain(ctx, scan.Options{Only: id, Strict: strict, MinBytes: -1, MinFiles: -1})
		if err != nil {
			return nil, err
		}
		rows, err := r.rowsOf(ctx, alone, files, false)
		if err != nil {
			return nil, err
		}
		if !equalOn(files, rows, truth) {
			kinds = append(kinds, d.Kind)
		}
	}
	return kinds, nil
}

func (r *Rows) plain(ctx context.Context, o scan.Options) (*scan.Plan, error) {
	p := r.planner()
	p.Prove = nil // tags are enough for a sample
	return p.Plan(ctx, r.plan.Snapshot, r.plan.Predicate, r.version, o)
}

// sampleFiles are the ordinals of random files of about so many bytes, at least one.
func sampleFiles(files []scan.File, limit int64) map[int]bool {
	out := map[int]bool{}
	for _, i := range rand.Perm(len(files)) {
		if limit -= files[i].Size; limit < 0 && len(out) > 0 {
			break
		}
		out[files[i].Ordinal] = true
	}
	return out
}

// rowsOf reads which rows of the sampled files a plan finds; all decodes every page.
func (r *Rows) rowsOf(ctx context.Context, p *scan.Plan, files map[int]bool, all bool) (answer, error) {
	p.Files = slices.DeleteFunc(p.Files, func(f scan.File) bool { return !files[f.Ordinal] })
	reader := r.reader()
	reader.KeepAll, reader.Workers = all, 1
	out := answer{}
	counters, err := reader.Read(ctx, p, nil, -1, func(f *scan.File, b *column.Batch) error {
		out.add(f, b)
		return nil
	})
	if err == nil && len(counters.Changed) > 0 {
		err = fault.New(fault.Stale, counters.Changed[0], "was overwritten while it was checked")
	}
	return out, err
}

func equalOn(files map[int]bool, a, b answer) bool {
	for i := range files {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// quarantine silences every index of the kinds.
func (r *Rows) quarantine(ctx context.Context, kinds []string) {
	t := r.table
	log := t.client.log.With("table", t.name, "predicate", r.plan.Predicate.String(), "snapshot", r.plan.Snapshot.ID)
	for _, kind := range kinds {
		switch kind {
		case causePruning:
			log.ErrorContext(ctx, "a pruned scan and a full scan gave different rows, and no index is to blame")
			continue
		case causeOverwritten:
			log.ErrorContext(ctx, "a data file was overwritten in place since it was indexed: skomer sync --sweep finds it")
			continue
		}
		log.ErrorContext(ctx, "an index gave other rows than a scan: every index of its kind is quarantined on this table", "kind", kind)
		for _, d := range r.version.Indexes() {
			if d.Kind != kind {
				continue
			}
			receipt, err := t.overlay.Commit(ctx, nil, overlay.Quarantine(d.ID, "a shadow check found other rows than a scan; skomer reindex TABLE INDEX builds it anew"))
			if err != nil {
				log.ErrorContext(ctx, "an index could not be quarantined", "index", d.ID, "reason", err.Error())
				continue
			}
			t.saw(receipt.Version)
		}
	}
}
