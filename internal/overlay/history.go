package overlay

import (
	"context"
	"slices"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// Summary is what the body of a version says.
type Summary struct {
	Object
	Committed time.Time // by its writer's clock; zero for one that expired or is damaged
	Snapshot  int64     // of the table, at the last sync
	Indexes   int
	Artifacts int // without tombstones; those of dropped indexes count
	Derived   int // likewise
	Table     Table
	Mounted   bool
	Expired   bool
	Err       error // why it cannot be read
}

// History reads the bodies of the newest versions, at most so many; 0: all.
func (o *Overlay) History(ctx context.Context, most int) ([]Summary, error) {
	all, err := o.Versions(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, o.notMounted()
	}
	if most > 0 && len(all) > most {
		all = all[:most]
	}
	var out []Summary
	oldest := uint64(1)
	for page := range slices.Chunk(all, namesPage) {
		reads := make([]store.Read, len(page))
		for i, v := range page {
			reads[i] = store.Read{Key: v.Key}
		}
		for i, r := range o.store.Fetch(ctx, reads) {
			s := o.summary(page[i], r)
			if len(out) == 0 && s.Err == nil && !s.Expired {
				b, _ := o.parse(page[i].Key, page[i].Number, r.Data[0]) // as summary did
				oldest = b.header.Expired + 1
			}
			s.Expired = s.Expired || s.Number < oldest
			out = append(out, s)
		}
		if err := ctx.Err(); err != nil {
			return nil, fault.About(o.prefix, err)
		}
	}
	return out, nil
}

func (o *Overlay) summary(at Object, r store.Result) Summary {
	s := Summary{Object: at, Err: r.Err}
	if r.Err != nil {
		return s
	}
	if isStub(r.Data[0]) {
		s.Expired = true
		return s
	}
	b, err := o.parse(at.Key, at.Number, r.Data[0])
	if err != nil {
		s.Err = err
		return s
	}
	h := &b.header
	s.Committed, s.Snapshot, s.Indexes, s.Mounted = time.UnixMilli(h.CommittedMs), h.Upstream.SnapshotID, len(h.Indexes), h.Mounted
	s.Table = h.Table
	for _, c := range b.chunks {
		s.Artifacts += c.artifacts - c.dead.count()
	}
	for _, c := range b.lists {
		s.Derived += c.entries - c.dead.count()
	}
	return s
}
