package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store/local"
)

const (
	remotePairs  = 41
	remoteFiles  = 2000
	remotePer    = 50_000
	firstTouches = 5
)

// remoteEquality is row 2: equality on a random id over files in object storage, nothing but snapshot and overlay version in memory.
func remoteEquality(ctx context.Context) error {
	dir, err := eventTable(ctx, "events-2000", remoteFiles, remotePer)
	if err != nil {
		return err
	}
	location, err := laidOut(ctx, dir, "ordered(id)")
	if err != nil {
		return err
	}
	root := filepath.Dir(dir)
	s3, err := startStandIn(root)
	if err != nil {
		return err
	}
	defer s3.stop()
	for k, v := range map[string]string{
		"AWS_ENDPOINT_URL": s3.Endpoint, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1",
	} {
		if err := os.Setenv(k, v); err != nil {
			return err
		}
	}
	lance, err := lanceTable(ctx, root, dir, s3)
	if err != nil {
		return err
	}
	defer lance.stop()
	r := &remote{standIn: s3, dir: dir, overlay: "s3://bench" + location[len(root):], root: root}
	if err := r.pinned(ctx, lance); err != nil {
		return err
	}
	if err := r.firstTouch(ctx); err != nil {
		return err
	}
	if err := r.scanned(ctx); err != nil {
		return err
	}
	return incremental(ctx)
}

// laidOut is where the overlay of a table is, with an index whose file map has the layouts of the files: one that was kept from before there
// were any is made anew.
func laidOut(ctx context.Context, dir, expr string) (location string, err error) {
	for range 2 {
		t, err := openEvents(ctx, dir, expr)
		if err != nil {
			return "", err
		}
		defer t.Close()
		v, err := overlay.Open(local.New(), t.Overlay(), overlay.Options{}).Latest(ctx)
		if err != nil {
			return "", err
		}
		all, err := t.Indexes(ctx)
		if err != nil {
			return "", err
		}
		of := all[slices.IndexFunc(all, func(x skomer.Index) bool { return x.Expr == expr })]
		lacking := false
		for _, e := range v.Derived(filemap.Kind) {
			if e.Index != of.ID {
				continue
			}
			m, err := filemap.ParseMeta(e.Name, e.Meta)
			if err != nil {
				return "", err
			}
			lacking = lacking || m.Layouts == nil
		}
		if !lacking {
			return t.Overlay(), nil
		}
		if _, err := t.DropIndex(ctx, expr); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("the file map of %s has no layouts", expr)
}

// incremental appends files one by one, each with a sync of its own, and prints what is kept of the file map.
func incremental(ctx context.Context) error {
	const syncs, perFile = 64, 5000
	dir, err := filepath.Abs(filepath.Join(cacheDir, "events-incremental"))
	if err != nil {
		return err
	}
	for _, gone := range []string{dir, dir + "-overlays"} {
		if err := os.RemoveAll(gone); err != nil {
			return err
		}
	}
	paths, err := eventFiles(ctx, dir, syncs, perFile)
	if err != nil {
		return err
	}
	w, err := lakewrite.Create(ctx, local.New(), dir, lakewrite.Spec{Schema: &eventSchema})
	if err != nil {
		return err
	}
	c, err := skomer.New(skomer.Config{OverlayRoot: dir + "-overlays", MaxStaleness: time.Nanosecond, Workers: 2})
	if err != nil {
		return err
	}
	var t *skomer.Table
	for i, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return err
		}
		if _, err := w.Append(ctx, lakewrite.File{Path: p, Format: facts.Parquet, Records: perFile, Size: info.Size()}); err != nil {
			return err
		}
		if i == 0 {
			if t, err = c.Open(ctx, dir, skomer.TableOptions{}); err != nil {
				return err
			}
			defer t.Close()
			if err := t.Mount(ctx); err != nil {
				return err
			}
			if _, err := t.AddIndex(ctx, "ordered(id)"); err != nil {
				return err
			}
		}
		if _, err := t.Sync(ctx, skomer.SyncOptions{}); err != nil {
			return err
		}
	}
	all, err := t.Indexes(ctx)
	if err != nil {
		return err
	}
	m := all[0].FileMap
	fmt.Printf("  after %d incremental syncs: %d runs over %d rows, %d bytes stored, %d bytes resident\n", syncs, m.Runs, m.Rows, m.Bytes, m.Memory)
	verdict(2, float64(m.Runs), " runs after 64 syncs", "≤ 4", m.Runs <= 4)
	return nil
}

// lanceTable is LanceDB with its table, which is made once and kept.
func lanceTable(ctx context.Context, root, dir string, s3 *standIn) (*peer, error) {
	p, err := startPeer(ctx, "bench/peers/lancedb_peer.py")
	if err != nil {
		return nil, err
	}
	for _, command := range []map[string]any{
		{"build": filepath.Join(root, "lance-2000"), "parquet": filepath.Join(dir, "data")},
		{"open": "s3://bench/lance-2000", "endpoint": s3.Endpoint},
	} {
		a, err := p.ask(command)
		if err != nil {
			p.stop()
			return nil, err
		}
		if command["build"] != nil {
			fmt.Printf("  LanceDB %s, BTree on id; for each id the table was opened before, and nothing of its index is in memory\n", a.Version)
		}
	}
	return p, nil
}

type remote struct {
	*standIn
	dir, overlay, root string
}

// open opens the table in the bucket with empty caches.
func (r *remote) open(ctx context.Context) (*skomer.Table, error) {
	c, err := skomer.New(skomer.Config{CacheBytes: 1 << 30, MaxStaleness: time.Hour, Workers: 2})
	if err != nil {
		return nil, err
	}
	name := "s3://bench" + r.dir[len(r.root):]
	return c.Open(ctx, name, skomer.TableOptions{Overlay: r.overlay, Map: []skomer.Mapping{{From: r.dir, To: name}}})
}

