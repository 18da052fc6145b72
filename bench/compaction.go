package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

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

var (
	scale   = flag.Float64("scale", 1, "row 12: share of its ten million rows")
	index12 = flag.String("index", "", "row 12: the one index to merge")
	pairs12 = flag.Int("merges", 3, "row 12: builds, and merges beside each of them, whose median counts")
)

// compacted is the indexes of row 12: every kind, and ordered over one and two columns.
var compacted = []string{
	"zonemap(at)", "bloom(id)", "valueset(city)", "bitmap(city)", "ordered(at)", "ordered(id)", "ordered(city)", "ordered(city, at)", "ngram(city)", "sketch(user)",
}

// compaction is row 12: a hundred files were rewritten as ten. What merging the artifacts of the old files takes, with reading and writing
// them, against building those of the new files from the data; both with two workers, and until the disk has the result. What is built is committed
// too.
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
	for _, k := range kinds.All() {
		if !slices.ContainsFunc(compacted, func(expr string) bool { return strings.HasPrefix(expr, k.Name+"(") }) {
			return fmt.Errorf("no index of kind %s", k.Name)
		}
	}
	var ours spent // for what the peer has too
	for _, expr := range compacted {
		if *index12 != "" && expr != *index12 {
			continue
		}
		took, err := compactOne(ctx, old, now, expr, before/after)
		if err != nil {
			return fmt.Errorf("%s: %w", expr, err)
		}
		if expr == "ordered(id)" || expr == "bitmap(city)" {
			ours.wall, ours.cpu = ours.wall+took.wall, ours.cpu+took.cpu
		}
	}
	if *index12 != "" {
		return nil
	}
	return lanceOptimize(ctx, old, rows, ours)
}

func compactOne(ctx context.Context, old, now, expr string, ratio int) (spent, error) {
	sources, _, err := artifactsOf(ctx, old, expr, true)
	if err != nil {
		return spent{}, err
	}
	var built, merged []held
	var builds, merges, buildCPU, mergeCPU []float64
	for range *pairs12 {
		own, took, err := artifactsOf(ctx, now, expr, false)
		if err != nil {
			return spent{}, err
		}
		built, builds, buildCPU = own, append(builds, took.wall), append(buildCPU, took.cpu)
		// Merges are short: the median of five counts, so that a pause of the machine does not.
		var wall, cpu []float64
		for range 5 {
			if err := removeMerged(merged); err != nil {
				return spent{}, err
			}
			clock := startClock()
			if merged, err = mergeInto(ctx, old, expr, sources, own, ratio); err != nil {
				return spent{}, err
			}
			took := clock.stop()
			wall, cpu = append(wall, took.wall), append(cpu, took.cpu)
		}
		merges, mergeCPU = append(merges, median(wall)), append(mergeCPU, median(cpu))
	}
	if err := errors.Join(sameAnswers(merged, built), removeMerged(merged)); err != nil {
		return spent{}, err
	}
	fmt.Printf("  %s: %d artifacts into %d, merged in %.0f ms (%.0f ms of CPU), built in %.0f ms (%.0f ms of CPU: %.0f×); no data file read, answers identical\n",
		expr, len(sources), len(built), median(merges)*1e3, median(mergeCPU)*1e3, median(builds)*1e3, median(buildCPU)*1e3, median(ratios(buildCPU, mergeCPU)))
	figure := median(ratios(builds, merges))
	verdict(12, figure, "× "+expr, "≥ 20×", figure >= 20)
	return spent{median(merges), median(mergeCPU)}, nil
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
	file  *os.File // of a merged one
}

