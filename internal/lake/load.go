package lake

import (
	"context"
	"maps"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/factsblob"
	"github.com/skomerdb/skomer/internal/lake/manifest"
	"github.com/skomerdb/skomer/internal/lake/meta"
	"github.com/skomerdb/skomer/internal/store"
)

// A wave of manifests holds at most so many of them and, by their stated lengths, so many bytes.
const (
	waveManifests = 512
	waveBytes     = 128 << 20
)

// part is one manifest of a snapshot: what the list says about it and what it says itself, as far as it was read.
type part struct {
	listed manifest.ListEntry
	path   string             // after mapping
	m      *manifest.Manifest // nil: nothing was read. Replaced, never changed
	tag    store.Tag          // of the manifest, where it was read
	blob   *factsblob.Blob    // what m comes from; nil: from the manifest, if from anything
	lost   bool               // what was kept of it cannot be used
	tuples *tuples            // of m
}

func (p *part) has(w factsblob.Want) bool {
	return p.m != nil && p.m.Has(w.Parts, w.Fields, w.Whole)
}

// listed is the manifest list of a snapshot. v1 tables may name the manifests in the metadata instead.
func (t *Table) listed(ctx context.Context, s *meta.Snapshot) ([]manifest.ListEntry, error) {
	if s.ManifestList != "" {
		path := t.lake.mapping.Apply(s.ManifestList)
		b, err := t.lake.readAll(ctx, path)
		if err != nil {
			return nil, t.elsewhere(err)
		}
		entries, err := manifest.ReadList(path, b)
		if err != nil && s.Encrypted {
			return nil, encrypted(path)
		}
		return entries, err
	}
	entries := make([]manifest.ListEntry, len(s.Manifests))
	for i, path := range s.Manifests {
		entries[i] = manifest.ListEntry{
			Path: path, SpecID: specFromHeader, SnapshotID: s.ID,
			Added: facts.Unknown, Existing: facts.Unknown, FirstRowID: facts.Unknown,
		}
	}
	return entries, nil
}

// specFromHeader marks a manifest whose spec only its own header states.
const specFromHeader = -1

// load reads what parts lack of what is wanted from what was kept of them. Where nothing was, it reads the manifests, and takes all
// that is wanted sooner or later from them.
func (v *View) load(ctx context.Context, kept Kept, parts []*part, want, later factsblob.Want) error {
	if err := v.loadKept(ctx, kept, parts, want); err != nil {
		return err
	}
	var missing []*part
	for _, p := range parts {
		if !p.has(want) {
			missing = append(missing, p)
		}
	}
	for len(missing) > 0 {
		n := waveSize(missing)
		if err := v.table.loadWave(ctx, missing[:n], later); err != nil {
			return err
		}
		missing = missing[n:]
	}
	return nil
}

func waveSize(parts []*part) int {
	bytes := int64(0)
	for n, p := range parts {
		bytes += p.listed.Length
		if n > 0 && (n >= waveManifests || bytes > waveBytes) {
			return n
		}
	}
	return len(parts)
}

// loadWave reads manifests together and decodes them on all cores.
func (t *Table) loadWave(ctx context.Context, parts []*part, want factsblob.Want) error {
	paths := make([]string, len(parts))
	for n, p := range parts {
		paths[n] = p.path
	}
	data, tags, err := t.lake.readWave(ctx, paths)
	if err != nil {
		return t.elsewhere(err)
	}
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for n, p := range parts {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return fault.About(p.path, context.Cause(ctx))
			}
			m, err := manifest.Read(p.path, data[n], p.fields(want))
			data[n] = nil
			if err != nil && p.listed.Encrypted {
				return encrypted(p.path)
			}
			if err != nil {
				return err
			}
			p.m, p.tag, p.blob, p.tuples = noteAbsent(m, want.Fields), tags[n], nil, nil
			t.lake.cache.put(p.path, p.m)
			return nil
		})
	}
	return g.Wait()
}

// fields tells which metrics to keep of a manifest that is read: those that are wanted and those that it had. Delete files are
// few, and the bounds of their paths say which data file they are about.
func (p *part) fields(want factsblob.Want) func(id int) bool {
	if want.Parts&manifest.AllColumns != 0 || p.listed.Deletes {
		return nil
	}
	ids := slices.Clone(want.Fields)
	if p.m != nil {
		ids = slices.AppendSeq(ids, maps.Keys(p.m.Columns))
	}
	return func(id int) bool { return id == filePathID || slices.Contains(ids, id) }
}

// noteAbsent notes of which wanted fields a manifest states nothing.
func noteAbsent(m *manifest.Manifest, fields []int) *manifest.Manifest {
	for _, id := range fields {
		if _, known := m.Columns[id]; !known {
			m.Columns[id] = nil
		}
	}
	return m
}

func encrypted(path string) error {
	return fault.New(fault.Unsupported, path, "it is encrypted")
}

// elsewhere adds the likely way out when a file of the table is not found: the table was moved.
func (t *Table) elsewhere(err error) error {
	if c := fault.ClassOf(err); (c != fault.NotFound && c != fault.Unsupported) || len(t.lake.mapping) > 0 {
		return err
	}
	return fault.New(fault.ClassOf(err), "", "a file of the table is not where its metadata says").WithCause(err).
		WithFix("if the table was moved: --map %s=%s", t.meta.Location, parentOf(parentOf(t.path)))
}
