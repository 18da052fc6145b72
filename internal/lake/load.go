package lake

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/manifest"
	"github.com/skomerdb/skomer/internal/lake/meta"
)

// A wave of manifests holds at most so many of them and, by their stated lengths, so many bytes.
const (
	waveManifests = 512
	waveBytes     = 128 << 20
)

// part is one manifest of a snapshot: what the list says about it and what it says itself.
type part struct {
	listed manifest.ListEntry
	path   string // after mapping
	m      *manifest.Manifest
	tuples *tuples // of m
}

// manifests reads the manifest list and every manifest that can have live files.
func (t *Table) manifests(ctx context.Context, s *meta.Snapshot) ([]*part, error) {
	listed, err := t.listed(ctx, s)
	if err != nil {
		return nil, err
	}
	var parts []*part
	var missing []int
	for _, e := range listed {
		if e.Empty() {
			continue
		}
		p := &part{listed: e, path: t.lake.mapping.Apply(e.Path)}
		if p.m = t.lake.cache.get(p.path); p.m == nil {
			missing = append(missing, len(parts))
		}
		parts = append(parts, p)
	}
	for len(missing) > 0 {
		n := waveSize(parts, missing)
		if err := t.loadWave(ctx, parts, missing[:n]); err != nil {
			return nil, err
		}
		missing = missing[n:]
	}
	return parts, nil
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

func waveSize(parts []*part, missing []int) int {
	bytes := int64(0)
	for n, i := range missing {
		bytes += parts[i].listed.Length
		if n > 0 && (n >= waveManifests || bytes > waveBytes) {
			return n
		}
	}
	return len(missing)
}

// loadWave reads manifests together and decodes them on all cores.
func (t *Table) loadWave(ctx context.Context, parts []*part, at []int) error {
	paths := make([]string, len(at))
	for n, i := range at {
		paths[n] = parts[i].path
	}
	data, err := t.lake.readWave(ctx, paths)
	if err != nil {
		return t.elsewhere(err)
	}
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for n, i := range at {
		g.Go(func() error {
			p := parts[i]
			m, err := manifest.Read(p.path, data[n], nil)
			if err != nil && p.listed.Encrypted {
				return encrypted(p.path)
			}
			if err != nil {
				return err
			}
			p.m = m
			t.lake.cache.put(p.path, m)
			return nil
		})
	}
	return g.Wait()
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
