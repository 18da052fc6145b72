package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// pythonLimit bounds the time that PyIceberg may take for one plan.
const pythonLimit = 150 * time.Second

// planPython asks PyIceberg once warm: it keeps decoded manifests, so that the second plan of a process is the one to compare.
func planPython(ctx context.Context, dir string, q planQuestion, ours float64) error {
	metadata, err := newestMetadata(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pythonLimit)
	defer cancel()
	p, err := startPeer(ctx, "bench/peers/pyiceberg_peer.py")
	if err != nil {
		return err
	}
	defer p.stop()
	opened, err := p.ask(map[string]any{"table": metadata})
	if err != nil {
		return err
	}
	start := time.Now()
	for _, temperature := range []string{"first touch", "warm"} {
		a, err := p.ask(map[string]any{"filter": q.pyiceberg()})
		if err != nil {
			fmt.Printf("  PyIceberg %s, %s: no answer after %.0f s\n", opened.Version, temperature, time.Since(start).Seconds())
			ratio := time.Since(start).Seconds() * 1e3 / ours
			verdict(4, ratio, "× PyIceberg at least", "≥ 1,000×", ratio >= 1000)
			return nil
		}
		mine, err := ourAnswer(ctx, dir, q)
		if err != nil {
			return err
		}
		if a.Digest != mine.digest {
			return fmt.Errorf("PyIceberg leaves %d files, we leave %d", a.Rows, mine.files)
		}
		fmt.Printf("  PyIceberg %s, %s: %.1f s\n", opened.Version, temperature, a.Seconds[0])
		if temperature == "warm" {
			ratio := a.Seconds[0] * 1e3 / ours
			verdict(4, ratio, "× PyIceberg warm", "≥ 1,000×", ratio >= 1000)
		}
	}
	return nil
}

// moduleVersion is the version of a library of this program.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == path {
				return d.Version
			}
		}
	}
	return "of unknown version"
}
