package maintain

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/mask"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
)

// Reasons that reports give.
const (
	reasonUnnamed  = "no retained version names it"
	reasonMaskGone = "mask of a file that no retained snapshot has"
	reasonBody     = "body of an expired version"
	reasonDeclared = "declaration of a dead build"
	reasonPurged   = "purged"

	reasonNamed   = "a retained version names it"
	reasonFlight  = "of a build under way"
	reasonYoung   = "younger than the grace period"
	reasonMask    = "mask"
	reasonForeign = "not written by Skomer"
	reasonVersion = "version"
	reasonOwn     = "declaration, head or mark"
	reasonShared  = "in bundles with artifacts of other indexes"
)

// doom is an object that is to be deleted.
type doom struct {
	store.Info
	place  string // its folder
	reason string
}

// own is the folders that Skomer writes to, apart from those that derived objects name.
var own = []string{"chunks", "data", "derived", "facts", "masks", "refused", "runs", "stats"}

// sort tells what of the listing goes, in the order in which it is deleted, and counts what stays. revoked are the builds whose
// declarations protect nothing.
func (w *cleaning) sort(revoked []string) []doom {
	w.report.Kept, w.report.Deleted = map[string]Tally{}, map[string]Tally{}
	folders := map[string]bool{}
	for _, f := range own {
		folders[f] = true
	}
	for key := range w.names.Derived {
		folders[w.place(key)] = true
	}
	var out []doom
	for _, in := range w.objects {
		d := doom{in, w.place(in.Key), reasonUnnamed}
		if keep := w.keep(&d, folders, revoked); keep != "" {
			count(w.report.Kept, keep, in.Size)
		} else {
			out = append(out, d)
		}
	}
	// Payloads go before the lists that name them.
	slices.SortStableFunc(out, func(a, b doom) int {
		if (a.place == "chunks") != (b.place == "chunks") {
			if a.place == "chunks" {
				return 1
			}
			return -1
		}
		return byKey(a, b)
	})
	return out
}

// keep is why an object stays, "" if it goes.
func (w *cleaning) keep(d *doom, folders map[string]bool, revoked []string) string {
	switch {
	case d.place == "versions":
		return reasonVersion
	case d.place == "inflight" || d.place == overlay.MarksFolder || d.Key == w.Overlay.Prefix()+"/"+overlay.HeadName:
		return reasonOwn
	case d.place == "" || !folders[d.place]:
		return reasonForeign
	case d.place == "chunks" && w.names.Chunks[d.Key], w.names.Bundles[d.Key], w.names.Derived[d.Key]:
		return reasonNamed
	case d.place == "masks":
		if !w.masks[d.Key] {
			return reasonMask
		}
		d.reason = reasonMaskGone
	}
	for _, f := range w.flights {
		if (strings.Contains(d.Key, f.BuildID) || d.Key == f.Bundle) && !slices.Contains(revoked, f.BuildID) {
			return reasonFlight
		}
	}
	age := w.now.Sub(d.Modified)
	if w.Grace > 0 && age < w.Grace || age < clockLife && strings.HasPrefix(d.Key, w.Overlay.DataKey(clockName)) {
		return reasonYoung
	}
	return ""
}

func count(m map[string]Tally, reason string, size int64) {
	t := m[reason]
	m[reason] = Tally{t.Objects + 1, t.Bytes + size}
}

// unnamed finds the artifacts, and remembers the masks, that are about no file of a retained snapshot. It reads as many snapshots as
// it needs to know.
func (w *cleaning) unnamed(ctx context.Context) []overlay.Key {
	if len(w.Snapshots) == 0 {
		return nil
	}
	artifacts := map[overlay.Place]overlay.Key{}
	w.newest.Each(func(a overlay.ArtifactInfo) bool {
		artifacts[a.At] = a.Key()
		return true
	})
	masks, err := w.subjects(ctx)
	for _, read := range w.Snapshots {
		if err != nil || len(artifacts)+len(masks) == 0 {
			break
		}
		var s *facts.Snapshot
		if s, err = read(ctx); err == nil {
			strike(w.newest, s, artifacts, masks)
		}
	}
	if err != nil {
		w.warn("artifacts and masks of files that are gone stay, since not all snapshots can be read: " + err.Error())
		return nil
	}
	w.masks = map[string]bool{}
	for _, keys := range masks {
		for _, key := range keys {
			w.masks[key] = true
		}
	}
	return slices.Collect(maps.Values(artifacts))
}

// strike takes out what is about a file of the snapshot.
func strike(v *overlay.Version, s *facts.Snapshot, artifacts map[overlay.Place]overlay.Key, masks map[string][]string) {
	var found []overlay.Placement
	for i, path := range s.Files.Stated {
		delete(masks, path)
		delete(masks, s.Files.Path[i])
		if len(artifacts) == 0 {
			continue
		}
		found = v.AppendCovering(found[:0], path)
		for _, p := range found {
			delete(artifacts, p.At)
		}
	}
}

// subjects is the keys of masks by the path of the data file that they are about.
func (w *cleaning) subjects(ctx context.Context) (map[string][]string, error) {
	out := map[string][]string{}
	var reads []store.Read
	for _, in := range w.objects {
		if w.place(in.Key) == "masks" {
			reads = append(reads, store.Read{Key: in.Key, Spans: []store.Span{{Off: 0, Len: min(in.Size, mask.SubjectBytes)}}})
		}
	}
	for page := range slices.Chunk(reads, 256) {
		for i, r := range w.Store.Fetch(ctx, page) {
			if r.Err != nil {
				continue // it stays
			}
			if path, ok := mask.Subject(r.Data[0]); ok {
				out[path] = append(out[path], page[i].Key)
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return out, nil
}
