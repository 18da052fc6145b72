package maintain

import (
	"context"
	"slices"
	"sync"

	"github.com/skomerdb/skomer/internal/bundle"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
)

const (
	whyFile   = "built from a file whose values are forgotten"
	whyMore   = "made of artifacts that had more rows: bounds may be of rows that are gone"
	whyLost   = "cannot be read, so that nobody knows what it holds"
	whyBeside = "lies in one object with what is forgotten"
	whyFacts  = "bounds of manifests may be values; the next sync keeps them anew for the files that are left"
	whySketch = "sketches of the whole table cannot forget; the next sync merges them anew"
	whyNames  = "names a file that is forgotten, whose path may hold values; the next sync finds out anew what is not worth keeping of the others"
	whyRoll   = "of no use after an erasure: syncs look at every file"
	whyRun    = "maps values of a file that is forgotten; the next sync maps the files that are left anew"

	eraseReads = 8 // bundles opened side by side
)

// find looks at everything that the newest version names.
func (e *erasing) find(ctx context.Context) (*traces, error) {
	out := &traces{objects: map[string]*trace{}}
	seen := map[DataFile]bool{}
	mark := func(f DataFile) {
		if seen[f] {
			return
		}
		seen[f] = true
		id := overlay.Identity{Path: f.Path, Size: f.Size, Records: f.Records}
		out.marks = append(out.marks, id)
		out.fresh = out.fresh || !e.newest.Erased(id)
	}
	for f, forget := range e.Known {
		if forget {
			mark(f)
		}
	}
	if err := e.findArtifacts(ctx, out, mark); err != nil {
		return nil, err
	}
	if err := e.findRuns(ctx, out); err != nil {
		return nil, err
	}
	if err := e.findRefusals(ctx, out); err != nil {
		return nil, err
	}
	if e.report.Passes == 1 || !out.empty() {
		e.findWhole(out)
	}
	return out, nil
}

// findArtifacts opens every bundle: one that holds anything of the files, if only an artifact that no longer speaks, goes as a whole.
func (e *erasing) findArtifacts(ctx context.Context, out *traces, mark func(DataFile)) error {
	by := map[string][]overlay.ArtifactInfo{}
	var keys []string
	e.newest.Each(func(a overlay.ArtifactInfo) bool {
		if by[a.Bundle] == nil {
			keys = append(keys, a.Bundle)
		}
		by[a.Bundle] = append(by[a.Bundle], a)
		return true
	})
	slices.Sort(keys)
	for page := range slices.Chunk(keys, eraseReads) {
		contents := make([]contents, len(page))
		var wait sync.WaitGroup
		for i, key := range page {
			wait.Go(func() { contents[i] = e.open(ctx, key) })
		}
		wait.Wait()
		for i, key := range page {
			c := &contents[i]
			if c.err != nil {
				return fault.About(key, c.err)
			}
			if !c.lost && len(c.hits) == 0 {
				continue
			}
			if c.lost {
				out.note(key, "artifacts", whyLost, "")
			}
			for _, hit := range c.hits {
				for _, f := range hit.files {
					mark(f)
					out.note(key, "artifacts", whyFile, hit.index, f.Path)
				}
				if len(hit.files) == 0 {
					out.note(key, "artifacts", whyMore, hit.index)
				}
				out.note(key, "artifacts", whyFile, hit.index)
			}
			for _, a := range by[key] {
				out.artifacts = append(out.artifacts, a.Key())
				if !slices.ContainsFunc(c.hits, func(h hit) bool { return h.lineage == a.Lineage.Off }) {
					out.others++
					out.note(key, "artifacts", whyBeside, a.IndexID)
				}
			}
		}
	}
	return nil
}

// contents is what a bundle says that it holds of the files.
type contents struct {
	hits []hit
	lost bool  // it cannot be read, ever
	err  error // or not now
}

// hit is an artifact of files that are forgotten; one that may hold more than its own files has none.
type hit struct {
	index   string
	lineage int64
	files   []DataFile
}

func (e *erasing) open(ctx context.Context, key string) (out contents) {
	b, err := bundle.Open(ctx, e.Store, key)
	if err != nil {
		return unreadable(err)
	}
	all := make([]int, len(b.Artifacts))
	for i := range all {
		all[i] = i
	}
	records, errs := b.Lineages(ctx, all)
	for i, rec := range records {
		if errs[i] != nil {
			if c := unreadable(errs[i]); c.err != nil {
				return c
			}
			out.lost = true
			continue
		}
		h := hit{index: rec.IndexID, lineage: b.Artifacts[i].Lineage.Off}
		for _, f := range rec.Files {
			if x := (DataFile{f.Path, f.Size, f.Records}); e.forgets(x) {
				h.files = append(h.files, x)
			}
		}
		if len(h.files) > 0 || mayHoldMore(rec) {
			out.hits = append(out.hits, h)
		}
	}
	return out
}

