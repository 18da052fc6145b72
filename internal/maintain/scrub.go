package maintain

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/skomerdb/skomer/internal/bundle"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
)

// ScrubOptions bound a scrub.
type ScrubOptions struct {
	Sample   float64 // share of artifacts and derived objects, above 0 and up to 1; 0: all
	MaxBytes int64   // read; 0: no limit
}

// Scrubbed is what a scrub read and found.
type Scrubbed struct {
	Version   *overlay.Version
	Artifacts int
	Derived   int // objects that are about the table as a whole, or parts of such
	Sources   int // data files
	BytesRead int64
	Complete  bool      // the end of the list was reached
	Found     []Finding // withdrawn, but for lists
}

// scrubKind is the derived object that holds where the next scrub begins: it has no bytes, its description is a scrubCursor. Its key names
// nothing.
const scrubKind = "scrub"

type scrubCursor struct {
	Bundle    string `json:"bundle"`  // the object of what was checked last
	Lineage   int64  `json:"lineage"` // and where in it: the offset of an artifact's lineage record, or of a derived object
	Pass      int64  `json:"pass"`    // of the whole list; each samples other artifacts
	UpdatedMs int64  `json:"updated_ms"`
}

// Scrub reads again what the newest version names: its own lists, each time; artifacts and derived objects in the order of their objects
// and from where the last scrub ended. It compares bodies, roots, lineage records and all bytes of derived objects with their checksums, and
// the data files of s with the hashes that were recorded of them. What differs is withdrawn; damaged lists are reported, and Repair takes
// them out. y.Store must not answer from memory.
func (y *Syncer) Scrub(ctx context.Context, s *facts.Snapshot, o ScrubOptions) (*Scrubbed, error) {
	r, ctx, err := y.begin(ctx, s)
	if err != nil {
		return nil, err
	}
	out := &Scrubbed{Version: r.report.Version}
	x := &scrubbing{run: r, options: o, out: out, cursor: r.cursor(), ordinals: map[string]int{}, hashed: map[string]hashedFile{}}
	for i, path := range s.Files.Stated {
		x.ordinals[path] = i
	}
	lists, err := r.Overlay.Verify(ctx, r.report.Version.Number())
	if err != nil {
		return nil, err
	}
	out.Found = listsDamaged(lists)
	err = x.all(ctx)
	if lost := x.commit(ctx); err == nil {
		err = lost
	}
	return out, err
}

// cursor is where the last scrub ended.
func (r *run) cursor() (c scrubCursor) {
	for _, d := range r.report.Version.Derived(scrubKind) {
		if json.Unmarshal(d.Meta, &c) != nil {
			c = scrubCursor{}
		}
	}
	return c
}

// scrubbing is one scrub.
type scrubbing struct {
	*run
	options  ScrubOptions
	out      *Scrubbed
	cursor   scrubCursor
	ordinals map[string]int // of the snapshot's files by stated path
	hashed   map[string]hashedFile
}

// item is an artifact or a derived object, and its place in the order.
type item struct {
	at       overlay.Key
	artifact *overlay.ArtifactInfo
	derived  *overlay.Derived
}

// list is everything that the version names, in order, from the cursor on.
func (x *scrubbing) list() (list []item) {
	v, after := x.report.Version, overlay.Key{Bundle: x.cursor.Bundle, Lineage: x.cursor.Lineage}
	add := func(i item) {
		if compareKeys(i.at, after) > 0 && x.sampled(i.at) {
			list = append(list, i)
		}
	}
	v.Each(func(a overlay.ArtifactInfo) bool {
		a.RootInline = nil
		add(item{at: a.Key(), artifact: &a})
		return true
	})
	derived := v.EveryDerived()
	for i := range derived {
		if e := &derived[i]; e.Len > 0 {
			add(item{at: overlay.Key{Bundle: x.Overlay.Prefix() + "/" + e.Key, Lineage: e.Off}, derived: e})
		}
	}
	slices.SortFunc(list, func(a, b item) int { return compareKeys(a.at, b.at) })
	return list
}

// all checks what comes behind the cursor, one at least.
func (x *scrubbing) all(ctx context.Context) error {
	for n, i := range x.list() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if n > 0 && x.options.MaxBytes > 0 && x.budget.used.Usage().BytesRead >= x.options.MaxBytes {
			return nil
		}
		if err := x.item(ctx, i); err != nil {
			return err
		}
		x.cursor.Bundle, x.cursor.Lineage = i.at.Bundle, i.at.Lineage
	}
	x.out.Complete = true
	x.cursor = scrubCursor{Pass: x.cursor.Pass + 1}
	return nil
}

func (x *scrubbing) item(ctx context.Context, i item) error {
	if i.artifact != nil {
		return x.artifact(ctx, i.artifact)
	}
	x.out.Derived++
	f, err := x.run.derived(ctx, i.derived, true)
	if f != nil {
		x.out.Found = append(x.out.Found, *f)
	}
	return err
}

