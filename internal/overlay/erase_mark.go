package overlay

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
)

// A mark outlives the version that it was written for, of which it repeats what was ever erased, so that no recovery goes back behind an
// erasure. Its name below erased/ is that of the version, a dash, and the UUID of the commit:
//
//	"SKOE", version u8 = 1, three zero bytes
//	varint number of erased incarnations, 16 bytes each, ascending
//	u32 CRC32C of everything before it
const (
	markMagic   = "SKOE"
	markVersion = 1
	maxMark     = 32 << 20
)

// markedFor is how long the version of a mark is waited for: it is put right after its mark, by a commit that may be under way.
const markedFor = 10 * time.Second

// MarksFolder is where the marks of erasures lie below an overlay's prefix.
const MarksFolder = "erased"

func encodeMark(erased erasedSet) []byte {
	var w bytescan.Writer
	w.Bytes([]byte(markMagic))
	w.Bytes([]byte{markVersion, 0, 0, 0})
	erased.encode(&w)
	w.U32(bytescan.CRC32C(w.Buf))
	return w.Buf
}

func parseMark(name string, raw []byte) (erasedSet, error) {
	r := bytescan.NewReader(name, raw)
	if len(raw) < 12 || len(raw) > maxMark || string(r.Bytes(len(markMagic))) != markMagic {
		return nil, fault.New(fault.Corrupt, name, "%d bytes are no mark of an erasure", len(raw))
	}
	if v := int(r.U8()); v != markVersion {
		return nil, newerFormat(name, v, markVersion)
	}
	end := len(raw) - 4
	if err := bytescan.CheckCRC(name, raw[:end], bytescan.NewReader(name, raw[end:]).U32()); err != nil {
		return nil, err
	}
	r = bytescan.NewReader(name, raw[:end])
	r.Bytes(8)
	out := parseErased(r)
	return out, r.Done()
}

// mark writes the mark of an erasure that is about to be committed as the draft's version.
func (d *draft) mark(ctx context.Context) error {
	if d.header.ErasedIn != d.header.Version {
		return nil
	}
	key := d.overlay.key(MarksFolder, versionName(d.header.Version)+"-"+d.commit)
	return d.overlay.putOwn(ctx, key, encodeMark(d.erased))
}

// lostMark is the mark of an erasure that a version knows nothing of.
type lostMark struct {
	key     string
	size    int64
	version uint64
}

// marks finds the marks of erasures that a version knows nothing of, the newest first, at most so many. A mark is of none where its version is
// another commit's: the erasure lost the race for it, or was killed before it.
func (o *Overlay) marks(ctx context.Context, v *Version, most int) (lost []lostMark, err error) {
	prefix := o.key(MarksFolder) + "/"
	for after := ""; len(lost) < most; {
		page, err := o.store.List(ctx, prefix, after, listPage)
		if err != nil {
			return nil, fault.About(prefix, err)
		}
		for _, in := range page {
			name, commit, _ := strings.Cut(strings.TrimPrefix(in.Key, prefix), "-")
			n := versionNumber(name)
			if n > 0 && n <= v.ErasedIn() || len(lost) == most {
				return lost, nil
			}
			if n == 0 {
				continue
			}
			is, err := o.isLost(ctx, v, n, commit)
			if err != nil {
				return nil, err
			}
			if is {
				lost = append(lost, lostMark{in.Key, in.Size, n})
			}
		}
		if len(page) < listPage {
			break
		}
		after = page[len(page)-1].Key
	}
	return lost, nil
}

// isLost tells whether an erasure that a commit marked for version n is unknown to v although it may have happened: version n is gone or damaged.
func (o *Overlay) isLost(ctx context.Context, v *Version, n uint64, commit string) (bool, error) {
	key := o.key("versions", versionName(n))
	raw, err := fetchAll(ctx, o.store, key)
	for until := time.Now().Add(o.marked); n > v.number && fault.Is(err, fault.NotFound) && time.Now().Before(until); {
		if !pause(ctx, 8) { // it may be on its way
			return false, fault.About(key, context.Cause(ctx))
		}
		raw, err = fetchAll(ctx, o.store, key)
	}
	if fault.Is(err, fault.NotFound) {
		return true, nil
	}
	if err != nil {
		return false, fault.About(key, err)
	}
	b, s, broken, err := o.decode(ctx, key, n, raw)
	switch {
	case fault.Is(err, fault.NotFound) || fault.Is(broken, fault.Corrupt):
		return true, nil
	case err != nil:
		return false, fault.About(key, err)
	case broken != nil: // whoever can read it knows
		return n <= v.number, nil //nolint:nilerr // it is not what is wrong here
	case n > v.number: // v is not the newest any more, or version n expired
		return s != nil, nil
	case s != nil:
		return s.commit == "" || s.commit == commit, nil
	}
	return b.header.Commit == commit, nil
}

// lostErasure is a warning about the newest mark of an erasure that a version knows nothing of, none if there is no such mark.
func (o *Overlay) lostErasure(ctx context.Context, v *Version) ([]Warning, error) {
	lost, err := o.marks(ctx, v, 1)
	if err != nil || len(lost) == 0 {
		return nil, err
	}
	return []Warning{{lost[0].key, fault.New(fault.NotFound, o.prefix, "values were erased in version %d, which is lost or was cut short, and version %d knows nothing of it",
		lost[0].version, v.number)}}, nil
}

// erasedSince is everything that was erased by when a version was lost, if any erasure came after good; found tells.
func (o *Overlay) erasedSince(ctx context.Context, good *Version) (all erasedSet, found bool, err error) {
	lost, err := o.marks(ctx, good, maxErased)
	if err != nil || len(lost) == 0 {
		return nil, false, err
	}
	all = slices.Clone(good.body.erased)
	for _, m := range lost {
		erased, err := o.readMark(ctx, m)
		if err != nil {
			return nil, true, fault.New(fault.ClassOf(err), m.key, "what was erased is not known").WithCause(err).
				WithFix("skomer erase TABLE once more; where nothing can be committed, mount the table to a new overlay")
		}
		fresh := slices.DeleteFunc(erased, all.has)
		all = append(all, fresh...)
		slices.SortFunc(all, compareEraseKeys)
		if all = slices.Compact(all); len(all) > maxErased {
			return nil, true, fault.New(fault.Exhausted, o.prefix, "%d erased files, limit %d", len(all), maxErased).
				WithFix("mount the table to a new overlay")
		}
	}
	return all, true, nil
}

func (o *Overlay) readMark(ctx context.Context, m lostMark) (erasedSet, error) {
	if m.size > maxMark {
		return nil, fault.New(fault.Corrupt, m.key, "%d bytes are no mark of an erasure", m.size)
	}
	raw, err := fetchAll(ctx, o.store, m.key)
	if err != nil {
		return nil, err
	}
	return parseMark(m.key, raw)
}
