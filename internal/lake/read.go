package lake

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// maxMetadata is the most bytes that a metadata.json may decompress to.
const maxMetadata = 512 << 20

// readAll reads one whole object.
func (l *Lake) readAll(ctx context.Context, location string) ([]byte, error) {
	data, _, err := l.readWave(ctx, []string{location})
	if err != nil {
		return nil, err
	}
	return data[0], nil
}

// readWave reads whole objects together, one wave per store that holds some of them, and tells their tags.
func (l *Lake) readWave(ctx context.Context, locations []string) ([][]byte, []store.Tag, error) {
	type share struct {
		reads []store.Read
		at    []int
	}
	shares := map[store.Store]*share{}
	out, tags := make([][]byte, len(locations)), make([]store.Tag, len(locations))
	for i, location := range locations {
		if e := l.ahead.take(location, nil); e != nil {
			var err error
			if out[i], tags[i], err = e.wait(ctx); err == nil {
				continue
			}
		}
		s, key, err := l.resolve(location)
		if err != nil {
			return nil, nil, err
		}
		if shares[s] == nil {
			shares[s] = &share{}
		}
		shares[s].reads = append(shares[s].reads, store.Read{Key: key})
		shares[s].at = append(shares[s].at, i)
	}
	g, ctx := errgroup.WithContext(ctx)
	for s, sh := range shares {
		g.Go(func() error {
			for i, r := range s.Fetch(ctx, sh.reads) {
				if r.Err != nil {
					return fault.About(locations[sh.at[i]], r.Err)
				}
				out[sh.at[i]], tags[sh.at[i]] = r.Data[0], r.Tag
			}
			return nil
		})
	}
	return out, tags, g.Wait()
}

// decompress unpacks metadata by its first bytes, whatever the name says: writers disagree on the name.
func decompress(location string, b []byte) ([]byte, error) {
	var r io.Reader
	var err error
	switch {
	case bytes.HasPrefix(b, []byte{0x1f, 0x8b}):
		r, err = gzip.NewReader(bytes.NewReader(b))
	case bytes.HasPrefix(b, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		d, zerr := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
		if zerr == nil {
			defer d.Close()
		}
		r, err = d, zerr
	default:
		return b, nil
	}
	if err != nil {
		return nil, fault.New(fault.Corrupt, location, "bad compression").WithCause(err)
	}
	out, err := io.ReadAll(io.LimitReader(r, maxMetadata+1))
	if err != nil {
		return nil, fault.New(fault.Corrupt, location, "bad compression").WithCause(err)
	}
	if len(out) > maxMetadata {
		return nil, fault.New(fault.Exhausted, location, "metadata decompresses to more than %d bytes", maxMetadata)
	}
	return out, nil
}
