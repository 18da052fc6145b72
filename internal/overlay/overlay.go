package overlay

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// Overlay is the overlay under one prefix. It is safe for concurrent use. Chunks of the newest version stay in memory.
type Overlay struct {
	store  store.Store
	prefix string
	opts   Options
	sizes  sizes

	mu     sync.Mutex
	latest *Version                // the newest one seen
	chunks map[string]*chunk       // of latest, by name
	lists  map[string]*derivedList // likewise

	head headWriter

	marked time.Duration // how long the version of a mark is waited for
}

// Options tune an overlay. The zero value is right.
type Options struct {
	Now func() int64 // milliseconds since 1970; nil: the system's clock
	Key []byte       // signs versions; nil: they are not signed, and signatures are not asked for
	// Ahead is the objects, of those that a version derives, that the first query of a reader is likely to need: heads name them. nil: none.
	Ahead func(*Version) []Derived
	// WholeUpTo is the number of artifacts up to which a lean version is whole; 0: a usual one, negative: none, and no list is read for being
	// short.
	WholeUpTo int
}

// Open makes an overlay of what is under prefix. Nothing is read yet.
func Open(st store.Store, prefix string, opts Options) *Overlay {
	if opts.Now == nil {
		opts.Now = systemMs
	}
	o := &Overlay{store: st, prefix: strings.TrimRight(prefix, "/"), opts: opts, sizes: usualSizes, marked: markedFor, chunks: map[string]*chunk{}, lists: map[string]*derivedList{}}
	return o
}

// Prefix is where the overlay lies, without a slash at the end.
func (o *Overlay) Prefix() string { return o.prefix }

// DataKey is the key of an object below data/, where bundles live.
func (o *Overlay) DataKey(name string) string { return o.key("data", name) }

func (o *Overlay) key(parts ...string) string { return o.prefix + "/" + strings.Join(parts, "/") }

// Latest returns the newest version. Where one is known, a single round trip finds out that it still is the newest; otherwise
// a listing of one key, a read of the body and a wave for the chunks that are new. A NotFound fault means that the table is not mounted here.
func (o *Overlay) Latest(ctx context.Context) (*Version, error) {
	v, err := o.newest(ctx)
	if err != nil {
		return nil, err
	}
	if v == nil || v.broken == nil && !v.Mounted() {
		return nil, o.notMounted()
	}
	return v.Full(ctx)
}

func (o *Overlay) notMounted() error {
	return fault.New(fault.NotFound, o.prefix, "no table is mounted here").WithFix("skomer mount TABLE --overlay %s", o.prefix)
}

// newest is the newest version, mounted or not; nil if there is none. One that is in memory may be partial.
func (o *Overlay) newest(ctx context.Context) (*Version, error) { return o.newestBy(ctx, false) }

// newestBy is newest; lean tells that long chunks need not be read.
func (o *Overlay) newestBy(ctx context.Context, lean bool) (*Version, error) {
	o.mu.Lock()
	known := o.latest
	o.mu.Unlock()
	if known != nil && o.last(ctx, known.number) {
		return known, nil
	}
	number, err := o.newestNumber(ctx)
	if err == nil && known != nil && number < known.number {
		o.forget(known)
	}
	if err != nil || number == 0 {
		return nil, err
	}
	if known != nil && known.number == number {
		return known, nil
	}
	v, err := o.loadBy(ctx, number, lean)
	if fault.Is(err, fault.NotFound) {
		v, err = o.reload(ctx, number, err)
	}
	if err != nil || v == nil {
		return nil, err
	}
	o.remember(v)
	return v, nil
}

// reload is newest after a version that had just been listed as the newest was gone: it expired meanwhile, or its stub is in the
// wrong place.
func (o *Overlay) reload(ctx context.Context, number uint64, reason error) (*Version, error) {
	again, err := o.newestNumber(ctx)
	switch {
	case err != nil || again == 0:
		return nil, err
	case again != number:
		return o.load(ctx, again)
	}
	key := o.key("versions", versionName(number))
	return o.brokenVersion(number, fault.New(fault.Corrupt, key, "the newest version cannot be one that expired").WithCause(reason)), nil
}

func (o *Overlay) brokenVersion(number uint64, err error) *Version {
	return &Version{number: number, body: &body{}, broken: err, warnings: []Warning{{o.key("versions", versionName(number)), err}}, overlay: o}
}

// last reports whether a version is known to be there and to have no successor. Versions have no gaps: a commit makes the one
// after a version that exists, and names stay.
func (o *Overlay) last(ctx context.Context, number uint64) bool {
	at := o.store.Stat(ctx, []string{o.key("versions", versionName(number)), o.key("versions", versionName(number+1))})
	return at[0].Err == nil && fault.Is(at[1].Err, fault.NotFound)
}