func remoteQuery(i int) (int64, skomer.Query) {
	id := eventID(int64(uint64(i+1) * 7919131 % (remoteFiles * remotePer)))
	return id, skomer.Query{Where: fmt.Sprintf("id = %d", id), Select: []string{"user", "city", "amount"}, Limit: -1}
}

// pinned measures queries of which each is the first to touch its index and data.
func (r *remote) pinned(ctx context.Context, lance *peer) error {
	var ours, theirs []float64
	var waves, gets, bytes int64
	for i := range remotePairs {
		t, err := r.open(ctx)
		if err != nil {
			return err
		}
		// another query brings snapshot, version and the roots of the file map into memory
		if _, _, _, err := answerOf(ctx, t, skomer.Query{Where: "id = 1", Select: []string{"user"}, Limit: -1}); err != nil {
			return err
		}
		id, q := remoteQuery(i)
		r.slow.Store(true)
		rows, took, stats, err := answerOf(ctx, t, q)
		if err != nil {
			return err
		}
		a, err := lance.ask(map[string]any{"id": id})
		r.slow.Store(false)
		if err != nil {
			return err
		}
		if a.Digest != digest(rows) {
			return fmt.Errorf("answers differ on id %d: ours %v, the peer's %v", id, rows, a.First)
		}
		ours, theirs = append(ours, took), append(theirs, a.Seconds[0])
		waves, gets, bytes = max(waves, stats.Waves), max(gets, stats.Requests), max(bytes, stats.Bytes)
		t.Close()
	}
	ratio := median(ratios(theirs, ours))
	fmt.Printf("  pinned: ours %.0f ms, LanceDB %.0f ms (medians of %d); at most %d waves, %d requests, %d bytes\n",
		median(ours)*1e3, median(theirs)*1e3, len(ours), waves, gets, bytes)
	verdict(2, ratio, "×", "≥ 3×", ratio >= 3)
	verdict(2, float64(waves), " waves pinned", "≤ 3", waves <= 3)
	verdict(2, float64(gets), " requests pinned", "≤ 8", gets <= 8)
	verdict(2, float64(bytes)/1e6, " MB pinned", "≤ 1", bytes <= 1e6)
	return nil
}

// firstTouch measures opening the table and asking, with nothing in memory.
func (r *remote) firstTouch(ctx context.Context) error {
	var took []float64
	var gets int64
	for i := range firstTouches {
		r.reset()
		r.slow.Store(true)
		start := time.Now()
		t, err := r.open(ctx)
		if err != nil {
			return err
		}
		_, q := remoteQuery(100 + i)
		rows, _, _, err := answerOf(ctx, t, q)
		r.slow.Store(false)
		if err != nil || len(rows) != 1 {
			return fmt.Errorf("%d rows: %w", len(rows), err)
		}
		took, gets = append(took, time.Since(start).Seconds()), max(gets, r.gets.Load())
		t.Close()
	}
	fmt.Printf("  first touch: %.0f ms (median of %d), %d bytes in the last\n", median(took)*1e3, len(took), r.bytes.Load())
	verdict(2, float64(gets), " requests at first touch", "≤ 14", gets <= 14)
	waves := math.MaxInt
	for range firstTouches { // a busy machine can make requests look dependent that are not, never the other way round
		n, err := r.dependent(ctx)
		if err != nil {
			return err
		}
		waves = min(waves, n)
	}
	verdict(2, float64(waves), " waves at first touch", "≤ 5", waves <= 5)
	return nil
}

// scanned asks PyIceberg once, with the table open: it has no index, so that it reads the ids of every file.
func (r *remote) scanned(ctx context.Context) error {
	metadata, err := newestMetadata(r.dir)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, pythonLimit)
	defer cancel()
	p, err := startPeer(limited, "bench/peers/pyiceberg_peer.py")
	if err != nil {
		return err
	}
	defer p.stop()
	opened, err := p.ask(map[string]any{"table": metadata, "from": r.root, "to": "s3://bench", "endpoint": r.Endpoint})
	if err != nil {
		return err
	}
	t, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	id, q := remoteQuery(300)
	r.slow.Store(true)
	defer r.slow.Store(false)
	rows, ours, _, err := answerOf(ctx, t, q)
	if err != nil {
		return err
	}
	start := time.Now()
	a, err := p.ask(map[string]any{"id": id})
	theirs, least := time.Since(start).Seconds(), ""
	switch {
	case err != nil && limited.Err() != nil:
		least = ", no answer by then"
	case err != nil:
		return err
	case a.Digest != digest(rows):
		return fmt.Errorf("answers differ on id %d: ours %v, PyIceberg's %v", id, rows, a.First)
	}
	fmt.Printf("  first touch with the table open: ours %.0f ms, PyIceberg %s %.1f s%s\n", ours*1e3, opened.Version, theirs, least)
	verdict(2, theirs/ours, "× PyIceberg", "≥ 3×", theirs >= 3*ours)
	return nil
}

// dependent counts the requests of a first touch of which each waited for the one before.
func (r *remote) dependent(ctx context.Context) (int, error) {
	r.reset()
	r.flat.Store(true)
	defer r.flat.Store(false)
	t, err := r.open(ctx)
	if err != nil {
		return 0, err
	}
	defer t.Close()
	_, q := remoteQuery(200)
	_, _, _, err = answerOf(ctx, t, q)
	return r.chain(), err
}