// artifactsOf builds an index in an overlay of its own and lists its artifacts by the order of their files. Kept ones are not built again.
func artifactsOf(ctx context.Context, dir, expr string, keep bool) ([]held, spent, error) {
	overlays := filepath.Join(filepath.Dir(dir), "overlay "+expr)
	if !keep {
		if err := os.RemoveAll(overlays); err != nil {
			return nil, spent{}, err
		}
	}
	c, err := skomer.New(skomer.Config{OverlayRoot: overlays, MaxStaleness: time.Hour, Workers: 2})
	if err != nil {
		return nil, spent{}, err
	}
	t, err := c.Open(ctx, dir, skomer.TableOptions{Overlay: overlays})
	if err != nil {
		return nil, spent{}, err
	}
	defer t.Close()
	if err := t.Mount(ctx); err != nil {
		return nil, spent{}, err
	}
	if _, err := t.AddIndex(ctx, expr); err != nil {
		return nil, spent{}, err
	}
	clock := startClock()
	if _, err := t.Sync(ctx, skomer.SyncOptions{}); err != nil {
		return nil, spent{}, err
	}
	took := clock.stop()
	v, err := overlay.Open(local.New(), overlays, overlay.Options{}).Latest(ctx)
	if err != nil {
		return nil, spent{}, err
	}
	d, err := kinds.ParseExpr(expr, &eventSchema)
	if err != nil {
		return nil, spent{}, err
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

// mergeInto merges sources into artifacts over the files of built ones, each file of which holds the rows of ratio old files, and writes a
// bundle of each.
func mergeInto(ctx context.Context, dir, expr string, sources, built []held, ratio int) ([]held, error) {
	out := make([]held, len(built))
	g, _ := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for i, b := range built {
		g.Go(func() (err error) {
			out[i], err = mergeOne(filepath.Join(filepath.Dir(dir), fmt.Sprintf("merged-%d.puffin", i)), expr, sources, b, ratio)
			return err
		})
	}
	return out, g.Wait()
}

// removeMerged lets merges write new files, as builds do: cutting a file waits until what was written to it last is on the disk.
func removeMerged(merged []held) error {
	for _, m := range merged {
		if err := errors.Join(m.file.Close(), os.Remove(m.file.Name())); err != nil {
			return err
		}
	}
	return nil
}

// mergeOne merges the sources of what a built artifact is of into a bundle.
func mergeOne(path, expr string, sources []held, b held, ratio int) (held, error) {
	file, err := os.Create(path)
	if err != nil {
		return held{}, err
	}
	defer file.Close()
	w := bundle.NewWriter(file, bundle.BuildInfo{BuildID: "merged"})
	part, m, err := sourcesFor(sources, b.files, ratio)
	if err != nil {
		return held{}, err
	}
	spec := index.Spec{Columns: b.cols, Rows: b.Rows}
	for at := uint32(0); at < b.Rows; at += b.Rows / uint32(len(b.files)) {
		spec.RowGroups = append(spec.RowGroups, at)
	}
	spec.Pages = spec.RowGroups
	sink, err := w.Begin(lineage.Record{IndexID: expr, Algorithm: b.kind.Algorithm()})
	if err != nil {
		return held{}, err
	}
	root, reason, err := b.kind.Kind.Merge(spec, part, m, index.Budget{TempDir: os.TempDir()}, sink)
	if err != nil || root == nil {
		return held{}, fmt.Errorf("not merged: %s: %w", reason, err)
	}
	if err := w.End(root); err != nil {
		return held{}, err
	}
	placed, err := w.Close()
	if err := errors.Join(err, file.Sync()); err != nil { // as what is built is
		return held{}, err
	}
	data, err := os.Open(path)
	if err != nil {
		return held{}, err
	}
	p := placed[0]
	return held{ArtifactInfo: b.ArtifactInfo, kind: b.kind, cols: b.cols, root: p.RootBytes, body: io.NewSectionReader(data, p.Body.Off, p.Body.Len), size: p.Body.Len, file: data}, nil
}

// sourcesFor is the sources with rows of some new files, and where these go: every new file holds the rows of ratio old ones, in order.
func sourcesFor(sources []held, files []string, ratio int) ([]index.Source, *index.OrdinalMap, error) {
	var part []index.Source
	var rows []uint32
	wanted := map[int]uint32{} // old file → where its rows go
	to := uint32(0)
	for _, path := range files {
		n, err := fileNumber(path)
		if err != nil {
			return nil, nil, err
		}
		for old := n * ratio; old < (n+1)*ratio; old++ {
			wanted[old] = to
			to += sources[0].Rows / uint32(len(sources[0].files))
		}
	}
	moves := make([][][2]uint32, len(sources)) // of whole files: from row and to row
	for i, s := range sources {
		for k, path := range s.files {
			n, err := fileNumber(path)
			if err != nil {
				return nil, nil, err
			}
			if at, ok := wanted[n]; ok {
				moves[i] = append(moves[i], [2]uint32{uint32(k) * (s.Rows / uint32(len(s.files))), at})
			}
		}
		if len(moves[i]) == 0 {
			continue
		}
		if bytescan.CRC32C(s.root) != s.Root.CRC {
			return nil, nil, fmt.Errorf("damaged root")
		}
		part, rows = append(part, index.Source{Root: s.root, Rows: s.Rows, Body: s.body, Size: s.size}), append(rows, s.Rows)
	}
	m := index.NewOrdinalMap(rows)
	moves = slices.DeleteFunc(moves, func(of [][2]uint32) bool { return len(of) == 0 })
	for i, of := range moves {
		for _, x := range of {
			m.Move(i, rowset.Range{Start: x[0], End: x[0] + sources[0].Rows/uint32(len(sources[0].files))}, x[1])
		}
	}
	return part, m, m.Seal(to)
}

// fileNumber is the number that eventFiles gave a file.
func fileNumber(path string) (int, error) {
	return strconv.Atoi(strings.TrimSuffix(filepath.Base(path), ".parquet"))
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
