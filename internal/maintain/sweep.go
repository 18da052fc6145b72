package maintain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/build"
	"github.com/skomerdb/skomer/internal/bundle"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/wave"
)

// Swept is what a tag sweep found.
type Swept struct {
	Files     int // indexed data files that were looked up
	Changed   int // with another tag than when they were indexed
	Restamped int // of these, with the same content
	Withdrawn int // artifacts of the others
	Missing   int // files that are not there any more
	Unchecked int // files whose tag could not be looked up
}

const (
	// sweepBatch is how many files with another tag are hashed before what was found is committed.
	sweepBatch = 64
	// statBatch is how many files are described by one call, listPage how many objects a listing returns.
	statBatch, listPage = 1000, 1000
	// listPrice is how many HEAD requests a LIST request costs: a listing that brings fewer indexed files a page is not worth it.
	listPrice = 12
)

// suspect is a data file with another entity tag than some artifacts of it were built from.
type suspect struct {
	ordinal int
	now     store.Info
	places  []overlay.Placement // all of them differ from now
}

// sweep compares the tags of all indexed files with the present ones. What speaks for bytes that are gone is withdrawn at once, a
// file with another tag and the same content is stamped anew.
func (r *run) sweep(ctx context.Context) error {
	suspects, err := r.suspects(ctx)
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(suspects, sweepBatch) {
		found, err := r.examine(ctx, batch)
		if err != nil {
			return err
		}
		if err := r.settle(ctx, found); err != nil {
			return err
		}
	}
	return nil
}

// suspects lists the files of the snapshot whose present tag is not the one that an artifact was built from.
func (r *run) suspects(ctx context.Context) ([]suspect, error) {
	v, f := r.report.Version, &r.snapshot.Files
	var indexed []suspect
	var paths []string
	seen := map[string]bool{}
	for i := range f.Len() {
		if seen[f.Stated[i]] || f.Format[i] != facts.Parquet {
			continue
		}
		seen[f.Stated[i]] = true
		places := v.Find(f.Stated[i])
		if len(places) > 0 || r.refused.tag(f.Stated[i], v.Indexes()) != "" {
			indexed = append(indexed, suspect{ordinal: i, places: places})
			paths = append(paths, f.Path[i])
		}
	}
	now, err := tags(ctx, r.Build.Store, paths)
	if err != nil {
		return nil, err
	}
	var out []suspect
	for k := range indexed {
		s := &indexed[k]
		s.now = now[k]
		r.report.Swept.Files++
		switch {
		case fault.Is(s.now.Err, fault.NotFound):
			r.report.Swept.Missing++
			r.report.Skipped[paths[k]] = "the table lists it and the store does not have it"
			continue
		case s.now.Err != nil:
			r.report.Swept.Unchecked++
			r.report.Skipped[paths[k]] = "its entity tag could not be looked up: " + s.now.Err.Error()
			continue
		}
		s.places = slices.DeleteFunc(s.places, func(p overlay.Placement) bool { return p.Identity.Tag == s.now.Tag })
		if was := r.refused.tag(f.Stated[s.ordinal], v.Indexes()); was != "" && was != s.now.Tag {
			r.refused.forget(f.Stated[s.ordinal])
		}
		if len(s.places) > 0 {
			r.report.Swept.Changed++
			out = append(out, *s)
		}
	}
	return out, nil
}

