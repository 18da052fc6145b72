package overlay

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// Object is what a listing says of a version.
type Object struct {
	Number   uint64
	Key      string
	Size     int64
	Tag      store.Tag
	Modified time.Time // by the store's clock
}

// Stub reports whether the object can only be the stub of an expired version.
func (at *Object) Stub() bool { return at.Size <= maxStub }

// Versions lists all versions, the newest first, stubs of expired ones included.
func (o *Overlay) Versions(ctx context.Context) ([]Object, error) {
	prefix := o.key("versions") + "/"
	var out []Object
	for after := ""; ; {
		page, err := o.store.List(ctx, prefix, after, listPage)
		if err != nil {
			return nil, fault.About(prefix, err)
		}
		for _, in := range page {
			if n := versionNumber(strings.TrimPrefix(in.Key, prefix)); n > 0 {
				out = append(out, Object{n, in.Key, in.Size, in.Tag, in.Modified})
			}
		}
		if len(page) < listPage {
			return out, nil
		}
		after = page[len(page)-1].Key
	}
}

// A stub takes the place of the body of an expired version, so that its name is never used again:
//
//	"SKOX", version u8 = 1, three zero bytes
//	u64 number of the version, u64 number of the oldest one that is kept
//	varint length, UUID of the commit
//	u32 CRC32C of everything before it
const (
	stubMagic   = "SKOX"
	stubVersion = 1
	maxStub     = 128 // bytes; every body is longer
)

type stub struct {
	number, oldest uint64
	commit         string
}

func (s *stub) encode() []byte {
	var w bytescan.Writer
	w.Bytes([]byte(stubMagic))
	w.Bytes([]byte{stubVersion, 0, 0, 0})
	w.U64(s.number)
	w.U64(s.oldest)
	w.String(s.commit)
	w.U32(bytescan.CRC32C(w.Buf))
	return w.Buf
}

func isStub(raw []byte) bool {
	return strings.HasPrefix(string(raw[:min(len(raw), len(stubMagic))]), stubMagic)
}

func parseStub(name string, raw []byte) (*stub, error) {
	r := bytescan.NewReader(name, raw)
	r.Bytes(len(stubMagic))
	if v := r.U8(); r.Err() == nil && v != stubVersion {
		return nil, newerFormat(name, int(v), stubVersion)
	}
	r.Bytes(3)
	s := &stub{number: r.U64(), oldest: r.U64(), commit: r.String(maxName)}
	end := r.Offset()
	sum := r.U32()
	if err := r.Done(); err != nil {
		return nil, err
	}
	return s, bytescan.CheckCRC(name, raw[:end], sum)
}

// Expire replaces the body of a version that newest says has expired by a stub. It does nothing where that was done.
func (o *Overlay) Expire(ctx context.Context, newest *Version, at Object) (bool, error) {
	if at.Number >= newest.Oldest() {
		return false, fault.New(fault.Refused, at.Key, "version %d has not expired", at.Number)
	}
	raw, err := fetchAll(ctx, o.store, at.Key)
	if err != nil {
		return false, fault.About(at.Key, err)
	}
	if isStub(raw) {
		return false, nil
	}
	s := stub{number: at.Number, oldest: newest.Oldest()}
	if b, err := parseBody(at.Key, raw); err == nil {
		s.commit = b.header.Commit
	}
	if _, err = o.store.PutIf(ctx, at.Key, at.Tag, s.encode()); err != nil && !fault.Is(err, fault.Conflict) {
		return false, fault.About(at.Key, err)
	}
	return err == nil, nil
}

// Names is what a range of versions names: all object keys.
type Names struct {
	Bundles, Chunks, Derived map[string]bool
	Damaged                  []Warning // versions and lists that can never be read again: they name nothing
}

// namesPage is how many versions are read at once.
const namesPage = 64

