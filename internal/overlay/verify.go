package overlay

import (
	"context"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// Verify reads the body of a version and its lists again, every byte of them and nothing from memory, and returns the lists that are not
// what was written, and the mark of an erasure that the version knows nothing of. A body that is damaged is an error, and so is trouble that may pass. A version that expired meanwhile has nothing to
// verify.
func (o *Overlay) Verify(ctx context.Context, number uint64) ([]Warning, error) {
	v, err := o.loadWhole(ctx, number)
	if fault.Is(err, fault.NotFound) {
		if newest, later := o.newestNumber(ctx); later == nil && newest > number {
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if v.broken != nil {
		return nil, fault.About(o.key("versions", versionName(number)), v.broken)
	}
	lost, err := lostParts(v.warnings)
	if err != nil {
		return nil, err
	}
	marks, err := o.lostErasure(ctx, v)
	return append(lost, marks...), err
}

// loadWhole is load with all lists from the store, and with the parts of them that no query needs: a list of which any part is damaged is
// a warning.
func (o *Overlay) loadWhole(ctx context.Context, number uint64) (*Version, error) {
	known, err := o.load(ctx, number)
	if err != nil || known.broken != nil {
		return known, err
	}
	v := o.versionOf(known.body)
	p := parts{version: v}
	p.chunks(nil)
	for i, c := range v.body.chunks {
		p.reads[i].Spans = []store.Span{{Off: 0, Len: c.hotLen}, {Off: c.hotLen, Len: c.wideLen}}
	}
	p.lists(nil)
	if err := p.open(ctx); err != nil {
		return nil, err
	}
	v.bind()
	return v, nil
}

// lostParts is the warnings, all of which must be about what is lost for good.
func lostParts(all []Warning) ([]Warning, error) {
	for _, w := range all {
		if !lasting(w.Reason) || fault.Is(w.Reason, fault.Unsupported) {
			return nil, fault.About(w.Part, w.Reason)
		}
	}
	return all, nil
}
