package overlay

import (
	"context"
	"slices"
	"strings"

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

// marks lists the keys of marks of erasures that a version knows nothing of, the newest first, at most so many.
func (o *Overlay) marks(ctx context.Context, v *Version, most int) (keys []string, err error) {
	prefix := o.key(MarksFolder) + "/"
	for after := ""; len(keys) < most; {
		page, err := o.store.List(ctx, prefix, after, min(most, listPage))
		if err != nil {
			return nil, fault.About(prefix, err)
		}
		for _, in := range page {
			name, _, _ := strings.Cut(strings.TrimPrefix(in.Key, prefix), "-")
			switch n := versionNumber(name); {
			case n > v.ErasedIn():
				keys = append(keys, in.Key)
			case n > 0:
				return keys, nil
			}
			after = in.Key
		}
		if len(page) < min(most, listPage) {
			break
		}
	}
	return keys, nil
}

// lostErasure is a warning about the newest mark of an erasure that a version knows nothing of, none if there is no such mark.
func (o *Overlay) lostErasure(ctx context.Context, v *Version) ([]Warning, error) {
	keys, err := o.marks(ctx, v, 1)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	name, _, _ := strings.Cut(keys[0][len(o.key(MarksFolder))+1:], "-")
	return []Warning{{keys[0], fault.New(fault.NotFound, o.prefix, "values were erased in version %d, which is lost, and version %d knows nothing of it",
		versionNumber(name), v.number)}}, nil
}

// erasedSince is everything that was erased by when a version was lost, if any erasure came after good; found tells.
func (o *Overlay) erasedSince(ctx context.Context, good *Version) (all erasedSet, found bool, err error) {
	keys, err := o.marks(ctx, good, maxErased)
	if err != nil || len(keys) == 0 {
		return nil, false, err
	}
	all = slices.Clone(good.body.erased)
	for _, key := range keys {
		raw, err := fetchAll(ctx, o.store, key)
		if err != nil {
			return nil, true, fault.About(key, err)
		}
		erased, err := parseMark(key, raw)
		if err != nil {
			return nil, true, fault.New(fault.ClassOf(err), key, "what was erased is not known").WithCause(err).
				WithFix("skomer erase TABLE once more; where nothing can be committed, mount the table to a new overlay")
		}
		all = append(all, erased...)
	}
	slices.SortFunc(all, compareEraseKeys)
	return slices.Compact(all), true, nil
}
