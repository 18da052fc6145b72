package bundle

import (
	"context"
	"crypto/sha256"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/puffin"
	"github.com/skomerdb/skomer/internal/store"
)

const (
	suffix = 256 << 10 // bytes of the first read: footer, directory and roots of most bundles
	window = 8 << 20   // bytes of a read when a body is verified
)

// Bundle is an opened bundle, or a foreign Puffin file, which has no Artifacts.
type Bundle struct {
	Key       string
	Size      int64
	Tag       store.Tag
	Footer    *puffin.Footer
	Artifacts []Placed

	store    store.Store
	roots    []byte // the roots blob
	rootsOff int64
}

// Open reads the end of a Puffin file; more only if footer and roots are larger than one read.
func Open(ctx context.Context, st store.Store, key string) (*Bundle, error) {
	b := &Bundle{Key: key, store: st}
	tail, err := b.openFooter(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.openDirectory(ctx, tail); err != nil {
		return nil, err
	}
	return b, nil
}

// openDirectory finds the artifacts, given the end of the file.
func (b *Bundle) openDirectory(ctx context.Context, tail []byte) (err error) {
	n := len(b.Footer.Blobs)
	if n == 0 || b.Footer.Blobs[n-1].Type != RootsType {
		return nil
	}
	blob := b.Footer.Blobs[n-1]
	if blob.Codec != "" || blob.Length > maxRoots {
		return fault.New(fault.Unsupported, b.Key, "roots blob of %d bytes with codec %q", blob.Length, blob.Codec)
	}
	b.rootsOff = blob.Offset
	if first := b.Size - int64(len(tail)); blob.Offset >= first {
		b.roots = tail[blob.Offset-first:][:blob.Length]
	} else if b.roots, err = b.read(ctx, blob.Offset, blob.Length); err != nil {
		return err
	}
	b.Artifacts, err = parseDirectory(b.Key, b.roots, b.Footer.Start)
	return err
}

func (b *Bundle) openFooter(ctx context.Context) (tail []byte, err error) {
	for want := int64(suffix); ; {
		r := b.store.Fetch(ctx, []store.Read{{Key: b.Key, Tag: b.Tag, Spans: []store.Span{store.Suffix(want)}}})[0]
		if r.Err != nil {
			return nil, fault.About(b.Key, r.Err)
		}
		tail = r.Data[0]
		if b.Tag, b.Size = r.Tag, r.Size; b.Size < 0 {
			info := b.store.Stat(ctx, []string{b.Key})[0]
			if info.Err != nil {
				return nil, fault.About(b.Key, info.Err)
			}
			b.Size = info.Size
		}
		footer, need, err := puffin.ParseFooter(b.Key, tail, b.Size)
		if err != nil {
			return nil, err
		}
		if footer != nil {
			b.Footer = footer
			return tail, nil
		}
		if need <= want {
			return nil, fault.New(fault.Corrupt, b.Key, "its end was read and has no footer")
		}
		want = need
	}
}

func (b *Bundle) read(ctx context.Context, off, n int64) ([]byte, error) {
	r := b.store.Fetch(ctx, []store.Read{{Key: b.Key, Tag: b.Tag, Spans: []store.Span{{Off: off, Len: n}}}})[0]
	if r.Err != nil {
		return nil, fault.About(b.Key, r.Err)
	}
	return r.Data[0], nil
}

// Root is the verified root of an artifact.
func (b *Bundle) Root(ctx context.Context, i int) ([]byte, error) {
	p := b.Artifacts[i].Root
	root, err := []byte(nil), error(nil)
	if p.Off >= b.rootsOff && p.End() <= b.rootsOff+int64(len(b.roots)) {
		root = b.roots[p.Off-b.rootsOff:][:p.Len]
	} else if root, err = b.read(ctx, p.Off, p.Len); err != nil {
		return nil, err
	}
	return root, VerifyRoot(b.Key, p, root)
}

// Lineages is the lineage records of artifacts, read in one wave; one error per artifact.
func (b *Bundle) Lineages(ctx context.Context, artifacts []int) ([]*lineage.Record, []error) {
	recs, errs := make([]*lineage.Record, len(artifacts)), make([]error, len(artifacts))
	read := store.Read{Key: b.Key, Tag: b.Tag}
	for _, i := range artifacts {
		p := b.Artifacts[i].Lineage
		read.Spans = append(read.Spans, store.Span{Off: p.Off, Len: min(p.Len, lineage.MaxRecord+1)})
	}
	if len(artifacts) == 0 {
		return recs, errs
	}
	r := b.store.Fetch(ctx, []store.Read{read})[0]
	for k, i := range artifacts {
		if errs[k] = fault.About(b.Key, r.Err); errs[k] == nil {
			recs[k], errs[k] = b.checkLineage(i, r.Data[k])
		}
	}
	return recs, errs
}

// checkLineage compares a record with its checksum and with the digest that the body's blob carries.
func (b *Bundle) checkLineage(i int, raw []byte) (*lineage.Record, error) {
	a := &b.Artifacts[i]
	rec, err := ParseLineage(b.Key, a.Lineage, raw)
	if err != nil {
		return nil, err
	}
	digest, want := lineage.Digest(raw), "none"
	for _, blob := range b.Footer.Blobs {
		if blob.Properties[propIndex] != a.IndexID || blob.Offset != a.Body.Off || blob.Length != a.Body.Len {
			continue
		}
		if want = blob.Properties[propLineage]; want == digest {
			return rec, nil
		}
	}
	return nil, fault.New(fault.Corrupt, b.Key, "lineage of %s has digest %s, its blob says %s", a.IndexID, digest, want)
}

// ReadLineage reads the lineage record at a place that the overlay knows.
func ReadLineage(ctx context.Context, st store.Store, key string, p lineage.Place) (*lineage.Record, error) {
	b := &Bundle{Key: key, store: st}
	raw, err := b.read(ctx, p.Off, min(p.Len, lineage.MaxRecord+1))
	if err != nil {
		return nil, err
	}
	return ParseLineage(key, p, raw)
}

// ParseLineage verifies and parses a lineage record.
func ParseLineage(key string, p lineage.Place, raw []byte) (*lineage.Record, error) {
	if err := bytescan.CheckCRC("lineage in "+key, raw, p.CRC); err != nil {
		return nil, err
	}
	rec, err := lineage.Parse(raw)
	return rec, fault.About(key, err)
}

// VerifyRoot checks a root against its place.
func VerifyRoot(key string, p lineage.Place, root []byte) error {
	if int64(len(root)) != p.Len {
		return fault.New(fault.Corrupt, key, "root of %d bytes, expected %d", len(root), p.Len)
	}
	return bytescan.CheckCRC("root in "+key, root, p.CRC)
}

// VerifyBody reads a whole body and checks both of its checksums.
func VerifyBody(ctx context.Context, st store.Store, key string, p lineage.Place, want [32]byte) error {
	b := &Bundle{Key: key, store: st}
	sum, crc := sha256.New(), uint32(0)
	for off := p.Off; off < p.End(); off += window {
		raw, err := b.read(ctx, off, min(window, p.End()-off))
		if err != nil {
			return err
		}
		sum.Write(raw)
		crc = bytescan.ExtendCRC(crc, raw)
	}
	if got := [32]byte(sum.Sum(nil)); got != want {
		return fault.New(fault.Corrupt, "body in "+key, "checksum mismatch (expected %x, got %x)", want, got)
	}
	if crc != p.CRC {
		return fault.New(fault.Corrupt, "body in "+key, "checksum %08x, expected %08x", crc, p.CRC)
	}
	return nil
}

// VerifyBody checks the body of one artifact.
func (b *Bundle) VerifyBody(ctx context.Context, i int) error {
	return VerifyBody(ctx, b.store, b.Key, b.Artifacts[i].Body, b.Artifacts[i].BodySHA256)
}
