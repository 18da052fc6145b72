package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

// lanceOptimize prints what LanceDB's optimize takes on the same files as fragments, once with indexes and once without any: it rewrites data
// and indexes together, so the difference is what the indexes cost.
func lanceOptimize(ctx context.Context, old string, rows int, ours spent) error {
	p, err := startPeer(ctx, "bench/peers/lancedb_compaction.py")
	if err != nil {
		return err
	}
	defer p.stop()
	folder, err := filepath.Abs(filepath.Join(cacheDir, fmt.Sprintf("lance-compaction-%d", rows)))
	if err != nil {
		return err
	}
	a, err := p.ask(map[string]any{"compact": folder, "parquet": filepath.Join(old, "data")})
	if err != nil || len(a.Seconds) != 4 {
		return fmt.Errorf("the peer answered %v: %w", a, err)
	}
	const id = 12345
	e, same := eventAt(id), 1
	for n := range int64(rows) * 100 {
		if eventAt(n).City == e.City {
			same++
		}
	}
	found, err := p.ask(map[string]any{"id": e.ID, "city": e.City})
	if err != nil || found.Rows != same {
		return fmt.Errorf("the peer finds %d rows, there are %d: %w", found.Rows, same, err)
	}
	indexed, plain, indexedCPU, plainCPU := a.Seconds[0], a.Seconds[1], a.Seconds[2], a.Seconds[3]
	fmt.Printf("  LanceDB %s, optimize() with its defaults (two cores, a million rows a fragment): %d fragments; %s; both used\n", a.Version, a.Rows, strings.Join(a.First, ", "))
	fmt.Printf("  its optimize %.1f s (%.1f s of CPU), without indexes %.1f s (%.1f s): its indexes of id and city take %.1f s (%.1f s), ours %.2f s (%.2f s): %.1f× (%.1f× in CPU)\n",
		indexed, indexedCPU, plain, plainCPU, indexed-plain, indexedCPU-plainCPU, ours.wall, ours.cpu, (indexed-plain)/ours.wall, (indexedCPU-plainCPU)/ours.cpu)
	return nil
}