func compareKeys(a, b overlay.Key) int {
	return cmp.Or(cmp.Compare(a.Bundle, b.Bundle), cmp.Compare(a.Lineage, b.Lineage))
}

// sampled chooses artifacts by a hash, so that every pass takes others.
func (x *scrubbing) sampled(k overlay.Key) bool {
	if x.options.Sample <= 0 || x.options.Sample >= 1 {
		return true
	}
	raw, _ := json.Marshal([]any{k, x.cursor.Pass})
	sum := sha256.Sum256(raw) // of a weaker hash the first bits hardly change from pass to pass
	return float64(binary.LittleEndian.Uint64(sum[:])>>11)/(1<<53) < x.options.Sample
}

// artifact checks one artifact and, while they are in the snapshot, its data files.
func (x *scrubbing) artifact(ctx context.Context, a *overlay.ArtifactInfo) error {
	x.out.Artifacts++
	rejected := false
	reject := func(_ overlay.Place, f Finding) {
		x.out.Found, rejected = append(x.out.Found, f), true
	}
	if err := x.readable(ctx, []overlay.ArtifactInfo{*a}, reject); err != nil || rejected {
		return err
	}
	_, sum, err := x.report.Version.Paths(ctx, a.At)
	if err == nil {
		err = bundle.VerifyBody(ctx, x.Store, a.Bundle, a.Body, sum)
	}
	if err != nil {
		reason, passing := damage(ctx, err)
		if passing == nil {
			reject(a.At, x.finding(*a, reason, err.Error()))
		}
		return passing
	}
	recs, errs := x.records(ctx, []overlay.ArtifactInfo{*a})
	if errs[0] != nil {
		return errs[0]
	}
	return x.sources(ctx, a, recs[0], reject)
}

// sources hashes the data files of an artifact again.
func (x *scrubbing) sources(ctx context.Context, a *overlay.ArtifactInfo, rec *lineage.Record, reject func(overlay.Place, Finding)) error {
	columns, ok := x.columns(rec.ReadFieldIDs)
	if !ok {
		return nil
	}
	for _, was := range rec.Files {
		i, live := x.ordinals[was.Path]
		if !live || x.snapshot.Files.Size[i] != was.Size || x.snapshot.Files.Records[i] != was.Records {
			continue
		}
		h := x.hash(ctx, i, rec.ReadFieldIDs, columns)
		if h.err != nil && (fault.Retryable(h.err) || fault.Is(h.err, fault.Denied) || ctx.Err() != nil) {
			return h.err
		}
		if h.err == nil && h.file.FooterSHA256 == was.FooterSHA256 && h.file.ColumnsSHA256 == was.ColumnsSHA256 {
			continue
		}
		detail := was.Path + " does not have the content that was indexed"
		if h.err != nil {
			detail = h.err.Error()
		}
		reject(a.At, x.finding(*a, reasonSource, detail))
		return nil
	}
	return nil
}

// hash hashes some columns of a file once in a scrub.
func (x *scrubbing) hash(ctx context.Context, ordinal int, ids []int, columns []column.Path) hashedFile {
	raw, _ := json.Marshal([]any{ordinal, ids})
	h, known := x.hashed[string(raw)]
	if !known {
		x.out.Sources++
		h.file, h.err = x.Build.Rehash(ctx, x.snapshot, x.file(ordinal), columns)
		x.hashed[string(raw)] = h
	}
	return h
}

// idle tells that nothing was found, and that the next scrub may begin where the record of the last one says: there was nothing to check,
// or all of it was checked from the beginning a while ago already.
func (x *scrubbing) idle() bool {
	was := x.run.cursor()
	sampled := x.options.Sample > 0 && x.options.Sample < 1 // each pass takes others
	switch {
	case len(x.out.Found) > 0 || x.cursor.Bundle != was.Bundle || x.cursor.Lineage != was.Lineage:
		return false
	case x.out.Artifacts+x.out.Derived == 0 && !sampled:
		return true
	default:
		return !sampled && x.recent(was.UpdatedMs)
	}
}

// commit withdraws what was found and records where the next scrub begins, whatever ended this one.
func (x *scrubbing) commit(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	x.out.BytesRead = x.budget.used.Usage().BytesRead
	var keys []overlay.Key
	for i := range x.out.Found {
		if f := &x.out.Found[i]; f.Kind == "" {
			if err := x.name(ctx, f); err != nil {
				return err
			}
			keys = append(keys, f.key)
		}
	}
	if x.idle() {
		return nil
	}
	x.cursor.UpdatedMs = x.now().UnixMilli()
	meta, err := json.Marshal(x.cursor)
	if err != nil {
		return fault.Wrap(fault.Invalid, scrubKind, err)
	}
	changes := append(drops(x.report.Version, x.out.Found), overlay.Retire(keys...),
		overlay.Derive([]overlay.Derived{{Kind: scrubKind, Name: "cursor", Key: "scrub/cursor", Meta: meta}}, nil))
	receipt, err := x.Overlay.Commit(ctx, nil, changes...)
	if err != nil {
		return err
	}
	x.out.Version = receipt.Version
	return nil
}
