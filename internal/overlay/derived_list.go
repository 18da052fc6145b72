package overlay

import (
	"encoding/json"
	"slices"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
)

// A list of derived objects is immutable and shared by versions, like a chunk, and lies beside the chunks:
//
//	"SKOD", version u8 = 1, three zero bytes
//	varint entries; per entry, ascending by (kind, name), no two alike:
//	    kind   varint bytes shared with the kind before, varint length, the rest
//	    name   likewise
//	    key    likewise
//	    index  varint length, id
//	    varint offset, varint length, u32 CRC32C, u8 = 1 and SHA-256, or u8 = 0
//	    varint count of what it was made from; per path: varint bytes shared with the name, varint length, the rest
//	    varint length, JSON
//
// The version that names a list holds the CRC32C and the SHA-256 of its bytes, and a tombstone for each entry that was removed
// or put anew since.
const (
	listMagic       = "SKOD"
	listVersion     = 1
	maxList         = 64 << 20
	maxLists        = 64
	maxListEntries  = 4 << 20
	minListEntry    = 16 // bytes of the shortest entry
	maxMade         = 4096
	maxDerivedBytes = 1 << 20 // of one entry
	minListRef      = 42      // bytes of the shortest list in a body
)

// derivedList is a decoded list.
type derivedList struct {
	name    string
	entries []Derived
	raw     []byte // what it was decoded from, where that is short enough to be copied; nil otherwise
}

func (l *derivedList) find(key DerivedKey) int {
	i, ok := slices.BinarySearchFunc(l.entries, key, func(e Derived, key DerivedKey) int { return compareDerived(e.Is(), key) })
	if !ok {
		return -1
	}
	return i
}

// listRef names a list in a version.
type listRef struct {
	name    string
	entries int
	length  int64
	crc     uint32
	sha     [32]byte
	dead    bitset // tombstones
}

func (c *listRef) encode(w *bytescan.Writer) {
	w.String(c.name)
	w.Uvarint(uint64(c.entries))
	w.Uvarint(uint64(c.length))
	w.U32(c.crc)
	w.Bytes(c.sha[:])
	c.dead.encode(w)
}

func parseListRef(r *bytescan.Reader) listRef {
	c := listRef{name: chunkName(r), entries: r.Count(maxListEntries, 0), length: int64(r.Count(maxList, 0)), crc: r.U32()}
	if int64(c.entries)*minListEntry > c.length {
		r.Fail("list %q: %d entries in %d bytes", c.name, c.entries, c.length)
	}
	copy(c.sha[:], r.Bytes(sha256Size))
	if r.Err() == nil {
		c.dead = decodeBits(r, c.entries)
	}
	return c
}

// encodeList lays entries out in order.
func encodeList(entries []Derived) ([]byte, error) {
	var w bytescan.Writer
	w.Bytes([]byte(listMagic))
	w.Bytes([]byte{listVersion, 0, 0, 0})
	w.Uvarint(uint64(len(entries)))
	var last Derived
	for i := range entries {
		e := &entries[i]
		frontCode(&w, last.Kind, e.Kind)
		frontCode(&w, last.Name, e.Name)
		frontCode(&w, last.Key, e.Key)
		w.String(e.Index)
		w.Uvarint(uint64(e.Off))
		w.Uvarint(uint64(e.Len))
		w.U32(e.CRC)
		if e.SHA256 == [32]byte{} {
			w.U8(0)
		} else {
			w.U8(1)
			w.Bytes(e.SHA256[:])
		}
		w.Uvarint(uint64(len(e.Made)))
		for _, m := range e.Made {
			frontCode(&w, e.Name, m)
		}
		w.Blob(e.Meta)
		last = *e
	}
	if len(w.Buf) > maxList || len(entries) > maxListEntries {
		return nil, fault.New(fault.Exhausted, "list of derived objects", "%d entries in %d bytes", len(entries), len(w.Buf))
	}
	return w.Buf, nil
}

func frontCode(w *bytescan.Writer, before, s string) {
	n := sharedPrefix(before, s)
	w.Uvarint(uint64(n))
	w.String(s[n:])
}

func frontDecode(r *bytescan.Reader, before string, limit int) string {
	n := r.Count(len(before), 0)
	return before[:n] + string(r.Blob(limit-min(n, limit)))
}

// parseList decodes a list whose checksum the caller has verified.
func parseList(name string, raw []byte) (*derivedList, error) {
	r := bytescan.NewReader("list "+name, raw)
	if string(r.Bytes(len(listMagic))) != listMagic {
		r.Fail("no list of derived objects")
		return nil, r.Err()
	}
	if v := r.U8(); r.Err() == nil && v != listVersion {
		return nil, newerFormat("list "+name, int(v), listVersion)
	}
	r.Bytes(3)
	l := &derivedList{name: name, entries: make([]Derived, r.Count(maxListEntries, minListEntry))}
	var last Derived
	total := 0
	for i := range l.entries {
		e := &l.entries[i]
		parseDerived(r, last, e)
		if r.Err() != nil {
			return nil, r.Err()
		}
		if i > 0 && compareDerived(last.Is(), e.Is()) >= 0 {
			r.Fail("entry %d is out of order", i)
		}
		if total += len(e.Kind) + len(e.Name) + len(e.Key); total > maxPathBytes {
			r.Fail("names of more than %d bytes", maxPathBytes)
		}
		last = *e
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	if len(raw) <= maxListCopies {
		l.raw = raw
	}
	return l, nil
}

func parseDerived(r *bytescan.Reader, last Derived, e *Derived) {
	e.Kind = frontDecode(r, last.Kind, maxName)
	e.Name = frontDecode(r, last.Name, maxPath)
	e.Key = frontDecode(r, last.Key, maxDerivedBytes)
	e.Index = r.String(maxName)
	e.Off, e.Len, e.CRC = int64(r.Uvarint()), int64(r.Uvarint()), r.U32()
	switch known := r.U8(); {
	case known == 1:
		copy(e.SHA256[:], r.Bytes(sha256Size))
	case known > 1:
		r.Fail("checksum of sort %d", known)
	}
	if n := r.Count(maxMade, 2); n > 0 {
		e.Made = make([]string, n)
		for i := range e.Made {
			e.Made[i] = frontDecode(r, e.Name, maxPath)
		}
	}
	if meta := r.Blob(maxDerivedBytes); len(meta) > 0 {
		e.Meta = slices.Clone(json.RawMessage(meta))
	}
	if r.Err() == nil {
		if err := e.check("list"); err != nil {
			r.Fail("entry: %v", err)
		}
	}
}
