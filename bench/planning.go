package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/predicate/sqltext"
)

// planQuestion is a range of ids, which few files can hold, in the younger half of the table.
type planQuestion struct{ from, to, since int64 }

func planQuestions(n int) (out []planQuestion) {
	r := rand.New(rand.NewPCG(5, 5))
	for range n {
		from := r.Int64N(wideSpan - 100_000)
		out = append(out, planQuestion{from, from + 100_000, wideStart + wideManifests*wideFiles/2*60_000_000})
	}
	return out
}

func (q planQuestion) sql() string {
	at := time.UnixMicro(q.since).UTC().Format("2006-01-02T15:04:05")
	return fmt.Sprintf("id >= %d AND id < %d AND ts >= '%s'", q.from, q.to, at)
}

func (q planQuestion) iceberg() iceberg.BooleanExpression {
	return iceberg.NewAnd(
		iceberg.GreaterThanEqual(iceberg.Reference("id"), q.from), iceberg.LessThan(iceberg.Reference("id"), q.to),
		iceberg.GreaterThanEqual(iceberg.Reference("ts"), iceberg.Timestamp(q.since)))
}

func (q planQuestion) pyiceberg() string {
	at := time.UnixMicro(q.since).UTC().Format("2006-01-02T15:04:05+00:00")
	return fmt.Sprintf("id >= %d and id < %d and ts >= '%s'", q.from, q.to, at)
}

func digestOf(paths []string) string {
	slices.Sort(paths)
	sum := sha256.Sum256([]byte(strings.Join(paths, "\n")))
	return hex.EncodeToString(sum[:])
}

// planned is what a plan of the wide table left.
type planned struct {
	files  int
	digest string
	took   float64
}

// planOnce opens the table with nothing cached and plans a query, all of it.
func planOnce(ctx context.Context, dir, overlays string, q planQuestion) (float64, skomer.Stats, error) {
	start := time.Now()
	t, err := openWide(ctx, dir, overlays)
	if err != nil {
		return 0, skomer.Stats{}, err
	}
	defer t.Close()
	rows, err := t.Query(ctx, skomer.Query{Where: q.sql(), Limit: -1})
	if err != nil {
		return 0, skomer.Stats{}, err
	}
	return time.Since(start).Seconds(), rows.Stats(), nil
}

func openWide(ctx context.Context, dir, overlays string) (*skomer.Table, error) {
	c, err := skomer.New(skomer.Config{OverlayRoot: overlays, MaxStaleness: time.Hour, Workers: 2})
	if err != nil {
		return nil, err
	}
	return c.Open(ctx, dir, skomer.TableOptions{})
}

// ourAnswer is the files that are left, named.
func ourAnswer(ctx context.Context, dir string, q planQuestion) (p planned, err error) {
	t, err := lake.New(lake.Options{}).Open(ctx, dir)
	if err != nil {
		return p, err
	}
	v, err := t.View(lake.Current())
	if err != nil {
		return p, err
	}
	tree, err := sqltext.Parse(q.sql(), v.Shell().Schema)
	if err != nil {
		return p, err
	}
	s, ok, err := v.Select(ctx, nil, plan.NewSieve(v.Shell(), tree), 1<<30)
	if err == nil && !ok {
		err = errors.New("the table has deletes")
	}
	if err != nil {
		return p, err
	}
	return planned{files: s.Snapshot.Files.Len(), digest: digestOf(slices.Clone(s.Snapshot.Files.Stated))}, nil
}

// icebergGo plans with iceberg-go, which uses all cores.
func icebergGo(ctx context.Context, metadata string, q planQuestion) (p planned, err error) {
	start := time.Now()
	fs := func(context.Context) (icebergio.IO, error) { return icebergio.LocalFS{}, nil }
	t, err := table.NewFromLocation(ctx, []string{"wide"}, metadata, fs, nil)
	if err != nil {
		return p, err
	}
	tasks, err := t.Scan(table.WithRowFilter(q.iceberg())).PlanFiles(ctx)
	if err != nil {
		return p, err
	}
	p.took = time.Since(start).Seconds()
	var paths []string
	for _, task := range tasks {
		paths = append(paths, task.File.FilePath())
	}
	p.files, p.digest = len(paths), digestOf(paths)
	return p, nil
}

