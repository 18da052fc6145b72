package maintain

import (
	"context"

	"github.com/skomerdb/skomer/internal/build"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
)

// Phase is a step of a sync that follows its builds and precedes the record of the table's state. It commits what it makes. An
// error ends the sync: what was published stays, and the next sync runs the phase again.
type Phase struct {
	Name string // what errors call it
	Run  func(ctx context.Context, s *State) error
}

// State is what a phase works on.
type State struct {
	Overlay     *overlay.Overlay
	Store, Data store.Store // the overlay's, the table's
	Snapshot    *facts.Snapshot
	Version     *overlay.Version // the newest one known; a phase that commits puts here what its commit left
	Build       *build.Builder
	Report      *Report

	short *short // nil: every file is looked at
	maps  mapped
}

// phases runs the syncer's phases in their order.
func (r *run) phases(ctx context.Context) error {
	s := r.state()
	for _, p := range r.Phases {
		if err := p.Run(ctx, s); err != nil {
			return fault.About(p.Name, err)
		}
		r.report.Version = s.Version
	}
	r.maps = s.maps
	return nil
}

// state is what a phase would see now.
func (r *run) state() *State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &State{
		Overlay: r.Overlay, Store: r.Store, Data: r.Build.Store, Snapshot: r.snapshot, Version: r.report.Version, Build: r.Build,
		Report: &r.report, short: r.short,
	}
}