// newestNumber lists one key; only strange objects below versions/ make it list more.
func (o *Overlay) newestNumber(ctx context.Context) (uint64, error) {
	prefix := o.key("versions") + "/"
	after := ""
	for ask := 1; ; ask = 1000 {
		infos, err := o.store.List(ctx, prefix, after, ask)
		if err != nil {
			return 0, fault.About("overlay versions", err)
		}
		for _, in := range infos {
			if n := versionNumber(strings.TrimPrefix(in.Key, prefix)); n > 0 {
				return n, nil
			}
		}
		if len(infos) < ask {
			return 0, nil
		}
		after = infos[len(infos)-1].Key
	}
}

// remember makes v the newest version known, unless a newer one is. A version with parts that may be readable next time
// is not kept; its chunks are.
func (o *Overlay) remember(v *Version) {
	if v.broken != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.latest != nil && (o.latest.number > v.number || o.latest.number == v.number && !o.latest.partial) {
		return
	}
	clear(o.chunks)
	clear(o.lists)
	for i, c := range v.body.chunks {
		if v.views[i].chunk != nil {
			o.chunks[c.name] = v.views[i].chunk
		}
	}
	for i, c := range v.body.lists {
		if v.lists[i] != nil {
			o.lists[c.name] = v.lists[i]
		}
	}
	if !slices.ContainsFunc(v.warnings, func(w Warning) bool { return !lasting(w.Reason) }) {
		o.latest = v
	}
}

// forget drops a version that somebody deleted with its overlay.
func (o *Overlay) forget(v *Version) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.latest == v {
		o.latest = nil
		clear(o.chunks)
		clear(o.lists)
	}
}

// lasting reports whether reading again cannot help.
func lasting(err error) bool {
	switch fault.ClassOf(err) {
	case fault.Corrupt, fault.NotFound, fault.Unsupported:
		return !fault.Retryable(err)
	default:
		return false
	}
}

// At reads one version. A NotFound fault if it never existed or has expired.
func (o *Overlay) At(ctx context.Context, number uint64) (*Version, error) {
	if newest, err := o.newest(ctx); err != nil {
		return nil, err
	} else if newest != nil && number < newest.Oldest() {
		return nil, expired(o.prefix, number, newest.Oldest())
	}
	return o.load(ctx, number)
}

// load reads a version. Only trouble with the store is an error; what is damaged or too new gives a broken version.
func (o *Overlay) load(ctx context.Context, number uint64) (*Version, error) {
	return o.loadBy(ctx, number, false)
}

func (o *Overlay) loadBy(ctx context.Context, number uint64, lean bool) (*Version, error) {
	key := o.key("versions", versionName(number))
	raw, err := fetchAll(ctx, o.store, key)
	if err != nil {
		return nil, fault.About("overlay version", err)
	}
	b, st, broken, err := o.decode(ctx, key, number, raw)
	switch {
	case err != nil:
		return nil, fault.About("overlay version", err)
	case broken != nil:
		return o.brokenVersion(number, broken), nil
	case st != nil:
		return nil, expired(o.prefix, number, st.oldest)
	}
	return o.openVersion(ctx, b, lean)
}

// parse decodes the body of a version.
func (o *Overlay) parse(key string, number uint64, raw []byte) (*body, error) {
	b, err := parseBody(key, raw)
	if err != nil {
		return nil, err
	}
	if b.header.Version != number {
		return nil, fault.New(fault.Corrupt, key, "says that it is version %d", b.header.Version)
	}
	return b, o.verify(key, b)
}

func fetchAll(ctx context.Context, st store.Store, key string) ([]byte, error) {
	r := st.Fetch(ctx, []store.Read{{Key: key}})[0]
	if r.Err != nil {
		return nil, r.Err
	}
	return r.Data[0], nil
}

func (o *Overlay) versionOf(b *body) *Version {
	return &Version{number: b.header.Version, body: b, views: make([]view, len(b.chunks)), lists: make([]*derivedList, len(b.lists)), overlay: o}
}

// openVersion fetches the chunks and lists that are not in memory, in one wave; lean leaves out long chunks.
func (o *Overlay) openVersion(ctx context.Context, b *body, lean bool) (*Version, error) {
	v := o.versionOf(b)
	o.mu.Lock()
	chunks, lists := maps.Clone(o.chunks), maps.Clone(o.lists)
	o.mu.Unlock()
	p := parts{version: v}
	if lean {
		p.leanChunks(chunks)
	} else {
		p.chunks(chunks)
	}
	p.lists(lists)
	if err := p.open(ctx); err != nil {
		return nil, err
	}
	v.bind()
	return v, nil
}

