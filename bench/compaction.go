package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/bundle"
	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store/local"
)

var scale = flag.Float64("scale", 1, "row 12: share of its ten million rows")

// compaction is row 12: a hundred files were rewritten as ten. What merging the artifacts of the old files takes, with reading and writing
// them, against building those of the new files from the data. LanceDB's optimize is no peer here: it rewrites data and indexes together.
func compaction(ctx context.Context) error {
	const before, after = 100, 10
	rows := int(*scale * 1e7 / before)
	old, err := eventTable(ctx, fmt.Sprintf("compaction-%d-before/t", rows), before, rows)
	if err != nil {
		return err
	}
	now, err := eventTable(ctx, fmt.Sprintf("compaction-%d-after/t", rows), after, rows*before/after)
	if err != nil {
		return err
	}
	for _, expr := range []string{"zonemap(at)", "bloom(id)", "valueset(city)", "bitmap(city)", "ordered(at)", "ordered(id)", "ordered(city)"} {
		if err := compactOne(ctx, old, now, expr, before/after); err != nil {
			return fmt.Errorf("%s: %w", expr, err)
		}
	}
	return nil
}

func compactOne(ctx context.Context, old, now, expr string, ratio int) error {
	sources, _, err := artifactsOf(ctx, old, expr, true)
	if err != nil {
		return err
	}
	var built []held
	var builds, merges []float64
	var merged []held
	for range 3 {
		own, took, err := artifactsOf(ctx, now, expr, false)
		if err != nil {
			return err
		}
		built, builds = own, append(builds, took)
		start := time.Now()
		if merged, err = mergeInto(old, expr, sources, own, ratio); err != nil {
			return err
		}
		merges = append(merges, time.Since(start).Seconds())
	}
	if err := sameAnswers(merged, built); err != nil {
		return err
	}
	figure := median(ratios(builds, merges))
	fmt.Printf("  %s: %d artifacts into %d, merged in %.0f ms, built in %.0f ms; no data file read, answers identical\n", expr, len(sources), len(built), median(merges)*1e3, median(builds)*1e3)
	verdict(12, figure, "× "+expr, "≥ 20×", figure >= 20)
	return nil
}

// held is an artifact in an overlay on disk, or merged.
type held struct {
	overlay.ArtifactInfo
	files []string
	kind  kinds.Entry
	cols  []column.Path
	root  []byte
	body  io.ReaderAt
	size  int64
}

// artifactsOf builds an index in an overlay of its own and lists its artifacts by the order of their files. Kept ones are not built again.
func artifactsOf(ctx context.Context, dir, expr string, keep bool) ([]held, float64, error) {
	overlays := filepath.Join(filepath.Dir(dir), "overlay "+expr)
	if !keep {
		if err := os.RemoveAll(overlays); err != nil {
			return nil, 0, err
		}
	}
	c, err := skomer.New(skomer.Config{OverlayRoot: overlays, MaxStaleness: time.Hour, Workers: 2})
	if err != nil {
		return nil, 0, err
	}
	t, err := c.Open(ctx, dir, skomer.TableOptions{Overlay: overlays})
	if err != nil {
		return nil, 0, err
	}
	defer t.Close()
	if err := t.Mount(ctx); err != nil {
		return nil, 0, err
	}
	if _, err := t.AddIndex(ctx, expr); err != nil {
		return nil, 0, err
	}
	start := time.Now()
	if _, err := t.Sync(ctx, skomer.SyncOptions{}); err != nil {
		return nil, 0, err
	}
	took := time.Since(start).Seconds()
	v, err := overlay.Open(local.New(), overlays, overlay.Options{}).Latest(ctx)
	if err != nil {
		return nil, 0, err
	}
	d, err := kinds.ParseExpr(expr, &eventSchema)
	if err != nil {
		return nil, 0, err
	}
	kind, _ := kinds.ByName(d.Name)
	var out []held
	var failed error
	v.Each(func(a overlay.ArtifactInfo) bool {
		h := held{ArtifactInfo: a, kind: kind, cols: d.Columns, size: a.Body.Len}
		if h.files, _, failed = v.Paths(ctx, a.At); failed != nil {
			return false
		}
		file, err := os.Open(a.Bundle)
		if err != nil {
			failed = err
			return false
		}
		h.body, h.root = io.NewSectionReader(file, a.Body.Off, a.Body.Len), make([]byte, a.Root.Len)
		_, failed = file.ReadAt(h.root, a.Root.Off)
		out = append(out, h)
		return failed == nil
	})
	slices.SortFunc(out, func(a, b held) int { return slices.Compare(a.files, b.files) })
	return out, took, failed
}