// tags describes objects: by listing where many of them lie together and listing is allowed, else one by one.
func tags(ctx context.Context, st store.Store, paths []string) ([]store.Info, error) {
	out := make([]store.Info, len(paths))
	at := map[string]int{}
	for i, p := range paths {
		at[p] = i
	}
	if len(paths) > listPrice {
		listed(ctx, st, slices.Sorted(maps.Keys(at)), func(in store.Info) {
			if i, ok := at[in.Key]; ok && in.Tag != "" {
				out[i] = in
			}
		})
	}
	var ask []string
	for _, p := range paths {
		if out[at[p]].Tag == "" {
			ask = append(ask, p)
		}
	}
	for batch := range slices.Chunk(ask, statBatch) {
		for _, in := range st.Stat(ctx, batch) {
			out[at[in.Key]] = in
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	for i, p := range paths {
		out[i] = out[at[p]]
	}
	return out, ctx.Err()
}

// listed lists what lies around the sorted paths, as long as it costs less than asking for them one by one. A store that may not be
// listed is not.
func listed(ctx context.Context, st store.Store, paths []string, visit func(store.Info)) {
	prefix := paths[0]
	for _, p := range paths[1:] {
		for !strings.HasPrefix(p, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	prefix = prefix[:strings.LastIndexByte(prefix, '/')+1]
	after := ""
	if prefix == "" {
		return
	}
	for left := len(paths) / listPrice; left > 0; left-- {
		page, err := st.List(ctx, prefix, after, listPage)
		if err != nil {
			return
		}
		for _, in := range page {
			visit(in)
		}
		if len(page) < listPage {
			return
		}
		if after = page[len(page)-1].Key; after >= paths[len(paths)-1] {
			return
		}
	}
}

// findings is what an examination comes to.
type findings struct {
	stamps   []overlay.Stamp
	rejected []Finding
	stale    map[staleFile]bool // for which no file map may speak
}

// staleFile is an incarnation of a data file that is gone, as file maps know it.
type staleFile struct {
	path [16]byte
	tag  string
}

// unmaps is how often a sweep tries to withdraw what file maps say while their runs are merged.
const unmaps = 5

// unmap is the changes that withdraw what file maps say of files that are gone.
func (r *run) unmap(ctx context.Context, stale map[staleFile]bool) (changes []overlay.Change, err error) {
	if len(stale) == 0 || len(r.report.Version.Derived(filemap.Kind)) == 0 {
		return nil, nil
	}
	runs := r.Runs
	if runs == nil {
		runs = wave.NewRuns(0)
	}
	listed, err := runs.Load(ctx, r.Store, r.Overlay.Prefix(), r.report.Version, func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	for _, l := range listed {
		if l.Run == nil || l.Meta == nil {
			continue
		}
		change, err := unmap(l, func(f *filemap.File) bool { return stale[staleFile{f.Path, f.Tag}] })
		if err != nil {
			return nil, err
		}
		if change != nil {
			changes = append(changes, change)
		}
	}
	return changes, nil
}

// examine reads suspects again and compares their hashes with those in the lineage of their artifacts.
func (r *run) examine(ctx context.Context, suspects []suspect) (findings, error) {
	var infos []overlay.ArtifactInfo
	for _, s := range suspects {
		for _, p := range s.places {
			info, _ := r.report.Version.Artifact(p.At)
			infos = append(infos, info)
		}
	}
	records, errs := r.records(ctx, infos)
	if err := ctx.Err(); err != nil {
		return findings{}, err
	}
	out := findings{stale: map[staleFile]bool{}}
	k := 0
	for _, s := range suspects {
		for _, p := range s.places {
			out.stale[staleFile{filemap.PathKey(p.Identity.Path), string(p.Identity.Tag)}] = true
		}
		hashed := map[string]hashedFile{}
		for _, p := range s.places {
			info, rec, err := infos[k], records[k], errs[k]
			k++
			verdict := lineage.Verdict{Reason: lineage.TagMismatch, Message: "its entity tag changed and its lineage cannot be read"}
			if err == nil {
				if verdict, err = r.compare(ctx, s, p, info, rec, hashed); err != nil {
					return findings{}, err
				}
			}
			if verdict.OK() {
				out.stamps = append(out.stamps, overlay.Stamp{Artifact: info.Key(), Path: p.Identity.Path, Old: p.Identity.Tag, New: s.now.Tag})
				continue
			}
			out.rejected = append(out.rejected, r.finding(info, verdict.Reason.String(), verdict.Message))
		}
	}
	return out, nil
}

type hashedFile struct {
	file lineage.File
	err  error
}

// compare runs the lineage check of one placement on the file's present content. Files that cannot be read for now are an error.
func (r *run) compare(ctx context.Context, s suspect, p overlay.Placement, info overlay.ArtifactInfo, rec *lineage.Record, hashed map[string]hashedFile) (lineage.Verdict, error) {
	f := &r.snapshot.Files
	recorded := lineage.File{Path: p.Identity.Path, Size: p.Identity.Size, Records: p.Identity.Records, Tag: string(p.Identity.Tag)}
	for _, in := range rec.Files {
		if in.Path == p.Identity.Path {
			recorded.FooterSHA256, recorded.ColumnsSHA256, recorded.FileSHA256 = in.FooterSHA256, in.ColumnsSHA256, in.FileSHA256
		}
	}
	now := lineage.Current{FooterRecords: lineage.Unknown}
	now.Path, now.Size, now.Records, now.Tag = p.Identity.Path, f.Size[s.ordinal], f.Records[s.ordinal], string(s.now.Tag)
	o := r.lineage()
	if v := lineage.Check(info.Claim(), recorded, now, o); v.Reason != lineage.TagMismatch || s.now.Size != now.Size {
		return v, nil
	}
	columns, ok := r.columns(rec.ReadFieldIDs)
	if !ok {
		return lineage.Verdict{Reason: lineage.TagMismatch, Message: "its entity tag changed and its lineage does not say what to hash"}, nil
	}
	key := fmt.Sprint(rec.ReadFieldIDs)
	h, known := hashed[key]
	if !known {
		h.file, h.err = r.Build.Rehash(ctx, r.snapshot, r.file(s.ordinal), columns)
		hashed[key] = h
		r.report.BytesRead += s.now.Size / int64(max(leaves(r.snapshot.Schema)/max(len(columns), 1), 1))
	}
	switch {
	case h.err != nil && (fault.Retryable(h.err) || ctx.Err() != nil):
		return lineage.Verdict{}, h.err
	case h.err != nil:
		return lineage.Verdict{Reason: lineage.ContentMismatch, Message: h.err.Error()}, nil //nolint:nilerr // what cannot be read is not what was indexed
	}
	now.File = h.file
	o.RequireHash = true
	return lineage.Check(info.Claim(), recorded, now, o), nil
}

func (r *run) file(i int) build.File {
	f := &r.snapshot.Files
	return build.File{Ordinal: i, Path: f.Path[i], Stated: f.Stated[i], Size: f.Size[i], Records: f.Records[i]}
}

// columns are the paths of field ids, all of which some schema of the table must have.
func (r *run) columns(ids []int) (out []column.Path, ok bool) {
	for _, id := range ids {
		path := r.snapshot.Column(id)
		if path == nil {
			return nil, false
		}
		out = append(out, path)
	}
	return out, len(out) > 0
}

// recordWave is how many lineage records are read in one wave.
const recordWave = 256

// records reads the lineage records of artifacts.
func (r *run) records(ctx context.Context, infos []overlay.ArtifactInfo) ([]*lineage.Record, []error) {
	out, errs := make([]*lineage.Record, 0, len(infos)), make([]error, 0, len(infos))
	for wave := range slices.Chunk(infos, recordWave) {
		reads := make([]store.Read, len(wave))
		for i := range wave {
			p := wave[i].Lineage
			reads[i] = store.Read{Key: wave[i].Bundle, Spans: []store.Span{{Off: p.Off, Len: min(p.Len, lineage.MaxRecord+1)}}}
		}
		for i, res := range r.Store.Fetch(ctx, reads) {
			var rec *lineage.Record
			err := res.Err
			if err == nil {
				rec, err = bundle.ParseLineage(wave[i].Bundle, wave[i].Lineage, res.Data[0])
			}
			out, errs = append(out, rec), append(errs, err)
		}
	}
	return out, errs
}

// settle commits what an examination found: stamps, and the end of what was rejected.
func (r *run) settle(ctx context.Context, f findings) error {
	retired := map[overlay.Key]bool{}
	for _, x := range f.rejected {
		if x.derived == nil {
			retired[x.key] = true
		}
	}
	stamps := slices.DeleteFunc(f.stamps, func(s overlay.Stamp) bool { return retired[s.Artifact] })
	if len(stamps)+len(f.rejected) == 0 {
		return nil
	}
	for range unmaps {
		changes, err := r.unmap(ctx, f.stale)
		if err != nil {
			return err
		}
		changes = append(changes, drops(r.report.Version, f.rejected)...)
		changes = append(changes, overlay.Retire(slices.Collect(maps.Keys(retired))...), overlay.Restamp(stamps...))
		receipt, err := r.Overlay.Commit(ctx, r.report.Version, changes...)
		if err != nil {
			return err
		}
		r.report.Version = receipt.Version
		if len(receipt.Unfit) == 0 {
			break // no run was merged away meanwhile
		}
	}
	r.report.Swept.Withdrawn += len(retired)
	files := map[string]bool{}
	for _, s := range stamps {
		files[s.Path] = true
	}
	r.report.Swept.Restamped += len(files)
	return nil
}