// planFirst is row 3: planning a million files with nothing cached.
func planFirst(ctx context.Context) error {
	dir, err := wideTable(ctx)
	if err != nil {
		return err
	}
	metadata, err := newestMetadata(dir)
	if err != nil {
		return err
	}
	none := filepath.Join(filepath.Dir(dir), "overlays-none")
	kept, err := keptWide(ctx, dir)
	if err != nil {
		return err
	}
	fmt.Printf("  iceberg-go %s, GOMAXPROCS %d\n", moduleVersion("github.com/apache/iceberg-go"), runtime.GOMAXPROCS(0))
	var ours, peers, blobs []float64
	for i, q := range planQuestions(6) {
		a, stats, err := planOnce(ctx, dir, none, q)
		if err != nil {
			return err
		}
		b, err := icebergGo(ctx, metadata, q)
		if err != nil {
			return err
		}
		c, keptStats, err := planOnce(ctx, dir, kept, q)
		if err != nil {
			return err
		}
		mine, err := ourAnswer(ctx, dir, q)
		if err != nil {
			return err
		}
		if mine.digest != b.digest || stats.FilesLeft != mine.files || keptStats.FilesLeft != mine.files {
			return fmt.Errorf("question %d: iceberg-go leaves %d files, we leave %d, %d of them by the plan and %d with facts kept", i, b.files, mine.files, stats.FilesLeft, keptStats.FilesLeft)
		}
		fmt.Printf("  %d files left: ours %.2f s, iceberg-go %.1f s, with facts kept %.3f s (%d requests, %d waves, %.1f MB)\n",
			mine.files, a, b.took, c, keptStats.Requests, keptStats.Waves, float64(keptStats.Bytes)/1e6)
		if i > 0 { // the first one warms the files
			ours, peers, blobs = append(ours, a), append(peers, b.took), append(blobs, c)
		}
	}
	ratio := median(ratios(peers, ours))
	verdict(3, ratio, "× iceberg-go without facts kept", "≥ 4×", ratio >= 4)
	verdict(3, median(ours), " s without facts kept", "≤ 2.5 s", median(ours) <= 2.5)
	verdict(3, median(blobs), " s with facts kept", "≤ 0.3 s", median(blobs) <= 0.3)
	return nil
}

// keptWide mounts the wide table, once, with facts of all its manifests, and returns the root of its overlay.
func keptWide(ctx context.Context, dir string) (string, error) {
	root := filepath.Join(filepath.Dir(dir), "overlays-wide")
	t, err := openWide(ctx, dir, root)
	if err != nil {
		return "", err
	}
	defer t.Close()
	if err := t.Mount(ctx); err != nil {
		return "", err
	}
	start := time.Now()
	r, err := t.Sync(ctx, skomer.SyncOptions{})
	if err != nil {
		return "", err
	}
	if r.BytesWritten > 0 {
		fmt.Printf("  facts of the manifests kept in %.1f s, %.0f MB\n", time.Since(start).Seconds(), float64(r.BytesWritten)/1e6)
	}
	return root, nil
}

// planWarm is row 4: planning the same again, with another question.
func planWarm(ctx context.Context) error {
	dir, err := wideTable(ctx)
	if err != nil {
		return err
	}
	kept, err := keptWide(ctx, dir)
	if err != nil {
		return err
	}
	before := heap()
	t, err := openWide(ctx, dir, kept)
	if err != nil {
		return err
	}
	defer t.Close()
	var ours []float64
	questions := planQuestions(60)
	for i, q := range questions {
		start := time.Now()
		rows, err := t.Query(ctx, skomer.Query{Where: q.sql(), Limit: -1})
		if err != nil {
			return err
		}
		took := time.Since(start).Seconds() * 1e3
		if i >= 10 {
			ours = append(ours, took)
		}
		if i%20 == 19 {
			mine, err := ourAnswer(ctx, dir, q)
			if err != nil {
				return err
			}
			if n := rows.Stats().FilesLeft; n != mine.files {
				return fmt.Errorf("%d files left warm, %d cold", n, mine.files)
			}
		}
	}
	held := float64(heap() - before)
	const columns = 2
	files := float64(wideManifests * wideFiles)
	perFile := held / files
	fmt.Printf("  ours %.2f ms (median of %d), %.0f bytes a file held with %d columns resident\n", median(ours), len(ours), perFile, columns)
	verdict(4, median(ours), " ms warm", "≤ 5 ms", median(ours) <= 5)
	verdict(4, perFile, fmt.Sprintf(" bytes a file with %d columns", columns), "≤ 64 + 20 a column", perFile <= 64+20*columns)
	runtime.KeepAlive(t)
	return planPython(ctx, dir, questions[0], median(ours))
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// newestMetadata is the newest metadata.json of a table that package lakewrite wrote.
func newestMetadata(dir string) (string, error) {
	hint, err := os.ReadFile(filepath.Join(dir, "metadata", "version-hint.text"))
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "metadata", "v"+strings.TrimSpace(string(hint))+".metadata.json"), nil
}