func unreadable(err error) contents {
	if lost(err) || fault.Is(err, fault.Unsupported) {
		return contents{lost: true}
	}
	return contents{err: err}
}

// mayHoldMore tells that an artifact was made of others that had more rows: its granules may still be bounded by values of theirs. A block
// that lost rows when segments were merged has no hash, and what was carried by row ids has none at all, nor what was merged with that.
func mayHoldMore(rec *lineage.Record) bool {
	rows, blocks := int64(0), len(rec.BlockRows)
	for _, f := range rec.Files {
		rows += f.Records
	}
	if rec.BlockRows == nil {
		blocks = int((rows + blockRows - 1) / blockRows)
	}
	return blocks > 0 && (len(rec.BlockHashes) == 0 || slices.ContainsFunc(rec.BlockHashes, func(h []string) bool {
		return len(h) != blocks || slices.Contains(h, "")
	}))
}

// findRuns opens the runs of the file maps.
func (e *erasing) findRuns(ctx context.Context, out *traces) error {
	type slot struct {
		path          [16]byte
		size, records int64
	}
	paths := map[slot]string{}
	for f, forget := range e.Known {
		if !forget {
			paths[slot{filemap.PathKey(f.Path), f.Size, f.Records}] = f.Path
		}
	}
	parts := map[string][]overlay.Derived{}
	var runs []overlay.Derived
	for _, d := range e.newest.EveryDerived() {
		switch d.Kind {
		case filemap.Kind:
			runs = append(runs, d)
		case filemap.PartKind:
			parts[d.Key] = append(parts[d.Key], d)
		}
	}
	var reads []store.Read
	for _, d := range runs {
		reads = append(reads, store.Read{Key: e.Overlay.Prefix() + "/" + d.Key, Spans: []store.Span{{Off: d.Off, Len: d.Len}}})
	}
	if len(reads) == 0 {
		return nil
	}
	for i, r := range e.Store.Fetch(ctx, reads) {
		d := runs[i]
		meta, err := filemap.ParseMeta(d.Name, d.Meta)
		var run *filemap.Run
		if err == nil {
			if err = r.Err; err == nil {
				run, err = meta.OpenChecked(d.Name, r.Data[0], d.CRC)
			}
		}
		if c := unreadable(err); err != nil && c.err != nil {
			return fault.About(d.Key, err)
		}
		clean := run != nil && !run.MayNameGone() && !slices.ContainsFunc(run.Files, func(f filemap.File) bool {
			_, ok := paths[slot{f.Path, f.Size, f.Records}]
			return !ok
		})
		if clean {
			continue
		}
		out.derived = append(out.derived, d.Is())
		out.note(e.Overlay.Prefix()+"/"+d.Key, "file map", whyRun, d.Index)
		if meta == nil {
			continue
		}
		for _, o := range meta.Objects {
			out.note(e.Overlay.Prefix()+"/"+o.Key, "file map", whyRun, d.Index)
			for _, p := range parts[o.Key] {
				out.derived = append(out.derived, p.Is())
			}
		}
	}
	return nil
}

// findRefusals reads the lists of what was not worth keeping.
func (e *erasing) findRefusals(ctx context.Context, out *traces) error {
	lists := slices.DeleteFunc(e.newest.EveryDerived(), func(d overlay.Derived) bool { return d.Kind != refusedKind })
	if len(lists) == 0 {
		return nil
	}
	reads := make([]store.Read, len(lists))
	for i, d := range lists {
		reads[i] = store.Read{Key: e.Overlay.Prefix() + "/" + d.Key, Spans: []store.Span{{Off: d.Off, Len: d.Len}}}
	}
	for i, r := range e.Store.Fetch(ctx, reads) {
		d, err := lists[i], r.Err
		if err == nil {
			err = d.Check(r.Data[0])
		}
		if c := unreadable(err); err != nil && c.err != nil {
			return fault.About(d.Key, err)
		}
		var l *refusedList
		if err == nil {
			l = parseRefused(r.Data[0])
		}
		if l != nil && !slices.ContainsFunc(l.Files, func(f refusedFile) bool { return e.forgets(DataFile{f.Path, f.Size, f.Records}) }) {
			continue
		}
		out.derived = append(out.derived, d.Is())
		out.note(reads[i].Key, "refusals", whyNames, d.Index)
	}
	return nil
}

// findWhole takes what is about the table as a whole: facts of manifests, sketches and the roll of files.
func (e *erasing) findWhole(out *traces) {
	for _, d := range e.newest.EveryDerived() {
		var kind, why string
		switch d.Kind {
		case FactsKind:
			kind, why = "facts", whyFacts
		case SketchKind:
			kind, why = "sketch", whySketch
		case RollKind:
			kind, why = "roll", whyRoll
		default:
			continue
		}
		out.derived = append(out.derived, d.Is())
		out.note(e.Overlay.Prefix()+"/"+d.Key, kind, why, d.Index)
	}
}
