package build

import (
	"slices"

	"github.com/skomerdb/skomer/internal/bundle"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
)

// Map is a finished run of a file map over the files that the build covers, in local files that the caller removes. The keys of
// its objects are still to be chosen.
type Map struct {
	IndexID string
	Covered []overlay.Identity
	Files   bundle.RunFiles
	Meta    filemap.Meta
}

// mapping is a run in the making.
type mapping struct {
	index     Index
	col       int // of the unit's columns
	collector *filemap.Collector
}

// beginMaps starts the runs of the unit.
func (w *writing) beginMaps() error {
	for _, x := range w.unit.Maps {
		perFile := x.Kind.Scope != index.Tiered // artifacts over many files answer as much in as few reads, and with rows
		c, err := filemap.NewCollector(x.Columns[0], perFile, w.budget(len(w.unit.Indexes)+len(w.unit.Maps), w.temp))
		if err != nil {
			return err
		}
		w.maps = append(w.maps, &mapping{x, w.unit.columnNo(x.Columns[0]), c})
	}
	return nil
}

// columnNo is the number of a column among the unit's.
func (u *Unit) columnNo(c column.Path) int {
	return slices.IndexFunc(u.columns(), func(p column.Path) bool { return p.Leaf().ID == c.Leaf().ID })
}

// startFile begins a file in the run.
func (m *mapping) startFile(s *source) error {
	pages := s.binding.PageStarts(m.col)
	if pages == nil {
		pages = s.groups()
	}
	return m.collector.Start(filemap.File{
		Path: filemap.PathKey(s.Stated), Size: s.Size, Records: int64(s.rows), Tag: string(s.opened.Tag),
	}, pages)
}

// layoutSpans is what the layout of the file takes and is not in memory, unless that is much.
func (s *source) layoutSpans() []store.Span {
	spans := s.opened.Tail.Missing(s.opened.File.LayoutSpans())
	bytes := int64(0)
	for _, span := range spans {
		bytes += span.Len
	}
	if bytes > maxLayoutBytes {
		return nil
	}
	return spans
}

// layouts finds those of the unit's files.
func (w *writing) layouts() func(*filemap.File) (filemap.Layout, bool) {
	type incarnation struct {
		path [16]byte
		tag  string
	}
	known := map[incarnation]filemap.Layout{}
	for _, s := range w.files {
		if l, ok := s.opened.File.Layout(&s.opened.Tail); ok {
			known[incarnation{filemap.PathKey(s.Stated), string(s.opened.Tag)}] = filemap.Layout(l)
		}
	}
	return func(f *filemap.File) (filemap.Layout, bool) {
		l, ok := known[incarnation{f.Path, f.Tag}]
		return l, ok
	}
}

// finishMaps writes the runs.
func (w *writing) finishMaps() error {
	if len(w.maps) == 0 {
		return nil
	}
	layouts := w.layouts()
	for _, m := range w.maps {
		field := m.index.Columns[0].Leaf().ID
		info := bundle.BuildInfo{BuildID: w.unit.ID, TableUUID: w.unit.Snapshot.TableUUID, SnapshotID: w.unit.Snapshot.ID, Sequence: w.unit.Snapshot.Sequence}
		out := bundle.NewRunWriter(w.TempDir, info, m.index.Definition.ID, field)
		root, _, err := m.collector.Run(out)
		if err != nil {
			out.Abandon()
			return err
		}
		run, err := filemap.Open(root)
		if err != nil {
			out.Abandon()
			return err
		}
		files, err := out.Close(root, run.Layouts(layouts))
		if err != nil {
			out.Abandon()
			return err
		}
		meta := filemap.Meta{
			FormatVersion: lineage.FormatVersion, TableUUID: info.TableUUID, SnapshotID: info.SnapshotID, Sequence: info.Sequence,
			Columns: []lineage.Column{w.files[0].column(w.unit.Snapshot, m.index.Columns[0], m.col)},
		}
		meta.Describe(run)
		w.result.Maps = append(w.result.Maps, Map{m.index.Definition.ID, identities(w.files), files, meta})
	}
	return nil
}
