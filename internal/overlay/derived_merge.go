package overlay

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"strconv"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
)

// nextLists is the lists of the new version, after the new one, if it needs one, has been written. Like chunks, lists are
// runs of a log-structured merge tree: a commit that puts objects writes them together with small lists.
func (d *draft) nextLists(ctx context.Context, w *chunkPuts) (refs []listRef, fresh *derivedList, err error) {
	if len(d.putDerived) > 0 && len(d.mergeLists) == 0 {
		d.mergeLists = d.smallLists()
	}
	kept := maps.Clone(d.putDerived)
	for i, ref := range d.base.body.lists {
		list := d.base.lists[i]
		ref.dead = d.deadDerived[i]
		if slices.Contains(d.mergeLists, i) {
			d.speaking(i, func(e *Derived) { kept[e.Is()] = *e })
		} else if list == nil || d.speaking(i, func(*Derived) {}) > 0 {
			refs = append(refs, ref)
		}
	}
	if len(kept) == 0 {
		return refs, nil, nil
	}
	entries := make([]Derived, 0, len(kept))
	for _, key := range slices.SortedFunc(maps.Keys(kept), compareDerived) {
		entries = append(entries, kept[key])
	}
	ref, fresh, err := w.putList(ctx, entries)
	if err != nil {
		return nil, nil, err
	}
	if len(refs) >= maxLists {
		return nil, nil, fault.New(fault.Exhausted, d.overlay.prefix, "%d lists of derived objects, limit %d", len(refs)+1, maxLists)
	}
	return append(refs, ref), fresh, nil
}

// speaking calls f for every entry of a list of base that is in the new version, and counts them.
func (d *draft) speaking(list int, f func(*Derived)) int {
	l := d.base.lists[list]
	if l == nil {
		return 0
	}
	n := 0
	for k := range l.entries {
		e := &l.entries[k]
		if _, put := d.putDerived[e.Is()]; !put && !d.deadDerived[list].has(k) && (e.Index == "" || d.declared(e.Index)) {
			n++
			f(e)
		}
	}
	return n
}

// smallLists is the readable lists of base that go into the new one.
func (d *draft) smallLists() []int {
	return d.overlay.sizes.anew(d.readableLists(), d.overlay.sizes.smallTotal/2)
}

// fullListTier is the lists to merge where many have like sizes.
func (d *draft) fullListTier() []int {
	return d.overlay.sizes.full(d.readableLists(), len(d.base.body.lists), d.overlay.sizes.small)
}

func (d *draft) readableLists() (lists []sized) {
	for i := range d.base.body.lists {
		if d.base.lists[i] != nil {
			lists = append(lists, sized{i, d.base.body.lists[i].length})
		}
	}
	return lists
}

// putList writes a list, unless an attempt before wrote the same one.
func (w *chunkPuts) putList(ctx context.Context, entries []Derived) (ref listRef, list *derivedList, err error) {
	raw, err := encodeList(entries)
	if err != nil {
		return ref, nil, err
	}
	sum := sha256.Sum256(raw)
	ref, done := w.lists[sum]
	if !done {
		w.n++
		ref = listRef{
			name: w.commit + "-" + strconv.Itoa(w.n), entries: len(entries), length: int64(len(raw)), crc: bytescan.CRC32C(raw), sha: sum,
		}
	}
	if list, err = parseList(ref.name, raw); err != nil {
		return ref, nil, err
	}
	if done {
		return ref, list, nil
	}
	if err := w.overlay.putOwn(ctx, w.overlay.key("chunks", ref.name), raw); err != nil {
		return ref, nil, err
	}
	w.lists[sum] = ref
	return ref, list, nil
}

// openList decodes what was read of a list.
func (ref *listRef) open(raw []byte, keyed bool) (*derivedList, error) {
	what := "list " + ref.name
	if err := bytescan.CheckCRC(what, raw, ref.crc); err != nil {
		return nil, err
	}
	if keyed {
		if err := checkSum(what, ref.sha, raw); err != nil {
			return nil, err
		}
	}
	list, err := parseList(ref.name, raw)
	if err == nil && len(list.entries) != ref.entries {
		return nil, fault.New(fault.Corrupt, what, "%d entries, its version says %d", len(list.entries), ref.entries)
	}
	return list, err
}
