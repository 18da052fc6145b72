package bitmap

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
)

// eachKey visits the values of all sources in key order. The key is a view that the next one ends.
func (x *merger) eachKey(visit func(key []byte, of []held) error) error {
	heads := make([]*dictionary, 0, len(x.values))
	for _, d := range x.values {
		ok, err := d.start()
		if err != nil {
			return err
		}
		if ok {
			heads = append(heads, d)
		}
	}
	var of []held
	var key []byte
	least := make([]*dictionary, 0, len(heads))
	for len(heads) > 0 {
		least = append(least[:0], heads[0])
		for _, d := range heads[1:] {
			switch c := d.compare(least[0]); {
			case c < 0:
				least = append(least[:0], d)
			case c == 0:
				least = append(least, d)
			}
		}
		key, of = append(key[:0], least[0].key...), of[:0]
		for _, d := range least {
			of = append(of, held{d.source, d.sets[d.at]})
			ok, err := d.next()
			if err != nil {
				return err
			}
			if !ok {
				heads = slices.DeleteFunc(heads, func(e *dictionary) bool { return e == d })
			}
		}
		if err := visit(key, of); err != nil {
			return err
		}
	}
	return nil
}

// dictionary reads the values of a source in order, page by page.
type dictionary struct {
	*reader
	from   *index.Source
	source int
	page   int    // the next one
	at     int    // the value at hand
	key    []byte // of it, a view that the next page ends
	prefix uint64 // of the key: the first eight bytes, as they are ordered
	keys   []byte // of the page
	ends   []int  // where each of them ends
	sets   []rowSet
	unit   []byte
	last   []byte
}

// dictionaries is memory of merges that are done.
var dictionaries = sync.Pool{New: func() any { return new(dictionary) }}

// openDictionary parses the root of an artifact of size rows, and at the same time the page in it, if it is there.
func openDictionary(root []byte, size uint32) (*dictionary, error) {
	d := dictionaries.Get().(*dictionary)
	x, err := open(root, size, d)
	if d.reader = x; x != nil && x.inline != nil {
		d.page = 1
	}
	return d, err
}

// compare compares the keys at hand.
func (d *dictionary) compare(e *dictionary) int {
	if d.prefix != e.prefix {
		return cmp.Compare(d.prefix, e.prefix)
	}
	return bytes.Compare(d.key, e.key)
}

// turnTo makes a value of the page the one at hand.
func (d *dictionary) turnTo(i int) {
	from := 0
	if d.at = i; i > 0 {
		from = d.ends[i-1]
	}
	if d.key = d.keys[from:d.ends[i]]; len(d.key) >= 8 {
		d.prefix = binary.BigEndian.Uint64(d.key)
		return
	}
	var padded [8]byte
	copy(padded[:], d.key)
	d.prefix = binary.BigEndian.Uint64(padded[:])
}

// start moves to the first value; ok is false where there is none.
func (d *dictionary) start() (ok bool, err error) {
	if d.page != 1 { // else its page is at hand
		d.page = 0
		return d.nextPage()
	}
	if ok = len(d.ends) > 0; ok {
		d.turnTo(0)
	}
	return ok, nil
}

// next moves to the next value; ok is false after the last.
func (d *dictionary) next() (ok bool, err error) {
	if d.at+1 < len(d.ends) {
		d.turnTo(d.at + 1)
		return true, nil
	}
	d.last = append(d.last[:0], d.key...)
	if ok, err = d.nextPage(); ok && bytes.Compare(d.key, d.last) <= 0 {
		return false, index.Broken(name+" page", "page %d does not go on after the one before", d.page-1)
	}
	return ok, err
}

func (d *dictionary) nextPage() (ok bool, err error) {
	r, n := (*bytescan.Reader)(nil), 0
	switch {
	case d.inline != nil && d.page == 0:
		r, n = bytescan.NewReader(name+" dictionary", d.inline), d.values
	case d.page < len(d.pages):
		p := d.pages[d.page]
		if d.unit, err = d.from.Unit(name+" page", p.unit, d.unit); err != nil {
			return false, err
		}
		r, n = bytescan.NewReader(name+" page", d.unit), p.values
	default:
		return false, nil
	}
	d.page++
	if d.read(d.reader, r, n); len(d.ends) > 0 {
		d.turnTo(0)
	}
	return len(d.ends) > 0, r.Done()
}

// read makes a page of n values of x the one at hand and returns how many rows these have.
func (d *dictionary) read(x *reader, r *bytescan.Reader, n int) (sum uint64) {
	d.sets, d.keys, d.ends = slices.Grow(d.sets[:0], n), slices.Grow(d.keys[:0], r.Left()), slices.Grow(d.ends[:0], n)
	x.readPage(r, n, func(key []byte) bool {
		d.keys = append(d.keys, key...)
		d.ends = append(d.ends, len(d.keys))
		return true
	}, func(s rowSet, _ bool) {
		d.sets = append(d.sets, s)
		sum += uint64(s.count)
	})
	return sum
}
