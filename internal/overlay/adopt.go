package overlay

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/skomerdb/skomer/internal/fault"
)

// Adopt makes the first version of an overlay out of a version of another one, whose objects have been copied under the same names
// below this one's prefix. It keeps the number; versions before it do not exist. An overlay that has a version is refused.
func (o *Overlay) Adopt(ctx context.Context, from *Version) (*Version, error) {
	switch number, err := o.newestNumber(ctx); {
	case err != nil:
		return nil, err
	case number > 0:
		return nil, fault.New(fault.Refused, o.prefix, "there is an overlay already, of version %d", number)
	}
	if err := usable(from); err != nil {
		return nil, err
	}
	for _, w := range from.warnings {
		return nil, fault.About(w.Part, w.Reason)
	}
	id := uuid.NewString()
	d := o.newDraft(from, from, id)
	b := &body{header: d.header, erased: from.body.erased}
	b.header.Version, b.header.Expired, b.header.Vacuumed = from.number, from.number-1, from.number
	puts := o.newPuts(id)
	for i := range from.body.chunks {
		ref, err := o.adoptChunk(ctx, puts, from, i)
		if err != nil {
			return nil, err
		}
		if ref.artifacts > 0 {
			b.chunks = append(b.chunks, ref)
		}
	}
	for i := range from.body.lists {
		var entries []Derived
		d.speaking(i, func(e *Derived) { entries = append(entries, *e) })
		if len(entries) == 0 {
			continue
		}
		ref, _, err := puts.putList(ctx, entries)
		if err != nil {
			return nil, err
		}
		b.lists = append(b.lists, ref)
	}
	raw, err := b.encode(o.opts.Key)
	if err != nil {
		return nil, err
	}
	if err := o.putVersion(ctx, b, raw); err != nil {
		return nil, err
	}
	v, err := o.openVersion(ctx, b, false)
	if err != nil {
		return nil, err
	}
	o.remember(v)
	o.head.write(o, v)
	return v, nil
}

// adoptChunk writes the live artifacts of a chunk with the names that their bundles have here.
func (o *Overlay) adoptChunk(ctx context.Context, puts *chunkPuts, from *Version, i int) (ref chunkRef, err error) {
	src := from.overlay
	if err := src.readWide(ctx, from, []int{i}); err != nil {
		return ref, err
	}
	w := &from.views[i]
	var entries []entry
	for row := range w.chunk.artifacts.n {
		if w.liveIndex(row) < 0 {
			continue
		}
		e, ok := from.entry(Place{int32(i), int32(row)})
		if !ok {
			continue
		}
		name, below := strings.CutPrefix(e.bundle.name, src.prefix+"/")
		if !below {
			return ref, fault.New(fault.Unsupported, e.bundle.name, "a bundle outside of its overlay cannot be copied")
		}
		e.bundle.name = o.key(name)
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return ref, nil
	}
	ref, _, err = puts.put(ctx, entries)
	return ref, err
}
