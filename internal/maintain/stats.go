package maintain

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/sketch"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/puffin"
	"github.com/skomerdb/skomer/internal/scan"
)

// SketchKind is the kind of derived objects that hold the sketch of a whole table, one per sketch index, named by its id. Their bytes are
// drawn in docs/format/sketch.md.
const SketchKind = "sketch"

const (
	thetaBlob   = "apache-datasketches-theta-v1"
	sketchBlob  = "skomer.sketch.v1"
	rootBlob    = "skomer.sketch-root.v1"
	sourcesBlob = "skomer.sketch-sources.v1"
	// statsBatch is how many sketches are read together: some 3 MB.
	statsBatch = 64
)

// Statistics is what the description of a derived sketch says.
type Statistics struct {
	sketch.Summary
	Field      int    `json:"field"`
	Name       string `json:"name"`
	SnapshotID int64  `json:"snapshot_id"`
	// Files and Physical are the data files that went into it and the rows of the snapshot when it was made, deleted ones included.
	Files    int   `json:"files"`
	Physical int64 `json:"physical_rows"`
	// Parts are the lengths of the four blobs.
	Parts [4]int64 `json:"parts"`
}

// ReadStatistics reads the descriptions that a version has, by index id. What makes no sense is left out.
func ReadStatistics(v *overlay.Version) map[string]*Statistics {
	out := map[string]*Statistics{}
	for _, d := range v.Derived(SketchKind) {
		s := &Statistics{}
		if json.Unmarshal(d.Meta, s) == nil {
			out[d.Index] = s
		}
	}
	return out
}

// Known is the broadest sketch of each column, by field id.
func Known(v *overlay.Version) map[int]*sketch.Summary {
	rows, out := map[int]int64{}, map[int]*sketch.Summary{}
	for _, s := range ReadStatistics(v) {
		if s.Rows > rows[s.Field] {
			rows[s.Field], out[s.Field] = s.Rows, &s.Summary
		}
	}
	return out
}

// MergeSketches is the phase that keeps the sketch of the whole table beside those of its files: new files are added to it, and after
// a file went away it is merged anew, for unions cannot forget.
func MergeSketches() Phase {
	return Phase{Name: "statistics", Run: func(ctx context.Context, s *State) error {
		m := &merging{State: s, made: map[string]overlay.Derived{}}
		for _, d := range s.Version.Derived(SketchKind) {
			m.made[d.Index] = d
		}
		for n, d := range s.Version.Indexes() {
			if d.Kind == SketchKind && len(d.FieldIDs) == 1 {
				if err := m.index(ctx, n, d); err != nil {
					return err
				}
			}
		}
		return m.publish(ctx)
	}}
}

// merging is one run of the phase.
type merging struct {
	*State
	made map[string]overlay.Derived // by index
	out  bytes.Buffer
	file *puffin.Writer
	put  []overlay.Derived
	want index.Encoding // of the index at hand: that of its column's present type
}

// piece is a sketch artifact all of whose files are live.
type piece struct {
	info overlay.ArtifactInfo
	name uint64 // of artifact and file, as the sources blob has it
}

// index brings one index's sketch of the table up to date.
func (m *merging) index(ctx context.Context, n int, d overlay.Definition) error {
	path := m.Snapshot.Schema.ByID(d.FieldIDs[0])
	if path == nil {
		return nil
	}
	var err error
	if m.want, err = index.EncodingOf(path.Leaf().Type); err != nil {
		return nil //nolint:nilerr // the column cannot be sketched any more
	}
	pieces := m.pieces(n)
	old, known := m.made[d.ID]
	u := &sketch.Union{}
	fresh := pieces
	if known {
		switch rest, ok := m.resume(ctx, old, pieces, u); {
		case ok && len(rest) == 0:
			return nil
		case ok:
			fresh = rest
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			u = &sketch.Union{}
		}
	}
	failed := map[uint64]bool{}
	for at := 0; at < len(fresh); at += statsBatch {
		if err := m.add(ctx, u, fresh[at:min(at+statsBatch, len(fresh))], failed); err != nil {
			return err
		}
	}
	pieces = slices.DeleteFunc(pieces, func(p piece) bool { return failed[p.name] })
	s, err := u.Sketch()
	if err != nil || s == nil {
		return err
	}
	return m.write(d, path.Name(), s, pieces)
}

// pieces are the artifacts of index n that speak for live files alone.
func (m *merging) pieces(n int) (out []piece) {
	f := &m.Snapshot.Files
	o := lineage.Options{TableUUID: m.Snapshot.TableUUID, TableLastSequence: m.Snapshot.LastSequence, ActiveSnapshotID: m.Snapshot.ID}
	live := map[overlay.Place][]string{}
	seen := map[string]bool{}
	var found []overlay.Placement
	for i, path := range f.Stated {
		if seen[path] {
			continue
		}
		seen[path] = true
		found = m.Version.AppendFind(found[:0], path)
		for _, p := range found {
			info, ok := m.Version.Artifact(p.At)
			if p.Index == n && ok && p.Check(&info, f.Size[i], f.Records[i], "", o).OK() && scan.Renamed(&info, m.Snapshot) == "" {
				live[p.At] = append(live[p.At], path)
			}
		}
	}
	for at, paths := range live {
		info, ok := m.Version.Artifact(at)
		if !ok || len(paths) != info.Files {
			continue
		}
		out = append(out, piece{info: info, name: nameOf(&info, paths)})
	}
	slices.SortFunc(out, func(a, b piece) int { return cmp.Compare(a.name, b.name) })
	return out
}

func nameOf(info *overlay.ArtifactInfo, paths []string) uint64 {
	h := sha256.New()
	fmt.Fprintf(h, "%s %d", info.Bundle, info.Lineage.Off)
	slices.Sort(paths)
	for _, p := range paths {
		h.Write([]byte("\n" + p))
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// UnitRows and UnitFiles are how many rows and files one unit of a build takes at most, for estimates.
const (
	UnitRows  = unitRows
	UnitFiles = unitFiles
)
