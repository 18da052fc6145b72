package zonemap

import (
	"bytes"
	"fmt"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
)

// Merge cuts by the row groups and pages of the new segment. A page takes the least and greatest bound of all old pages that have rows
// in it. Its counts are exact where it holds whole old pages; else they are right in being none, some or all, and a page too short to
// state a doubt is joined with the one before. It holds two zones a page.
func (k Kind) Merge(spec index.Spec, sources []index.Source, m *index.OrdinalMap, _ index.Budget, body index.Sink) ([]byte, string, error) {
	enc, err := index.Mergeable(name, &spec, sources, m, index.OneColumn)
	if err != nil {
		return nil, "", err
	}
	groups, pages, err := spec.Granules()
	if err != nil {
		return nil, "", err
	}
	readers, enc, reason, err := index.OpenSources(name, sources, enc, open, func(x *reader) (index.Encoding, int64) { return x.enc, x.bodySize })
	if reason != "" || err != nil {
		return nil, reason, err
	}
	zones, granules := make([][]zone, len(sources)), make([][]index.Granule, len(sources))
	for i, x := range readers {
		if zones[i], err = x.pagesOf(&sources[i]); err != nil {
			return nil, "", err
		}
		for j := range zones[i] {
			granules[i] = append(granules[i], zones[i][j].granule())
		}
	}
	moved, reason := index.Moves(m, granules, len(pages))
	if reason != "" {
		return nil, reason, nil
	}
	parts, ok := settle(cut(moved, zones, groups, append(pages, spec.Rows)))
	out := &writer{sizes: k.orDefault(), enc: enc}
	switch out.groups = grouped(parts); {
	case !ok:
		return nil, "too few rows are left to tell nulls from values", nil
	case len(out.groups) > index.MaxRowGroups:
		return nil, fmt.Sprintf("%d row groups, above the limit of %d", len(out.groups), index.MaxRowGroups), nil
	}
	return out.seal(body)
}

// pagesOf reads every page zone.
func (x *reader) pagesOf(from *index.Source) ([]zone, error) {
	var out []zone
	var buf []byte
	for i := range x.groups {
		g := &x.groups[i]
		switch {
		case g.count == 1:
			out = append(out, g.zone)
			continue
		case g.pages != nil:
			out = append(out, g.pages...)
			continue
		}
		at := g.start
		for _, b := range g.blocks {
			var err error
			if buf, err = from.Unit(name+" block", b.unit, nil); err != nil {
				return nil, err
			}
			r := bytescan.NewReader(name+" block", buf)
			for _, z := range readPages(r, x.enc, b.pages, at, g.end()) {
				out, at = append(out, z), at+z.rows
			}
			if err := r.Done(); err != nil {
				return nil, err
			}
		}
		if at != g.end() {
			return nil, index.Broken(name+" block", "pages end at row %d, their row group at %d", at, g.end())
		}
	}
	return out, nil
}

func (z *zone) granule() index.Granule {
	return index.Granule{Start: z.start, Rows: z.rows, Nulls: z.nulls, NaNs: z.nans}
}

// part is a page of the merged artifact while it is put together: bounds and counts apart.
type part struct {
	counts index.Counts
	bounds *zone // nil: no value
	group  bool  // a row group starts here
	zone         // settled
}

// cut fills the new pages, the last start closing them.
func cut(moved []index.Moved, zones [][]zone, groups, pages []uint32) []part {
	var out []part
	for i := range pages[:len(pages)-1] {
		p := part{}
		if len(groups) > 0 && groups[0] == pages[i] {
			p.group, groups = true, groups[1:]
		}
		for len(moved) > 0 && moved[0].At.Start < pages[i+1] {
			x := moved[0]
			end := min(x.At.End, pages[i+1])
			z := &zones[x.Source][x.Granule]
			q := part{counts: z.granule().Part(end - max(x.At.Start, pages[i]))}
			if z.values() {
				q.bounds = z
			}
			p.join(&q)
			if x.At.End > pages[i+1] {
				break
			}
			moved = moved[1:]
		}
		out = append(out, p)
	}
	return out
}

// join adds the rows of q.
func (p *part) join(q *part) {
	p.counts.Add(q.counts)
	switch {
	case q.bounds == nil:
	case p.bounds == nil:
		p.bounds = q.bounds
	default:
		wide := *p.bounds
		wide.widen(q.bounds)
		p.bounds = &wide
	}
}

// widen takes the bounds of y in. A cut bound is stronger than an equal one that is not: no value equals it.
func (z *zone) widen(y *zone) {
	if c := bytes.Compare(y.min, z.min); c < 0 || c == 0 && y.flags&flagMinCut == 0 {
		z.min, z.flags = y.min, z.flags&^flagMinCut|y.flags&flagMinCut
	}
	switch {
	case z.flags&flagMaxNone != 0:
	case y.flags&flagMaxNone != 0:
		z.max, z.flags = nil, z.flags&^flagMaxCut|flagMaxNone
	default:
		if c := bytes.Compare(y.max, z.max); c > 0 || c == 0 && y.flags&flagMaxCut == 0 {
			z.max, z.flags = y.max, z.flags&^flagMaxCut|y.flags&flagMaxCut
		}
	}
}

// settle states the counts of every part and joins parts too short for that; ok is false where all rows are too few.
func settle(parts []part) (out []part, ok bool) {
	at, pending := uint32(0), false // pending: the last of out is too short
	for i := range parts {
		p := &parts[i]
		if pending {
			out[len(out)-1].join(p)
		} else {
			out = append(out, *p)
		}
		pending = !out[len(out)-1].state(at)
		for pending && len(out) > 1 {
			last := out[len(out)-1]
			out = out[:len(out)-1]
			out[len(out)-1].join(&last)
			at = out[len(out)-1].start
			pending = !out[len(out)-1].state(at)
		}
		if !pending {
			at = out[len(out)-1].start + out[len(out)-1].rows
		}
	}
	return out, !pending
}

// state settles the zone of a part that starts at row at.
func (p *part) state(at uint32) bool {
	g, ok := p.counts.Granule(at)
	if p.zone = (zone{}); p.bounds != nil {
		p.zone = *p.bounds
	}
	p.start, p.rows, p.nulls, p.nans = g.Start, g.Rows, g.Nulls, g.NaNs
	return ok
}

// grouped makes row groups of settled parts.
func grouped(parts []part) []group {
	var out []group
	for i := range parts {
		p := &parts[i]
		if p.group || len(out) == 0 {
			out = append(out, group{zone: p.zone, pages: []zone{p.zone}})
			continue
		}
		g := &out[len(out)-1]
		g.pages = append(g.pages, p.zone)
		switch {
		case !p.values():
		case !g.values():
			g.flags, g.min, g.max = p.flags, p.min, p.max
		default:
			g.widen(&p.zone)
		}
		g.rows, g.nulls, g.nans = g.rows+p.rows, g.nulls+p.nulls, g.nans+p.nans
	}
	return out
}