// Names gathers what versions name, without what only the indexes named by without need. The artifacts and derived objects that
// count are those that speak, or would if they were not in quarantine. Of known, which may be nil, the names are taken as they are in memory. An
// error means that it is not known; what is damaged for good is no error, unless it is of a later format.
func (o *Overlay) Names(ctx context.Context, versions []Object, known *Version, without map[string]bool) (*Names, error) {
	g := &gathering{
		overlay: o, names: &Names{Bundles: map[string]bool{}, Chunks: map[string]bool{}, Derived: map[string]bool{}}, without: without,
		chunks: map[string]*chunk{}, lists: map[string]*derivedList{},
	}
	if known != nil {
		known, err := known.Full(ctx)
		if err != nil {
			return nil, err
		}
		g.add(known)
		versions = slices.DeleteFunc(slices.Clone(versions), func(v Object) bool { return v.Number == known.number })
	}
	for page := range slices.Chunk(versions, namesPage) {
		reads := make([]store.Read, len(page))
		for i, v := range page {
			reads[i] = store.Read{Key: v.Key}
		}
		for i, r := range o.store.Fetch(ctx, reads) {
			if err := g.version(ctx, page[i], r); err != nil {
				return nil, err
			}
		}
	}
	return g.names, nil
}

// gathering is one run of Names.
type gathering struct {
	overlay *Overlay
	names   *Names
	without map[string]bool
	chunks  map[string]*chunk // that were read
	lists   map[string]*derivedList
}

// version adds what a version names, of which the object was read.
func (g *gathering) version(ctx context.Context, at Object, r store.Result) error {
	if r.Err != nil {
		return fault.About(at.Key, r.Err)
	}
	b, st, broken, err := g.overlay.decode(ctx, at.Key, at.Number, r.Data[0])
	switch {
	case err != nil:
		return fault.About(at.Key, err)
	case broken != nil:
		return g.names.lost(at.Key, broken)
	case st != nil:
		return nil // expired meanwhile
	}
	v := g.overlay.versionOf(b)
	if err := g.overlay.openFrom(ctx, v, g.chunks, g.lists); err != nil {
		return err
	}
	for _, w := range v.warnings {
		if err := g.names.lost(w.Part, w.Reason); err != nil {
			return err
		}
	}
	v.bind()
	g.add(v)
	return nil
}

// add adds what a version names.
func (g *gathering) add(v *Version) {
	n, o := g.names, g.overlay
	for i, c := range v.body.chunks {
		n.Chunks[o.key("chunks", c.name)] = true
		if v.views[i].chunk != nil {
			g.chunks[c.name] = v.views[i].chunk
			v.views[i].bundles(n.Bundles, g.without)
		}
	}
	for i, c := range v.body.lists {
		n.Chunks[o.key("chunks", c.name)] = true
		if list := v.lists[i]; list != nil {
			g.lists[c.name] = list
			for k := range list.entries {
				e := &list.entries[k]
				if !c.dead.has(k) && (e.Index == "" || v.indexNo(e.Index) >= 0) && !g.without[e.Index] {
					n.Derived[o.key(e.Key)] = true
				}
			}
		}
	}
}

// Purged is the dropped indexes whose artifacts may be gone from earlier versions.
func (v *Version) Purged() map[string]bool {
	out := map[string]bool{}
	for _, d := range v.Dropped() {
		if d.Purged {
			out[d.ID] = true
		}
	}
	return out
}

// bundles adds the bundles of the artifacts of live indexes.
func (w *view) bundles(out, without map[string]bool) {
	named := make([]bool, w.chunk.bundles.n)
	for i := range w.chunk.artifacts.n {
		no := w.chunk.bundleNo(i)
		if no >= len(named) || named[no] || w.liveIndex(i) < 0 || without[w.chunk.indexes[w.chunk.index(i)]] {
			continue
		}
		if b, ok := w.chunk.bundle(i); ok {
			named[no], out[b.name] = true, true
		}
	}
}

// lost notes a part that cannot be read; it is an error if it may be readable one day.
func (n *Names) lost(key string, err error) error {
	if !lasting(err) || fault.Is(err, fault.Unsupported) {
		return fault.About(key, err)
	}
	n.Damaged = append(n.Damaged, Warning{key, err})
	return nil
}
