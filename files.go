package skomer

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/maintain"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/store"
)

// defaultSelectFrom is the number of data files from which on a query reads of the manifests only what its filter needs. The facts
// of fewer files are read whole and kept: judging them all costs less than choosing.
const defaultSelectFrom = 1 << 14

// wholeShare: a filter that leaves more than one in so many files is answered from the whole facts, which are then kept.
const wholeShare = 8

// maxViews is how many snapshots a table keeps what was read of, for time travel.
const maxViews = 16

// view is the snapshot that at selects, as far as it was read, from memory while the metadata is fresh enough.
func (t *Table) view(ctx context.Context, at string) (*lake.View, error) {
	t.mu.Lock()
	stale := time.Since(t.read) > t.client.config.MaxStaleness
	t.mu.Unlock()
	if stale {
		if err := t.refresh(ctx); err != nil {
			return nil, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if v := t.views[at]; v != nil {
		return v, nil
	}
	sel := lake.Current()
	if at != "" {
		sel = lake.ParseSelector(at)
	}
	v, err := t.table.View(sel)
	if err != nil {
		return nil, err
	}
	if len(t.views) == maxViews {
		clear(t.views)
	}
	t.views[at] = v
	return v, nil
}

// snapshot is the facts of the snapshot that at selects.
func (t *Table) snapshot(ctx context.Context, at string) (*facts.Snapshot, error) {
	v, err := t.view(ctx, at)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	known := t.version
	t.mu.Unlock()
	return v.Snapshot(ctx, t.kept(known))
}

// kept is where a version says that facts of manifests are; nil if there is none.
func (t *Table) kept(v *overlay.Version) lake.Kept {
	if v == nil || !v.Mounted() {
		return nil
	}
	all := v.Derived(maintain.FactsKind)
	if len(all) == 0 {
		return nil
	}
	// What is read of facts stays in the view: the byte cache would hold it a second time.
	s, _, err := t.client.stores.overlay(t.name)(t.where)
	if err != nil {
		s = t.overlayStore
	}
	return &keptFacts{entries: all, store: s, prefix: t.overlay.Prefix()}
}

// keptFacts finds facts of manifests in an overlay. It implements lake.Kept.
type keptFacts struct {
	entries []overlay.Derived // by name
	store   store.Store
	prefix  string
}

// Find is the head of the facts of a manifest.
func (k *keptFacts) Find(manifest string) (at lake.KeptAt, ok bool) {
	i, ok := slices.BinarySearchFunc(k.entries, manifest, func(d overlay.Derived, name string) int { return strings.Compare(d.Name, name) })
	if !ok {
		return at, false
	}
	d := &k.entries[i]
	at.Key, at.Off, at.Len, at.CRC = k.prefix+"/"+d.Key, d.Off, d.Len, d.CRC
	return at, true
}

// Store is the overlay's.
func (k *keptFacts) Store() store.Store { return k.store }

// files is the facts that a query plans with: of every file of the snapshot, or of those that the filter leaves, and then how many
// others there are.
func (r *Rows) files(ctx context.Context, v *lake.View, tree *predicate.Tree, explain bool) (s *facts.Snapshot, others int, err error) {
	kept := r.table.kept(r.version)
	if r.query.Strict {
		kept = nil
	}
	n, whole := 0, r.query.NoPrune || explain || tree.Kind == predicate.True
	if !whole {
		if n, whole, err = v.Size(ctx); err != nil {
			return nil, 0, err
		}
	}
	if whole || n < r.table.client.config.selectFrom {
		s, err = v.Snapshot(ctx, kept)
		return s, 0, err
	}
	left, ok, err := v.Select(ctx, kept, plan.NewSieve(v.Shell(), tree), n/wholeShare)
	if err != nil {
		return nil, 0, err
	}
	if !ok {
		s, err = v.Snapshot(ctx, kept)
		return s, 0, err
	}
	return left.Snapshot, left.Ruled, nil
}

// behind reports whether an artifact was rejected because the table's metadata that is known here is older than what it was
// built from.
func (r *Rows) behind() bool {
	for _, x := range r.plan.Report.Rejected {
		if x.Reason == lineage.FromFuture.String() {
			return true
		}
	}
	return false
}

// factsFrom is the number of data files from which on a sync keeps what the manifests say.
const factsFrom = 1 << 12

// keepFacts is the phase of a sync that keeps what the manifests of its snapshot say.
func (t *Table) keepFacts() maintain.Phase {
	return maintain.KeepFacts(min(factsFrom, t.client.config.selectFrom), func(ctx context.Context, s *facts.Snapshot) (maintain.FactsSource, error) {
		v, err := t.view(ctx, "")
		if err == nil && v.Shell().ID != s.ID {
			if v, err = t.metadata().View(lake.Selector{ID: s.ID}); fault.Is(err, fault.NotFound) {
				v, err = nil, nil // the table was empty, or its snapshot expired meanwhile
			}
		}
		return maintain.FactsSource{View: v, Kept: t.kept}, err
	})
}
