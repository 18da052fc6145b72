package mask

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/puffin"
	"github.com/skomerdb/skomer/internal/store"
)

const (
	vectorType = "deletion-vector-v1"
	// puffinTail is the suffix of a Puffin file that is read for its footer, beside the vectors.
	puffinTail = 16 << 10
	// maxVector is the most bytes of a vector blob: bitmaps of 2^32 positions take 2^29 and a little.
	maxVector = 1<<29 + 1<<20
)

// vectorsOf is the vectors wanted of one Puffin file.
type vectorsOf struct {
	path    string
	size    int64 // as stated, for the cache
	spans   []store.Span
	records []int64
	targets []*target
	tail    int64
}

// vectors reads the deletion vectors of the targets: all ranges and the footers of their files in one wave.
func (w *work) vectors(ctx context.Context) (Report, error) {
	var report Report
	files, err := w.missingVectors()
	for len(files) > 0 && err == nil {
		n, bytes := 0, int64(0)
		for n < len(files) && (n == 0 || bytes+files[n].bytes() <= w.memory()) {
			bytes += files[n].bytes()
			report.DeleteFiles += len(files[n].spans)
			n++
		}
		err = w.readVectors(ctx, files[:n])
		files = files[n:]
	}
	return report, err
}

func (v *vectorsOf) bytes() (n int64) {
	for _, s := range v.spans {
		n += s.Len
	}
	return n + v.tail
}

// missingVectors takes what the cache has and groups the rest by Puffin file.
func (w *work) missingVectors() ([]*vectorsOf, error) {
	d := &w.scope.snapshot.Deletes
	byPath := map[string]*vectorsOf{}
	var out []*vectorsOf
	for _, t := range w.targets {
		i := t.vector
		if i < 0 {
			continue
		}
		if known, ok := get[*roaring.Bitmap](w.Cache, w.vectorKey(i)); ok && !w.options.KeepAll {
			t.mask.add(known)
			continue
		}
		if err := readableVector(d, i); err != nil {
			return nil, err
		}
		v := byPath[d.Path[i]]
		if v == nil {
			v = &vectorsOf{path: d.Path[i], size: d.Size[i], tail: puffinTail}
			byPath[v.path] = v
			out = append(out, v)
		}
		v.spans = append(v.spans, store.Span{Off: d.Offset[i], Len: d.Length[i]})
		v.records = append(v.records, d.Records[i])
		v.targets = append(v.targets, t)
	}
	return out, nil
}

func readableVector(d *facts.Deletes, i int32) error {
	switch {
	case d.Encrypted[i]:
		return encrypted(d.Path[i])
	case d.Offset[i] < 0 || d.Length[i] < vectorFraming:
		return fault.New(fault.Corrupt, d.Path[i], "is a deletion vector without a place: offset %d, length %d", d.Offset[i], d.Length[i])
	case d.Length[i] > maxVector:
		return fault.New(fault.Exhausted, d.Path[i], "deletion vector of %d bytes, the limit is %d", d.Length[i], maxVector)
	}
	return nil
}

func encrypted(path string) error {
	return fault.New(fault.Unsupported, path, "is encrypted: its manifest entry carries key metadata").
		WithFix("read the table with an engine that holds the keys")
}

func (w *work) vectorKey(i int32) vectorKey {
	d := &w.scope.snapshot.Deletes
	return vectorKey{identity{d.Path[i], d.Size[i]}, d.Offset[i], d.Length[i]}
}

// readVectors reads files whose footers are longer than foreseen once more.
func (w *work) readVectors(ctx context.Context, files []*vectorsOf) error {
	for round := 0; len(files) > 0; round++ {
		reads := make([]store.Read, len(files))
		for i, v := range files {
			reads[i] = store.Read{Key: v.path, Spans: append(v.spans[:len(v.spans):len(v.spans)], store.Suffix(v.tail))}
		}
		var again []*vectorsOf
		for i, res := range w.Store.Fetch(ctx, reads) {
			v := files[i]
			if res.Err != nil {
				return fault.About(v.path, res.Err)
			}
			footer, need, err := puffin.ParseFooter(v.path, res.Data[len(v.spans)], res.Size)
			switch {
			case err != nil:
				return noVectors(err)
			case need > 0 && round > 0:
				return fault.New(fault.Corrupt, v.path, "footer asks for %d bytes after %d were read", need, v.tail)
			case need > 0:
				v.tail = need
				again = append(again, v)
			default:
				if err := w.decodeVectors(v, footer, res.Data); err != nil {
					return err
				}
			}
		}
		files = again
	}
	return ctx.Err()
}

func noVectors(err error) error {
	return fault.New(fault.ClassOf(err), "", "deletion vectors must lie in a Puffin file").WithCause(err).
		WithFix("rewrite the table's deletes with a current engine: some have written vectors without their container")
}

func (w *work) decodeVectors(v *vectorsOf, footer *puffin.Footer, data [][]byte) error {
	for k, span := range v.spans {
		name := fmt.Sprintf("%s at %d", v.path, span.Off)
		if err := checkBlob(name, footer, span); err != nil {
			return err
		}
		positions, count, err := parseVector(name, data[k])
		if err != nil {
			return err
		}
		if stated := v.records[k]; stated >= 0 && uint64(stated) != count {
			return fault.New(fault.Corrupt, name, "deletion vector of %d positions, its manifest states %d", count, stated)
		}
		v.targets[k].mask.add(positions)
		if !w.options.KeepAll {
			key := vectorKey{identity{v.path, v.size}, span.Off, span.Len}
			w.Cache.put(key, positions, int64(positions.GetSizeInBytes())+int64(len(v.path)))
		}
	}
	return nil
}

// checkBlob makes sure that the footer knows the range as a deletion vector.
func checkBlob(name string, footer *puffin.Footer, span store.Span) error {
	for i := range footer.Blobs {
		b := &footer.Blobs[i]
		if b.Offset != span.Off || b.Length != span.Len {
			continue
		}
		switch {
		case b.Type != vectorType:
			return fault.New(fault.Corrupt, name, "the blob is of type %q, not %q", b.Type, vectorType)
		case b.Codec != "":
			return fault.New(fault.Unsupported, name, "the deletion vector is compressed (%s), which its type forbids", b.Codec)
		}
		return nil
	}
	return fault.New(fault.Corrupt, name, "the Puffin footer lists no blob of %d bytes there", span.Len)
}
