package filemap

import (
	"encoding/binary"
	"math/bits"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
)

// appendLeaf lays out the entries of one leaf, which are cut, capped and in order.
func appendLeaf(dst []byte, s *shape, entries []entry) []byte {
	n := len(entries)
	if n == 0 {
		return dst
	}
	high, rest := s.split(n)
	w := bitWriter{buf: binary.AppendUvarint(dst, uint64(n))}
	bucket := uint64(0)
	for i := range entries {
		for q := s.inLeaf(entries[i].hash) >> rest; bucket < q; bucket++ {
			w.put(0, 1)
		}
		w.put(1, 1)
	}
	for ; bucket < 1<<high; bucket++ {
		w.put(0, 1)
	}
	w.flush()
	for i := range entries {
		w.put(s.inLeaf(entries[i].hash)&(1<<rest-1), rest)
	}
	w.flush()
	for i := range entries {
		slot, granule := uint64(entries[i].place>>8), uint64(entries[i].place&0xff)
		if slot == tooMany {
			slot = uint64(s.files)
		}
		if granule == wholeFile {
			granule = uint64(s.granules)
		}
		w.put(slot<<s.granWidth|granule, s.slotWidth+s.granWidth)
	}
	w.flush()
	return w.buf
}

// inLeaf is the bits of a fingerprint behind the leaf's number.
func (s *shape) inLeaf(hash uint64) uint64 { return hash << s.leafBits >> (64 - s.bits + s.leafBits) }

// leaf is the parts of a leaf's bytes.
type leaf struct {
	*shape
	n                       int
	high, rest              int
	buckets, rests, placing []byte
}

// openLeaf finds the parts of a leaf whose checksum is right.
func openLeaf(s *shape, raw []byte) (*leaf, error) {
	r := bytescan.NewReader("leaf of a file map", raw)
	x := &leaf{shape: s}
	if x.n = r.Count(maxLeaf*8, 0); x.n == 0 {
		r.Fail("no entries")
		return nil, r.Err()
	}
	x.high, x.rest = s.split(x.n)
	buckets, rests, places := s.sizes(x.n)
	x.buckets, x.rests, x.placing = r.Bytes(buckets), r.Bytes(rests), r.Bytes(places)
	return x, r.Done()
}

// entry is entry i of bucket q.
func (x *leaf) entry(leafNo int, q uint64, i int) (entry, error) {
	width := x.slotWidth + x.granWidth
	at := bitsAt(x.placing, i*width, width)
	slot, granule := uint32(at>>x.granWidth), at&(1<<x.granWidth-1)
	switch {
	case int(slot) == x.files:
		slot = tooMany
	case int(slot) > x.files:
		return entry{}, index.Broken("leaf of a file map", "slot %d of %d files", slot, x.files)
	}
	if granule > uint64(x.granules) {
		return entry{}, index.Broken("leaf of a file map", "granule %d of %d", granule, x.granules)
	}
	if int(granule) == x.granules || slot == tooMany {
		granule = wholeFile
	}
	inLeaf := q<<x.rest | bitsAt(x.rests, i*x.rest, x.rest)
	hash := uint64(leafNo)<<(64-x.leafBits) | inLeaf<<(64-x.bits)
	return entry{hash, place(slot, uint8(granule))}, nil
}

// find appends the entries of a fingerprint.
func (x *leaf) find(dst []uint32, leafNo int, hash uint64) ([]uint32, error) {
	hash = x.cut(hash)
	q := x.inLeaf(hash) >> x.rest
	at, ok := afterZeros(x.buckets, q)
	if !ok {
		return dst, index.Broken("leaf of a file map", "bucket %d is missing", q)
	}
	before := len(dst)
	for i := at - int(q); bitsAt(x.buckets, at, 1) == 1; i, at = i+1, at+1 {
		if i >= x.n {
			return dst, index.Broken("leaf of a file map", "more than its %d entries", x.n)
		}
		if bitsAt(x.rests, i*x.rest, x.rest) != x.inLeaf(hash)&(1<<x.rest-1) {
			continue
		}
		e, err := x.entry(leafNo, q, i)
		if err != nil {
			return dst, err
		}
		if dst = append(dst, e.place); len(dst)-before > maxGroup {
			return dst, index.Broken("leaf of a file map", "more than %d places of one fingerprint", maxGroup)
		}
	}
	return dst, nil
}

// afterZeros is the place behind the first q zero bits.
func afterZeros(b []byte, q uint64) (at int, ok bool) {
	for ; len(b)-at/8 >= 8 && q > 0; at += 64 {
		word := binary.LittleEndian.Uint64(b[at/8:])
		zeros := uint64(bits.OnesCount64(^word))
		if zeros >= q {
			break
		}
		q -= zeros
	}
	for ; q > 0; at++ {
		if at >= len(b)*8 {
			return 0, false
		}
		if b[at>>3]>>(at&7)&1 == 0 {
			q--
		}
	}
	return at, true
}

// all appends every entry, for merges.
func (x *leaf) all(dst []entry, leafNo int) ([]entry, error) {
	q, i := uint64(0), 0
	for at := 0; i < x.n; at++ {
		switch {
		case at >= len(x.buckets)*8 || q>>x.high > 0:
			return dst, index.Broken("leaf of a file map", "%d entries, it says %d", i, x.n)
		case x.buckets[at>>3]>>(at&7)&1 == 0:
			q++
		default:
			e, err := x.entry(leafNo, q, i)
			if err != nil {
				return dst, err
			}
			dst = append(dst, e)
			i++
		}
	}
	return dst, nil
}
