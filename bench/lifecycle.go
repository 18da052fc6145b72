package main

import (
	"context"
	"fmt"
	"time"

	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/mem"
)

// lifeCycle is row 15: commits on an overlay in memory, so that what is timed is our own work and the objects put are counted.
func lifeCycle(ctx context.Context) error {
	const artifacts, perBuild = 1_000_000, 500
	st := mem.New()
	o := overlay.Open(st, "overlay", overlay.Options{})
	defer o.Close()
	table := overlay.Table{UUID: "00000000-0000-0000-0000-000000000001", Location: "/lake/t"}
	if _, err := o.Commit(ctx, nil, overlay.Mount(table, overlay.Upstream{SnapshotID: 1, SequenceNumber: 1})); err != nil {
		return err
	}
	r, err := o.Commit(ctx, nil, overlay.AddIndex(overlay.Definition{Kind: "bloom", KindVersion: 1, FieldIDs: []int{1}, Names: []string{"id"}}))
	if err != nil {
		return err
	}
	index := r.Indexes[0]
	start := time.Now()
	v := r.Version
	for n := 0; n < artifacts; n += perBuild {
		if r, err = o.Commit(ctx, v, overlay.Publish(nil, someBuild(index, n, perBuild))); err != nil {
			return err
		}
		v = r.Version
		if n == 50_000-perBuild {
			fmt.Printf("  at 50,000 files, after %.0f s of commits:\n", time.Since(start).Seconds())
			if err := addAndDrop(ctx, o, v); err != nil {
				return err
			}
			if v, err = o.Latest(ctx); err != nil {
				return err
			}
		}
	}
	fmt.Printf("  at %d artifacts, after %.0f s of commits:\n", artifacts, time.Since(start).Seconds())
	var usage []store.Usage
	var millis []float64
	for i := range 7 {
		took, used, err := timed(ctx, func(ctx context.Context) error {
			r, err := o.Commit(ctx, v, overlay.Publish(nil, someBuild(index, artifacts+i*perBuild, perBuild)))
			if err == nil {
				v = r.Version
			}
			return err
		})
		if err != nil {
			return err
		}
		millis, usage = append(millis, took), append(usage, used)
	}
	var puts, written int64
	for _, u := range usage {
		puts, written = max(puts, u.Puts), max(written, u.BytesWritten)
	}
	fmt.Printf("  a build commit of %d artifacts: %.1f ms (median of %d), at most %d PUTs and %d bytes\n", perBuild, median(millis), len(millis), puts, written)
	verdict(15, median(millis), " ms for a build commit", "≤ 20 ms", median(millis) <= 20)
	verdict(15, float64(puts), " PUTs for a build commit", "≤ 3", puts <= 3)
	verdict(15, float64(written)/1e6, " MB for a build commit", "≤ 1", written <= 1e6)
	return nil
}

func addAndDrop(ctx context.Context, o *overlay.Overlay, v *overlay.Version) error {
	var add, drop []float64
	var puts int64
	for i := range 7 {
		var id string
		took, used, err := timed(ctx, func(ctx context.Context) error {
			r, err := o.Commit(ctx, v, overlay.AddIndex(overlay.Definition{Kind: "zonemap", KindVersion: 1, FieldIDs: []int{2 + i}, Names: []string{"x"}}))
			if err == nil {
				v, id = r.Version, r.Indexes[0]
			}
			return err
		})
		if err != nil {
			return err
		}
		add, puts = append(add, took), max(puts, used.Puts)
		took, used, err = timed(ctx, func(ctx context.Context) error {
			r, err := o.Commit(ctx, v, overlay.DropIndex(id))
			if err == nil {
				v = r.Version
			}
			return err
		})
		if err != nil {
			return err
		}
		drop, puts = append(drop, took), max(puts, used.Puts)
	}
	verdict(15, median(add), " ms to add", "≤ 5 ms", median(add) <= 5)
	verdict(15, median(drop), " ms to drop", "≤ 5 ms", median(drop) <= 5)
	verdict(15, float64(puts), " PUTs, the head included", "1 and the head", puts <= 2)
	return nil
}

// timed is the milliseconds and the usage of one operation.
func timed(ctx context.Context, f func(context.Context) error) (float64, store.Usage, error) {
	var c store.Counter
	start := time.Now()
	err := f(store.WithCounter(ctx, &c))
	return time.Since(start).Seconds() * 1e3, c.Usage(), err
}

// someBuild is n artifacts over files from first on, as a build publishes them.
func someBuild(index string, first, n int) overlay.Build {
	b := overlay.Build{ID: fmt.Sprintf("build-%d", first), Bundle: fmt.Sprintf("overlay/data/build-%d.puffin", first), SnapshotID: 1, Sequence: 1}
	for i := range n {
		b.Artifacts = append(b.Artifacts, overlay.Artifact{
			IndexID: index, FormatVersion: lineage.FormatVersion,
			Files: []overlay.Identity{{
				Path: fmt.Sprintf("s3://lake/warehouse/db/events/data/day=2026-01-01/part-%09d.parquet", first+i), Size: 1 << 20, Records: 50_000,
				Tag: store.Tag(fmt.Sprintf("%032x", first+i)),
			}},
			Columns: []lineage.Column{{FieldID: 1, Name: "id", LeafPath: "id", Resolved: "id", Type: "long", Encoding: "key-v1:long"}},
			Body:    lineage.Place{Off: int64(i) * 70_000, Len: 65_536, CRC: uint32(i)},
			Root:    lineage.Place{Off: 1<<30 + int64(i)*200, Len: 200, CRC: uint32(i)},
			Lineage: lineage.Place{Off: 1<<29 + int64(i)*900, Len: 900, CRC: uint32(i)},
		})
	}
	return b
}