// openFrom fetches the chunks and lists of a version that are not among the known ones. What cannot be read is a warning.
func (o *Overlay) openFrom(ctx context.Context, v *Version, chunks map[string]*chunk, lists map[string]*derivedList) error {
	p := parts{version: v}
	p.chunks(chunks)
	p.lists(lists)
	return p.open(ctx)
}

// parts is the chunks and lists of a version that are to be read.
type parts struct {
	version *Version
	reads   []store.Read
	opens   []func([][]byte) error // of each read
}

func (p *parts) chunks(known map[string]*chunk) {
	v := p.version
	for i, c := range v.body.chunks {
		if v.views[i].chunk = known[c.name]; v.views[i].chunk == nil {
			p.chunk(i, v.overlay.Keyed())
		}
	}
}

// chunk enters a chunk, and its wide part where that is wanted too.
func (p *parts) chunk(i int, wide bool) {
	v, o := p.version, p.version.overlay
	ref := &v.body.chunks[i]
	p.opens = append(p.opens, func(raw [][]byte) (err error) { v.views[i].chunk, err = ref.open(raw, o.Keyed()); return err })
	spans := []store.Span{{Off: 0, Len: ref.hotLen}}
	if wide {
		spans = append(spans, store.Span{Off: ref.hotLen, Len: ref.wideLen})
	}
	p.reads = append(p.reads, store.Read{Key: o.key("chunks", ref.name), Spans: spans})
}

func (p *parts) lists(known map[string]*derivedList) {
	v, o := p.version, p.version.overlay
	for i, c := range v.body.lists {
		if v.lists[i] = known[c.name]; v.lists[i] == nil {
			ref := &v.body.lists[i]
			p.opens = append(p.opens, func(raw [][]byte) (err error) { v.lists[i], err = ref.open(raw[0], o.Keyed()); return err })
			p.reads = append(p.reads, store.Read{Key: o.key("chunks", c.name), Spans: []store.Span{{Off: 0, Len: c.length}}})
		}
	}
}

// read reads them in one wave and tells of each why it cannot be used.
func (p *parts) read(ctx context.Context) (reasons []error, err error) {
	results := p.version.overlay.store.Fetch(ctx, p.reads)
	if ctx.Err() != nil {
		return nil, fault.About(p.version.overlay.prefix, context.Cause(ctx))
	}
	reasons = make([]error, len(p.reads))
	var checks sync.WaitGroup
	for k, r := range results {
		checks.Go(func() {
			if reasons[k] = r.Err; r.Err == nil {
				reasons[k] = p.opens[k](r.Data)
			}
		})
	}
	checks.Wait()
	return reasons, nil
}

// open reads the hot part of a chunk, or both parts, which are believed for their SHA-256 where versions are signed.
func (ref *chunkRef) open(raw [][]byte, keyed bool) (*chunk, error) {
	what := "artifact list " + ref.name
	if err := bytescan.CheckCRC(what, raw[0], ref.hotCRC); err != nil {
		return nil, err
	}
	whole := len(raw) > 1
	if whole {
		if err := bytescan.CheckCRC("paths of "+what, raw[1], ref.wideCRC); err != nil {
			return nil, err
		}
	}
	if keyed {
		if err := checkSum(what, ref.sha, raw...); err != nil {
			return nil, err
		}
	}
	c, err := openChunk(ref.name, raw[0])
	if err != nil {
		return nil, err
	}
	if c.artifacts.n != ref.artifacts || c.files.n != ref.files {
		return nil, fault.New(fault.Corrupt, what, "%d artifacts of %d files, its version says %d of %d", c.artifacts.n, c.files.n, ref.artifacts, ref.files)
	}
	if whole {
		w, err := openWide(ref.name, c, raw[1])
		if err != nil {
			return nil, err
		}
		c.wide.Store(w)
	}
	return c, nil
}

// bind finds out which index ids of each chunk are declared.
func (v *Version) bind() {
	number := make(map[string]int32, len(v.body.header.Indexes))
	for i, d := range v.body.header.Indexes {
		number[d.ID] = int32(i)
	}
	v.muted = make([]bool, len(v.body.header.Indexes))
	for _, q := range v.body.header.Quarantined {
		if n, ok := number[q.ID]; ok {
			v.muted[n] = true
		}
	}
	for i := range v.views {
		w := &v.views[i]
		w.dead = v.body.chunks[i].dead
		if w.chunk == nil {
			continue
		}
		w.live = make([]int32, len(w.chunk.indexes))
		for k, id := range w.chunk.indexes {
			w.live[k] = -1
			if n, ok := number[id]; ok {
				w.live[k] = n
			}
		}
	}
}
