package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/flate"
	"golang.org/x/sync/errgroup"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
)

// The table of rows 3 and 4: a million data files that do not exist, in 200 manifests, with all metrics of 12 columns.
const (
	wideManifests = 200
	wideFiles     = 5000 // of a manifest
	wideSpan      = 1_000_000_000
	wideStart     = 1_700_000_000_000_000
)

var wideSchema = column.Schema{Fields: []column.Field{
	{ID: 1, Name: "id", Type: column.Of(column.Long), Required: true},
	{ID: 2, Name: "ts", Type: column.Of(column.TimestampTZ)},
	{ID: 3, Name: "account", Type: column.Of(column.Long)},
	{ID: 4, Name: "amount", Type: column.Of(column.Double)},
	{ID: 5, Name: "name", Type: column.Of(column.String)},
	{ID: 6, Name: "city", Type: column.Of(column.String)},
	{ID: 7, Name: "a", Type: column.Of(column.Long)},
	{ID: 8, Name: "b", Type: column.Of(column.Long)},
	{ID: 9, Name: "c", Type: column.Of(column.Int)},
	{ID: 10, Name: "d", Type: column.Of(column.Int)},
	{ID: 11, Name: "e", Type: column.Of(column.Double)},
	{ID: 12, Name: "f", Type: column.Of(column.Date)},
}}

