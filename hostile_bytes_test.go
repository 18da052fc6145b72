package skomer_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/skomerdb/skomer/internal/tabletest"
)

// TestDamagedOverlays: bytes of the overlay are flipped, cut off, exchanged and deleted; every answer stays, in new processes and in old.
func TestDamagedOverlays(t *testing.T) {
	rng, _ := seeded(t)
	for range rounds(t, 5) {
		dir := t.TempDir()
		made := tabletest.Create(t, rng, filepath.Join(dir, "table"))
		made.Append(t, 4, 200)
		made.Append(t, 3, 200)
		overlays := filepath.Join(dir, "overlays")
		builder := open(t, made.Dir, overlays)
		indexed(t, builder, declarations(rng, made.Schema)...)
		builder.Close() // its head is written
		var objects []string
		_ = filepath.WalkDir(overlays, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				objects = append(objects, p)
			}
			return err
		})
		old := open(t, made.Dir, overlays)
		compare(t, rng, made, old, "whole")
		for range 4 {
			p := objects[rng.IntN(len(objects))]
			b, err := os.ReadFile(p)
			if err != nil {
				continue
			}
			how := rng.IntN(5)
			switch {
			case len(b) == 0:
				continue
			case how < 2:
				for range 1 + rng.IntN(4) {
					b[rng.IntN(len(b))] ^= byte(1 << rng.IntN(8))
				}
			case how == 2:
				b = b[:rng.IntN(len(b))]
			case how == 3:
				if b, err = os.ReadFile(objects[rng.IntN(len(objects))]); err != nil {
					continue
				}
			default:
				_ = os.Remove(p)
				b = nil
			}
			if b != nil {
				_ = os.Remove(p)
				if err := os.WriteFile(p, b, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			when := "damaged " + filepath.Base(p) + " " + string(rune('0'+how))
			compare(t, rng, made, open(t, made.Dir, overlays), when)
			compare(t, rng, made, old, when+", old client")
		}
	}
}
