package overlay

import (
	"bytes"
	"context"
	"slices"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// A roll is the sorted hashes of the paths of all files that a version's artifacts are about: it tells in one short read that no list has a file.
// It is an object of 8 bytes a file: the first half of each path key as chunks have it, ascending, without repeats.
const (
	rollWidth = 8
	maxRoll   = 1 << 30
)

// Roll makes the roll of a version that is whole.
func (v *Version) Roll() []byte {
	var all [][rollWidth]byte
	for i := range v.views {
		if c := v.views[i].chunk; c != nil {
			for k := range c.files.n {
				all = append(all, [rollWidth]byte(c.files.at(k)))
			}
		}
	}
	slices.SortFunc(all, func(a, b [rollWidth]byte) int { return bytes.Compare(a[:], b[:]) })
	all = slices.Compact(all)
	out := make([]byte, 0, len(all)*rollWidth)
	for _, k := range all {
		out = append(out, k[:]...)
	}
	return out
}

// OffRoll tells that none of the paths is on the roll that e lists. The read has no checksum of its own, as those of Reach.
func (o *Overlay) OffRoll(ctx context.Context, e *Derived, paths []string) (bool, error) {
	if e.Len <= 0 || e.Len > maxRoll || e.Len%rollWidth != 0 {
		return false, nil
	}
	s := sortedKeys{e.Len / rollWidth, e.Off, rollWidth, rollWidth}
	keys := make([]pathKey, len(paths))
	for i, p := range paths {
		keys[i] = keyOf(p)
	}
	slices.SortFunc(keys, func(a, b pathKey) int { return bytes.Compare(a[:], b[:]) })
	keys = slices.Compact(keys)
	spans := s.windows(keys)
	if len(keys) == 0 || spans == nil {
		return len(keys) == 0, nil
	}
	r := o.store.Fetch(ctx, []store.Read{{Key: o.key(e.Key), Spans: spans}})[0]
	if r.Err != nil {
		return false, fault.About(e.Key, r.Err)
	}
	for i, span := range spans {
		if !s.lacks(keys[i], span, r.Data[i]) {
			return false, nil
		}
	}
	return true, nil
}
