package skomer

import (
	"context"

	"github.com/skomerdb/skomer/internal/overlay"
)

// PauseIndex silences an index, named by id or expression: queries do as if it were not there, while sync keeps building it. A shadow
// check that found other rows than a scan does the same.
func (t *Table) PauseIndex(ctx context.Context, name, reason string) (*Index, error) {
	return t.voice(ctx, name, func(id string) overlay.Change { return overlay.Quarantine(id, reason) })
}

// ResumeIndex lets a silenced index speak again.
func (t *Table) ResumeIndex(ctx context.Context, name string) (*Index, error) {
	return t.voice(ctx, name, overlay.Release)
}

func (t *Table) voice(ctx context.Context, name string, change func(id string) overlay.Change) (*Index, error) {
	v, err := t.mounted(ctx)
	if err != nil {
		return nil, err
	}
	x, err := t.find(ctx, name)
	if err != nil {
		return nil, err
	}
	receipt, err := t.overlay.Commit(ctx, v, change(x.ID))
	if err != nil {
		return nil, err
	}
	t.saw(receipt.Version)
	return t.index(ctx, x.ID)
}
