package maintain

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
)

// Copy copies what the newest version of an overlay names to another place, checks every part against the checksums that the version
// holds on its way, and then makes the version there: until the end there is no overlay at the target. A copy that was
// interrupted goes on where it stopped.
type Copy struct {
	From, To  *overlay.Overlay
	Src, Dst  store.Store
	TempDir   string
	Parallel  int // objects at a time; 0: four
	ChunkSize int64
}

// CopyReport is what a copy did.
type CopyReport struct {
	Version uint64 `json:"overlay_version"`
	Objects int    `json:"objects"`
	Bytes   int64  `json:"bytes"`
	Present int    `json:"present"` // of the objects, those that an earlier copy had written
}

// part is bytes of an object, with the checksum that its version holds.
type part struct {
	lineage.Place
	sum *[32]byte // SHA-256, where it is known
}

// Run copies.
func (c Copy) Run(ctx context.Context) (*CopyReport, error) {
	v, err := c.From.Latest(ctx)
	if err != nil {
		return nil, err
	}
	if err := v.Broken(); err != nil {
		return nil, fault.About(c.From.Prefix(), err)
	}
	if there, err := c.To.Versions(ctx); err != nil || len(there) > 0 {
		return nil, errorOr(err, fault.New(fault.Refused, c.To.Prefix(), "there is an overlay already").WithFix("choose an empty place"))
	}
	parts, err := c.parts(ctx, v)
	if err != nil {
		return nil, err
	}
	r := &CopyReport{Objects: len(parts)}
	var mu sync.Mutex
	g, ctx2 := errgroup.WithContext(ctx)
	g.SetLimit(max(c.Parallel, 4))
	for key, want := range parts {
		g.Go(func() error {
			n, present, err := c.object(ctx2, key, want)
			mu.Lock()
			defer mu.Unlock()
			r.Bytes += n
			if present {
				r.Present++
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	made, err := c.To.Adopt(ctx, v)
	if err != nil {
		return nil, err
	}
	c.To.Close() // the head is the last object
	r.Version = made.Number()
	return r, nil
}

func errorOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// parts lists the objects of a version by the name below its prefix, each with what can be checked of it.
func (c Copy) parts(ctx context.Context, v *overlay.Version) (map[string][]part, error) {
	out := map[string][]part{}
	var err error
	v.Each(func(a overlay.ArtifactInfo) bool {
		name, below := strings.CutPrefix(a.Bundle, c.From.Prefix()+"/")
		if !below {
			err = fault.New(fault.Unsupported, a.Bundle, "a bundle outside of its overlay cannot be copied")
			return false
		}
		var sum [32]byte
		if _, sum, err = v.Paths(ctx, a.At); err != nil {
			return false
		}
		out[name] = append(out[name], part{a.Body, &sum}, part{a.Root, nil}, part{a.Lineage, nil})
		return true
	})
	if err != nil {
		return nil, err
	}
	for _, e := range v.EveryDerived() {
		out[e.Key] = append(out[e.Key], part{lineage.Place{Off: e.Off, Len: e.Len, CRC: e.CRC}, nil})
	}
	return out, nil
}

// object copies one object by way of a temporary file.
func (c Copy) object(ctx context.Context, name string, parts []part) (n int64, present bool, err error) {
	key, to := c.From.Prefix()+"/"+name, c.To.Prefix()+"/"+name
	f, err := os.CreateTemp(c.TempDir, "skomer-copy-*")
	if err != nil {
		return 0, false, fault.Wrap(fault.Exhausted, c.TempDir, err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	n, sum, err := c.download(ctx, c.Src, key, f)
	if fault.Is(err, fault.NotFound) && !slices.ContainsFunc(parts, func(p part) bool { return p.Len > 0 }) {
		return 0, false, nil // an entry without bytes
	}
	if err != nil {
		return 0, false, err
	}
	for _, p := range parts {
		if err := p.check(key, f); err != nil {
			return 0, false, err
		}
	}
	_, err = c.Dst.PutNew(ctx, to, f)
	if !fault.Is(err, fault.Conflict) {
		return n, false, fault.About(to, err)
	}
	_, other, err := c.download(ctx, c.Dst, to, io.Discard)
	if err == nil && sum != other {
		err = fault.New(fault.Refused, to, "another object is there already").WithFix("choose an empty place")
	}
	return n, true, err
}

// download reads an object piece by piece.
func (c Copy) download(ctx context.Context, st store.Store, key string, w io.Writer) (n int64, sum [32]byte, err error) {
	size := c.ChunkSize
	if size == 0 {
		size = 8 << 20
	}
	at := st.Stat(ctx, []string{key})[0]
	if at.Err != nil {
		return 0, sum, fault.About(key, at.Err)
	}
	hash := sha256.New()
	for n < at.Size {
		piece := store.Span{Off: n, Len: min(size, at.Size-n)}
		r := st.Fetch(ctx, []store.Read{{Key: key, Tag: at.Tag, Spans: []store.Span{piece}}})[0]
		if r.Err != nil {
			return 0, sum, fault.About(key, r.Err)
		}
		hash.Write(r.Data[0])
		if _, err := w.Write(r.Data[0]); err != nil {
			return 0, sum, fault.Wrap(fault.Exhausted, key, err)
		}
		n += piece.Len
	}
	return n, [32]byte(hash.Sum(nil)), nil
}

// check compares a part of an object with its checksums.
func (p *part) check(key string, f io.ReaderAt) error {
	hash, crc, buf := sha256.New(), uint32(0), make([]byte, 1<<20)
	for done := int64(0); done < p.Len; {
		b := buf[:min(int64(len(buf)), p.Len-done)]
		if n, err := f.ReadAt(b, p.Off+done); n < len(b) {
			return fault.New(fault.Corrupt, key, "ends before byte %d", p.End()).WithCause(err)
		}
		hash.Write(b)
		crc = bytescan.ExtendCRC(crc, b)
		done += int64(len(b))
	}
	if crc != p.CRC || p.sum != nil && !slices.Equal(hash.Sum(nil), p.sum[:]) {
		return fault.New(fault.Corrupt, key, "the bytes %d to %d do not have their checksum", p.Off, p.End()).WithFix("skomer repair, then copy again")
	}
	return nil
}
