package lake

import (
	"bytes"
	"context"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/lake/factsblob"
	"github.com/skomerdb/skomer/internal/store"
)

// Kept knows where facts of manifests were put. What it says is believed as far as checksums, and the path and length of the
// manifest that the bytes name, allow: else the manifest is read.
type Kept interface {
	// Find is the head of the facts of a manifest, by its path as the manifest list states it.
	Find(manifest string) (at KeptAt, ok bool)
	// Store reads the objects that Find names.
	Store() store.Store
}

// KeptAt is where a head is.
type KeptAt struct {
	Key string
	factsblob.Head
}

// loadKept reads what was kept of parts: all heads in one wave, then all sections in one. Trouble makes the part read its
// manifest; only the end of ctx is an error.
func (v *View) loadKept(ctx context.Context, kept Kept, parts []*part, want factsblob.Want) error {
	if kept == nil {
		return nil
	}
	open := map[*part]KeptAt{}
	for _, p := range parts {
		if p.lost || p.has(want) {
			continue
		}
		at, ok := kept.Find(p.listed.Path)
		if p.lost = !ok; ok {
			open[p] = at
		}
	}
	if len(open) == 0 {
		return nil
	}
	if err := openHeads(ctx, kept.Store(), parts, open); err != nil {
		return err
	}
	var w gather
	need := map[*part][]factsblob.Section{}
	for _, p := range parts {
		if at, ok := open[p]; ok && !p.lost {
			need[p] = p.blob.Missing(p.m, want)
			for _, s := range need[p] {
				w.add(at.Key, store.Span{Off: s.Off, Len: s.Len})
			}
		}
	}
	if err := w.fetch(ctx, kept.Store()); err != nil {
		return err
	}
	for _, p := range parts {
		sections, ok := need[p]
		if !ok {
			continue
		}
		data, err := w.next(open[p].Key, len(sections))
		if err == nil {
			v.fill(p, want, sections, data)
		}
		if err != nil {
			p.drop()
		}
	}
	return nil
}

// fill takes over what was read.
func (v *View) fill(p *part, want factsblob.Want, sections []factsblob.Section, data [][]byte) {
	for i := range data {
		data[i] = bytes.Clone(data[i]) // a store may have read more around it, which would stay in memory too
	}
	m, err := p.blob.Fill(p.m, want, sections, data)
	if err != nil {
		p.drop()
		return
	}
	p.m = m
	v.table.lake.cache.put(p.path, m)
}

// drop forgets what was kept of a part.
func (p *part) drop() { p.m, p.blob, p.tuples, p.lost = nil, nil, nil, true }

// openHeads reads the heads that are not open yet.
func openHeads(ctx context.Context, s store.Store, parts []*part, open map[*part]KeptAt) error {
	var w gather
	var waiting []*part
	for _, p := range parts {
		if at, ok := open[p]; ok && p.blob == nil {
			waiting = append(waiting, p)
			w.add(at.Key, store.Span{Off: at.Off, Len: at.Len})
		}
	}
	if err := w.fetch(ctx, s); err != nil {
		return err
	}
	for _, p := range waiting {
		at := open[p]
		data, err := w.next(at.Key, 1)
		if err == nil {
			err = bytescan.CheckCRC(at.Key, data[0], at.CRC)
		}
		if err == nil {
			p.blob, err = factsblob.Open(at.Key, data[0])
		}
		if err != nil || p.blob.Path != p.listed.Path || p.blob.Length != p.listed.Length {
			p.drop()
		}
	}
	return nil
}

// gather collects spans of objects for one wave, a read an object, and hands them out in the order in which they were added.
type gather struct {
	reads  []store.Read
	number map[string]int
	result []store.Result
	taken  []int
}

func (w *gather) add(key string, s store.Span) {
	n, ok := w.number[key]
	if !ok {
		if w.number == nil {
			w.number = map[string]int{}
		}
		n = len(w.reads)
		w.number[key] = n
		w.reads = append(w.reads, store.Read{Key: key})
	}
	w.reads[n].Spans = append(w.reads[n].Spans, s)
}

func (w *gather) fetch(ctx context.Context, s store.Store) error {
	if len(w.reads) == 0 {
		return nil
	}
	w.result, w.taken = s.Fetch(ctx, w.reads), make([]int, len(w.reads))
	return ctx.Err()
}

func (w *gather) next(key string, n int) ([][]byte, error) {
	if n == 0 {
		return nil, nil
	}
	k := w.number[key]
	if err := w.result[k].Err; err != nil {
		return nil, err
	}
	at := w.taken[k]
	w.taken[k] += n
	return w.result[k].Data[at : at+n], nil
}
