package maintain

import (
	"context"
	"strings"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/lake/factsblob"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
)

// sealed is bytes of an object that must have a checksum.
type sealed struct {
	key string
	lineage.Place
}

// within is what the bytes that a version names of a derived object vouch for in turn, by kind: a run for its leaves, its value map and its layouts, the head of a
// manifest's facts for their sections. Of kinds that are not here a version names every byte that is used.
var within = map[string]func(prefix string, e *overlay.Derived, raw []byte) ([]sealed, error){
	filemap.Kind: func(prefix string, e *overlay.Derived, raw []byte) ([]sealed, error) {
		meta, err := filemap.ParseMeta(e.Name, e.Meta)
		if err != nil {
			return nil, err
		}
		run, err := meta.OpenChecked(e.Name, raw, e.CRC)
		if err != nil {
			return nil, err
		}
		out := make([]sealed, 0, run.Parts())
		for i := range run.Parts() {
			p := run.PlaceOf(i)
			o := meta.Objects[p.Object]
			out = append(out, sealed{prefix + "/" + o.Key, lineage.Place{Off: o.Off + p.Off, Len: p.Len, CRC: p.CRC}})
		}
		if l := meta.Layouts; l != nil {
			out = append(out, sealed{prefix + "/" + e.Key, lineage.Place(*l)})
		}
		return out, nil
	},
	FactsKind: func(prefix string, e *overlay.Derived, raw []byte) ([]sealed, error) {
		blob, err := factsblob.Open(e.Name, raw)
		if err != nil {
			return nil, err
		}
		var out []sealed
		for _, s := range blob.Sections() {
			out = append(out, sealed{prefix + "/" + e.Key, lineage.Place{Off: s.Off, Len: s.Len, CRC: s.CRC}})
		}
		return out, nil
	},
}

// verifyDerived reads what a version names of a derived object, and with deep what that vouches for, and compares checksums. On an error
// about bytes object is the key of the one that holds them. An entry without bytes has nothing to verify.
func verifyDerived(ctx context.Context, st store.Store, prefix string, e *overlay.Derived, deep bool) (object string, err error) {
	object = prefix + "/" + e.Key
	if e.Len == 0 {
		return object, nil
	}
	res := st.Fetch(ctx, []store.Read{{Key: object, Spans: []store.Span{{Off: e.Off, Len: e.Len}}}})[0]
	if res.Err != nil {
		return object, fault.About(object, res.Err)
	}
	if err := e.Check(res.Data[0]); err != nil {
		return object, err
	}
	list := within[e.Kind]
	if !deep || list == nil {
		return object, nil
	}
	parts, err := list(prefix, e, res.Data[0])
	if fault.Is(err, fault.Unsupported) {
		return object, nil // a later format, whose bytes have their checksum
	}
	for len(parts) > 0 && err == nil {
		n := verifyBatch(parts)
		object, err = verifyParts(ctx, st, parts[:n])
		parts = parts[n:]
	}
	return object, err
}

const (
	verifyBytes = 16 << 20 // in memory at once, but for a longer part
	verifySpans = 1024
)

// verifyBatch is how many of the parts are read together.
func verifyBatch(parts []sealed) int {
	n, size := 0, int64(0)
	for n < len(parts) && n < verifySpans && (n == 0 || size+parts[n].Len <= verifyBytes) {
		size += parts[n].Len
		n++
	}
	return n
}

// verifyParts reads parts in one wave.
func verifyParts(ctx context.Context, st store.Store, parts []sealed) (object string, err error) {
	var reads []store.Read
	var sums [][]uint32
	for _, p := range parts {
		if p.Len == 0 {
			continue
		}
		if n := len(reads); n == 0 || reads[n-1].Key != p.key {
			reads, sums = append(reads, store.Read{Key: p.key}), append(sums, nil)
		}
		n := len(reads) - 1
		reads[n].Spans, sums[n] = append(reads[n].Spans, store.Span{Off: p.Off, Len: p.Len}), append(sums[n], p.CRC)
	}
	if len(reads) == 0 {
		return "", nil
	}
	for i, res := range st.Fetch(ctx, reads) {
		if res.Err != nil {
			return reads[i].Key, fault.About(reads[i].Key, res.Err)
		}
		for k, raw := range res.Data {
			if err := bytescan.CheckCRC(reads[i].Key, raw, sums[i][k]); err != nil {
				return reads[i].Key, err
			}
		}
	}
	return "", nil
}

// damage is the reason of a finding about bytes that could not be read or verified; an error where that may pass.
func damage(ctx context.Context, err error) (reason string, passing error) {
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case fault.Retryable(err) || fault.Is(err, fault.Denied):
		return "", err
	case fault.Is(err, fault.Corrupt):
		return reasonCorrupt, nil
	default:
		return reasonUnreadable, nil
	}
}

// derived verifies a derived object of the newest version and tells, if it is damaged, what of it and why.
func (r *run) derived(ctx context.Context, e *overlay.Derived, deep bool) (*Finding, error) {
	object, err := verifyDerived(ctx, r.Store, r.Overlay.Prefix(), e, deep)
	if err == nil {
		return nil, nil
	}
	reason, err2 := damage(ctx, err)
	if err2 != nil {
		return nil, err2
	}
	return &Finding{IndexID: e.Index, Kind: e.Kind, Bundle: object, Reason: reason, Detail: err.Error(), derived: e}, nil
}

// drops is the changes that take damaged derived objects out of a version, each with what is a part of it: the next sync makes them anew.
// One that somebody else replaced meanwhile is passed over.
func drops(v *overlay.Version, found []Finding) (changes []overlay.Change) {
	var all []overlay.Derived
	for i := range found {
		e := found[i].derived
		if e == nil {
			continue
		}
		if all == nil {
			all = v.EveryDerived()
		}
		family := []overlay.Derived{*e}
		for _, p := range all {
			if e.Kind == filemap.Kind && p.Kind == filemap.PartKind && strings.HasPrefix(p.Name, e.Name+"/") {
				family = append(family, p)
			}
		}
		changes = append(changes, overlay.ReplaceDerived(nil, family))
	}
	return changes
}

// listsDamaged is findings about the lists of a version itself, which nothing but a recovery takes out of it.
func listsDamaged(lost []overlay.Warning) (out []Finding) {
	for _, w := range lost {
		reason := reasonUnreadable
		if fault.Is(w.Reason, fault.Corrupt) {
			reason = reasonCorrupt
		}
		out = append(out, Finding{Kind: kindList, Bundle: w.Part, Reason: reason, Detail: w.Reason.Error()})
	}
	return out
}

// kindList is what findings call the body of a version and the lists that it names.
const kindList = "list"