// mergeInto merges sources into artifacts over the files of built ones, each file of which holds the rows of ratio old files, and writes a bundle.
func mergeInto(dir, expr string, sources, built []held, ratio int) ([]held, error) {
	file, err := os.Create(filepath.Join(filepath.Dir(dir), "merged.puffin"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	buffered := bufio.NewWriterSize(file, 1<<20)
	w := bundle.NewWriter(buffered, bundle.BuildInfo{BuildID: "merged"})
	first := 0 // the old file that the next artifact starts with
	for _, b := range built {
		part, m, err := sourcesFor(sources, first, len(b.files)*ratio)
		if err != nil {
			return nil, err
		}
		first += len(b.files) * ratio
		spec := index.Spec{Columns: b.cols, Rows: b.Rows}
		for at := uint32(0); at < b.Rows; at += b.Rows / uint32(len(b.files)) {
			spec.RowGroups = append(spec.RowGroups, at)
		}
		spec.Pages = spec.RowGroups
		sink, err := w.Begin(lineage.Record{IndexID: expr, Algorithm: b.kind.Algorithm()})
		if err != nil {
			return nil, err
		}
		root, reason, err := b.kind.Kind.Merge(spec, part, m, index.Budget{TempDir: os.TempDir()}, sink)
		if err != nil || root == nil {
			return nil, fmt.Errorf("not merged: %s: %w", reason, err)
		}
		if err := w.End(root); err != nil {
			return nil, err
		}
	}
	placed, err := w.Close()
	if err != nil {
		return nil, err
	}
	if err := buffered.Flush(); err != nil {
		return nil, err
	}
	data, err := os.Open(file.Name())
	if err != nil {
		return nil, err
	}
	var out []held
	for i, p := range placed {
		out = append(out, held{ArtifactInfo: built[i].ArtifactInfo, kind: built[i].kind, cols: built[i].cols, root: p.RootBytes, body: io.NewSectionReader(data, p.Body.Off, p.Body.Len), size: p.Body.Len})
	}
	return out, nil
}

// sourcesFor is the sources with rows of n old files from first on, and where these go: in order, one after the other.
func sourcesFor(sources []held, first, n int) ([]index.Source, *index.OrdinalMap, error) {
	var part []index.Source
	var rows []uint32
	type move struct {
		old rowset.Range
		to  uint32
	}
	var moves []move
	file, to := 0, uint32(0)
	for _, s := range sources {
		per := s.Rows / uint32(len(s.files))
		from, end := max(first-file, 0), min(first+n-file, len(s.files))
		file += len(s.files)
		if from >= end {
			continue
		}
		if bytescan.CRC32C(s.root) != s.Root.CRC {
			return nil, nil, fmt.Errorf("damaged root")
		}
		part, rows = append(part, index.Source{Root: s.root, Rows: s.Rows, Body: s.body, Size: s.size}), append(rows, s.Rows)
		r := rowset.Range{Start: uint32(from) * per, End: uint32(end) * per}
		moves = append(moves, move{r, to})
		to += r.Len()
	}
	m := index.NewOrdinalMap(rows)
	for i, x := range moves {
		m.Move(i, x.old, x.to)
	}
	return part, m, m.Seal(to)
}

// sameAnswers asks both what rows hold single values and ranges: a kind that is exact must say the same, any other must not lose a row that
// the other one is sure of.
func sameAnswers(merged, built []held) error {
	if len(merged) != len(built) {
		return fmt.Errorf("%d artifacts merged, %d built", len(merged), len(built))
	}
	for i := range merged {
		a, err := merged[i].kind.Kind.Open(merged[i].root, merged[i].Rows)
		if err != nil {
			return err
		}
		b, err := built[i].kind.Kind.Open(built[i].root, built[i].Rows)
		if err != nil {
			return err
		}
		for n := range 20 {
			e := eventAt(int64(n) * 499_979 % (int64(merged[i].Rows) * int64(len(merged))))
			for _, op := range []predicate.Op{predicate.Equal, predicate.Less} {
				leaf := leafOf(merged[i].cols[0], e, op)
				x, err := ask(a, leaf, merged[i].body)
				if err != nil {
					return err
				}
				y, err := ask(b, leaf, built[i].body)
				if err != nil {
					return err
				}
				exact := merged[i].kind.Kind.Says(merged[i].cols, leaf) == index.Exact
				if exact && (!x.May.Equal(y.May) || !x.Must.Equal(y.Must)) || !rowset.And(y.Must, x.May).Equal(y.Must) || !rowset.And(x.Must, y.May).Equal(x.Must) {
					return fmt.Errorf("other answers: may %s and %s", x.May, y.May)
				}
			}
		}
	}
	return nil
}

func leafOf(c column.Path, e event, op predicate.Op) *predicate.Leaf {
	l := &predicate.Leaf{Column: predicate.Column{Path: c}, Op: op}
	switch c.Leaf().ID {
	case 1:
		l.Values = []column.Value{column.IntValue(column.Long, e.ID)}
	case 2:
		l.Values = []column.Value{column.IntValue(column.Timestamp, e.At)}
	default:
		l.Values = []column.Value{column.StringValue(e.City)}
	}
	return l
}

func ask(r index.Reader, leaf *predicate.Leaf, body io.ReaderAt) (rowset.Verdict, error) {
	p := r.Probe(leaf)
	for need := p.Need(); len(need) > 0; need = p.Need() {
		data := make([][]byte, len(need))
		for i, s := range need {
			data[i] = make([]byte, s.Len)
			if _, err := body.ReadAt(data[i], s.Off); err != nil {
				return rowset.Verdict{}, err
			}
		}
		if err := p.Feed(data); err != nil {
			return rowset.Verdict{}, err
		}
	}
	return p.Verdict(), nil
}
