package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/demo"
	"github.com/skomerdb/skomer/internal/cli/render"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store/local"
)

// demoIndexes are declared on the flights.
var demoIndexes = []string{"ordered(flight_id)", "ordered(delay)", "bloom(destination)", "zonemap(state)"}

// demoFilters are asked with and without indexes. The last is answered by Iceberg's own bounds: no index can help it.
var demoFilters = []string{
	"flight_id = '7CBWH4K3'",
	"flight_id IN ('7CBWH4K3', 'SHA9MG6D', 'A58VSZGG')",
	"destination = 'GST'",
	"delay BETWEEN 400 AND 405",
	"origin = 'JFK' AND delay > 300",
	"state IS NULL",
	"departed >= '2001-03-01' AND departed < '2001-03-02' AND origin = 'JFK'",
}

const longDemo = `Writes 600,000 real flights as an Iceberg table of 60 data files, makes it read-only, mounts it with an overlay of its own,
builds indexes, asks questions with and without them, deletes the overlay and asks again. The table stays for you to explore.`

func (a *app) demoCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "demo", Short: "Show it all on real flights, in a few seconds", Long: longDemo,
		Example: `  skomer demo
  skomer demo --dir /tmp/flights-demo`,
		Args: takes(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.flags.output != "table" {
				return fault.New(fault.Invalid, "--output", "the demo is for people").WithFix("leave --output out")
			}
			if dir == "" {
				cache, err := os.UserCacheDir()
				if err != nil {
					return fault.Wrap(fault.Invalid, "--dir", err)
				}
				dir = filepath.Join(cache, "skomer", "demo")
			}
			return a.demo(cmd.Context(), dir)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder for table and overlay, replaced if it holds an earlier demo (default: the user's cache folder)")
	return cmd
}

func (a *app) demo(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fault.Wrap(fault.Invalid, "--dir", err)
	}
	location, overlays := filepath.Join(dir, "flights"), filepath.Join(dir, "overlay")
	if err := removeEarlier(dir, location, overlays); err != nil {
		return err
	}
	if err := demo.Write(ctx, local.New(), location); err != nil {
		return err
	}
	if err := protect(location, 0o222, 0); err != nil {
		return err
	}
	d := demoRun{app: a, location: location, overlays: overlays}
	a.say("1. An Iceberg table that somebody else owns: %s (read-only from here on)\n", location)
	a.say("2. Mount it and build indexes beside it, in %s\n", overlays)
	if err := d.index(ctx); err != nil {
		return err
	}
	a.say("\n3. Ask, by scanning and with indexes. Every question starts with nothing cached; both skip what Iceberg's and")
	a.say("   Parquet's own statistics rule out. Files, requests and bytes include table metadata and index.\n")
	before, err := d.askAll(ctx)
	if err != nil {
		return err
	}
	a.say("\n   The first answer:\n")
	if err := d.show(ctx, demoFilters[0]); err != nil {
		return err
	}
	a.closeTables()
	if err := os.RemoveAll(overlays); err != nil {
		return err
	}
	a.say("\n4. The overlay is deleted. Ask again: the same answers, by scanning.\n")
	if err := d.askAgain(ctx, before); err != nil {
		return err
	}
	a.say("\n5. Go on exploring:\n")
	for _, line := range []string{
		"describe %s", "query %s --where \"origin = 'JFK' AND delay > 600\" --stats", "mount %s", "index add %s 'ordered(delay)'", "sync %s",
		"explain %s --where \"origin = 'JFK' AND delay > 600\"", "verify %s", "status %s",
	} {
		a.say("   "+a.self+" "+line, location)
	}
	return nil
}

// removeEarlier removes an earlier demo and refuses a folder that holds anything else.
func removeEarlier(dir, location, overlays string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Denied, dir, err)
	}
	for _, e := range entries {
		if e.Name() != "flights" && e.Name() != "overlay" {
			return fault.New(fault.Refused, dir, "holds %s, so it is not an earlier demo", e.Name()).WithFix("name an empty folder with --dir")
		}
	}
	if err := protect(location, 0, 0o200); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(os.RemoveAll(location), os.RemoveAll(overlays))
}