// wideTable writes the metadata once and returns the table's folder.
func wideTable(ctx context.Context) (string, error) {
	dir, err := filepath.Abs(filepath.Join(cacheDir, fmt.Sprintf("wide-%d", wideManifests)))
	if err != nil {
		return "", err
	}
	ready := filepath.Join(dir, "ready")
	if _, err := os.Stat(ready); err == nil {
		return dir, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	start := time.Now()
	fmt.Printf("  writing %d manifests of %d files …\n", wideManifests, wideFiles)
	t, err := lakewrite.Create(ctx, local.New(), dir, lakewrite.Spec{Schema: &wideSchema})
	if err != nil {
		return "", err
	}
	if _, err := t.Append(ctx, lakewrite.File{Path: dir + "/data/first.parquet", Records: 1, Size: 1}); err != nil {
		return "", err
	}
	first := t.Snapshots[0].Manifests[0]
	header, err := avroHeader(first.Path)
	if err != nil {
		return "", err
	}
	manifests := make([]*lakewrite.Manifest, wideManifests)
	var g errgroup.Group
	g.SetLimit(2)
	var written atomic.Int64
	for n := range manifests {
		g.Go(func() error {
			m := *first
			m.Path = fmt.Sprintf("%s/metadata/wide-%03d.avro", dir, n)
			b := wideManifest(header, dir, n)
			m.Length = int64(len(b))
			m.Entries = make([]lakewrite.Entry, wideFiles)
			for i := range m.Entries {
				m.Entries[i] = lakewrite.Entry{Status: lakewrite.Added, Sequence: m.Sequence, File: lakewrite.File{Records: wideRecords}}
			}
			manifests[n] = &m
			written.Add(m.Length)
			return os.WriteFile(m.Path, b, 0o644)
		})
	}
	if err := g.Wait(); err != nil {
		return "", err
	}
	t.Snapshots[0].Manifests = manifests
	if _, err := t.Commit(ctx, lakewrite.Change{Operation: "append"}); err != nil {
		return "", err
	}
	fmt.Printf("  written in %.0f s, %d MB\n", time.Since(start).Seconds(), written.Load()>>20)
	return dir, os.WriteFile(ready, nil, 0o644)
}

// avroHeader is the bytes of a manifest up to and with the sync marker behind its schema.
func avroHeader(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	sync := b[len(b)-16:] // a file ends with its marker
	at := bytes.Index(b, sync)
	return b[:at+16], nil
}

const wideRecords = 50_000

// wideManifest writes a manifest of format version 2 in the field order of package lakewrite, one block a thousand entries.
func wideManifest(header []byte, dir string, n int) []byte {
	const perBlock = 1000
	r := rand.New(rand.NewPCG(3, uint64(n)))
	out := bytes.Clone(header)
	var packed bytes.Buffer
	z, _ := flate.NewWriter(&packed, flate.DefaultCompression)
	var raw []byte
	for i := range wideFiles {
		raw = wideEntry(raw, r, dir, n*wideFiles+i)
		if (i+1)%perBlock != 0 {
			continue
		}
		packed.Reset()
		z.Reset(&packed)
		_, _ = z.Write(raw) // into memory
		_ = z.Close()
		out = binary.AppendVarint(out, perBlock)
		out = binary.AppendVarint(out, int64(packed.Len()))
		out = append(out, packed.Bytes()...)
		out = append(out, header[len(header)-16:]...)
		raw = raw[:0]
	}
	return out
}

func wideEntry(b []byte, r *rand.Rand, dir string, i int) []byte {
	null := func() { b = append(b, 0) }
	long := func(v int64) { b = binary.AppendVarint(b, v) }
	some := func() { b = append(b, 2) }
	text := func(s string) { long(int64(len(s))); b = append(b, s...) }
	long(1) // status: added
	some()
	long(1001)
	null() // sequence number and file sequence number are inherited
	null()
	long(0) // content
	text(fmt.Sprintf("%s/data/part-%05d-%016x-%08x.parquet", dir, i%1000, r.Uint64(), i))
	text("PARQUET")
	long(wideRecords)
	long(20<<20 + r.Int64N(8<<20))
	counts := func(of func(id int) int64) {
		some()
		long(int64(len(wideSchema.Fields)))
		for _, f := range wideSchema.Fields {
			long(int64(f.ID))
			long(of(f.ID))
		}
		null() // end of the array
	}
	counts(func(int) int64 { return 1<<20 + r.Int64N(1<<20) }) // column sizes
	counts(func(int) int64 { return wideRecords })
	counts(func(id int) int64 { return int64(id % 3) })
	some() // NaN counts
	long(2)
	for _, id := range []int64{4, 11} {
		long(id)
		long(0)
	}
	null()
	lower, upper := wideBounds(r, i)
	for _, bounds := range [2][][]byte{lower, upper} {
		some()
		long(int64(len(bounds)))
		for k, v := range bounds {
			long(int64(wideSchema.Fields[k].ID))
			long(int64(len(v)))
			b = append(b, v...)
		}
		null()
	}
	null() // key metadata
	some() // split offsets
	long(1)
	long(4)
	null()
	null() // equality ids, sort order, referenced data file
	null()
	null()
	return b
}

// wideBounds is the bounds of file i: ids in narrow ranges anywhere, times that ascend, wide ranges of the rest.
func wideBounds(r *rand.Rand, i int) (lower, upper [][]byte) {
	for _, f := range wideSchema.Fields {
		at := r.Int64N(wideSpan)
		low, high := at, at+1000
		switch f.Name {
		case "ts":
			low = wideStart + int64(i)*60_000_000
			high = low + 120_000_000
		case "id", "name":
		default:
			low, high = at/4, wideSpan-at/4
		}
		var l, u []byte
		switch f.Type.Kind {
		case column.Long, column.TimestampTZ:
			l, u = binary.LittleEndian.AppendUint64(nil, uint64(low)), binary.LittleEndian.AppendUint64(nil, uint64(high))
		case column.Int, column.Date:
			l, u = binary.LittleEndian.AppendUint32(nil, uint32(low)), binary.LittleEndian.AppendUint32(nil, uint32(high))
		case column.Double:
			v := column.DoubleValue(float64(low))
			w := column.DoubleValue(float64(high))
			l, u = binary.LittleEndian.AppendUint64(nil, v.Lo), binary.LittleEndian.AppendUint64(nil, w.Lo)
		default:
			l, u = fmt.Appendf(nil, "user-%011d", low), fmt.Appendf(nil, "user-%011d", high)
		}
		lower, upper = append(lower, l), append(upper, u)
	}
	return lower, upper
}