// protect takes permission bits away from everything below dir, and gives others.
func protect(dir string, take, give fs.FileMode) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode()&^take|give)
	})
}

// demoRun is one demo.
type demoRun struct {
	*app
	location, overlays string
}

// open starts from nothing: a new client has empty caches.
func (d *demoRun) open(ctx context.Context) (*skomer.Table, error) {
	client, err := skomer.New(skomer.Config{OverlayRoot: d.overlays})
	if err != nil {
		return nil, err
	}
	return d.opened(client.Open(ctx, d.location, skomer.TableOptions{}))
}

func (d *demoRun) index(ctx context.Context) error {
	t, err := d.open(ctx)
	if err != nil {
		return err
	}
	if err := t.Mount(ctx); err != nil {
		return err
	}
	for _, expr := range demoIndexes {
		if _, err := t.AddIndex(ctx, expr); err != nil {
			return err
		}
	}
	report, err := d.sync(ctx, t, skomer.SyncOptions{})
	if err != nil {
		return err
	}
	indexes, err := t.Indexes(ctx)
	if err != nil {
		return err
	}
	if err := d.showIndexes(indexes); err != nil {
		return err
	}
	d.say("\n   %s indexed in %.1f s: %s read, %s written", counted(report.FilesIndexed, "file"), report.Seconds, size(report.BytesRead), size(report.BytesWritten))
	return nil
}

// answered is an answer's hash and what it cost.
type answered struct {
	sum   [sha256.Size]byte
	stats skomer.Stats
}

func (d *demoRun) ask(ctx context.Context, q skomer.Query) (answered, error) {
	t, err := d.open(ctx)
	if err != nil {
		return answered{}, err
	}
	hash := sha256.New()
	stats, err := stream(ctx, t, q, "json", hash)
	return answered{[sha256.Size]byte(hash.Sum(nil)), stats}, err
}

func (d *demoRun) askAll(ctx context.Context) ([]answered, error) {
	tw := render.Plain()
	tw.AppendHeader(table.Row{"filter", "rows", "scan: files", "requests", "bytes", "index: files", "requests", "bytes"})
	tw.SetColumnConfigs(rightAligned(2, 8))
	var out []answered
	for _, filter := range demoFilters {
		scan, err := d.ask(ctx, skomer.Query{Where: filter, Limit: -1, NoIndex: true})
		if err != nil {
			return nil, err
		}
		index, err := d.ask(ctx, skomer.Query{Where: filter, Limit: -1})
		if err != nil {
			return nil, err
		}
		if scan.sum != index.sum {
			return nil, fault.New(fault.Corrupt, filter, "the answers differ: %d rows by scanning, %d with indexes", scan.stats.Rows, index.stats.Rows)
		}
		s, i := scan.stats, index.stats
		tw.AppendRow(table.Row{
			filter, number(s.Rows), s.FilesOpened, number(s.Requests), size(s.Bytes), i.FilesOpened, number(i.Requests), size(i.Bytes),
		})
		out = append(out, index)
	}
	return out, render.Print(d.out, tw)
}

func (d *demoRun) askAgain(ctx context.Context, before []answered) error {
	for i, filter := range demoFilters {
		now, err := d.ask(ctx, skomer.Query{Where: filter, Limit: -1})
		if err != nil {
			return err
		}
		if now.sum != before[i].sum {
			return fault.New(fault.Corrupt, filter, "the answer changed when the overlay was deleted")
		}
	}
	d.say("   %d of %d answers are the same, byte for byte.", len(demoFilters), len(demoFilters))
	return nil
}

func (d *demoRun) show(ctx context.Context, filter string) error {
	t, err := d.open(ctx)
	if err != nil {
		return err
	}
	_, err = stream(ctx, t, skomer.Query{Where: filter, Limit: -1}, "table", d.out)
	return err
}

// rightAligned aligns the columns from first to last, counted from 1.
func rightAligned(first, last int) []table.ColumnConfig {
	var out []table.ColumnConfig
	for n := first; n <= last; n++ {
		out = append(out, render.Right(n))
	}
	return out
}
