package index

import (
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/bytescan"
)

// Distinct numbers the distinct keys of a column in the order of their appearance, up to a cap.
type Distinct struct {
	enc       Encoding
	maxValues int
	maxBytes  int
	bytes     int
	narrow    map[uint64]int
	wide      map[string]int
	list      []string // keys by number

	last       int // the number of lastNarrow or lastWide, -1 before the first
	lastNarrow uint64
	lastWide   string
}

// NewDistinct takes at most maxValues keys of encoding e, of maxBytes in total.
func NewDistinct(e Encoding, maxValues, maxBytes int) *Distinct {
	d := &Distinct{enc: e, maxValues: maxValues, maxBytes: maxBytes}
	d.Reset()
	return d
}

// Reset forgets every key.
func (d *Distinct) Reset() {
	d.narrow, d.wide, d.list, d.bytes, d.last = map[uint64]int{}, map[string]int{}, nil, 0, -1
}

// Len is the number of keys.
func (d *Distinct) Len() int { return len(d.list) }

// Number is the number of value i of k, neither null nor NaN; false: it is new and one too many.
func (d *Distinct) Number(k *Keys, i int) (int, bool) {
	if !d.enc.Narrow() {
		return d.numberWide(k.Wide(i))
	}
	key := k.Narrow[i]
	if d.last >= 0 && key == d.lastNarrow {
		return d.last, true
	}
	id, ok := d.narrow[key]
	if !ok {
		if !d.room(d.enc.Size()) {
			return 0, false
		}
		id = len(d.list)
		d.narrow[key] = id
		d.list = append(d.list, string(d.enc.AppendNarrow(nil, key)))
	}
	d.last, d.lastNarrow = id, key
	return id, true
}

func (d *Distinct) numberWide(key []byte) (int, bool) {
	if d.last >= 0 && string(key) == d.lastWide {
		return d.last, true
	}
	id, ok := d.wide[string(key)]
	if !ok {
		if !d.room(len(key)) {
			return 0, false
		}
		id = len(d.list)
		d.list = append(d.list, string(key))
		d.wide[d.list[id]] = id
	}
	d.last, d.lastWide = id, d.list[id]
	return id, true
}

func (d *Distinct) room(n int) bool {
	if len(d.list) == d.maxValues || n > d.maxBytes-d.bytes {
		return false
	}
	d.bytes += n
	return true
}

// Key is the bytes of the key with the number.
func (d *Distinct) Key(number int) string { return d.list[number] }

// Ascending is the numbers of the keys in key order.
func (d *Distinct) Ascending() []int {
	out := make([]int, len(d.list))
	for i := range out {
		out[i] = i
	}
	slices.SortFunc(out, func(a, b int) int { return strings.Compare(d.list[a], d.list[b]) })
	return out
}

// KeyWriter writes ascending keys of one encoding, each after what it shares with the one before:
//
//	uv shared, uv suffix length (only where keys vary in length), suffix
type KeyWriter struct {
	enc  Encoding
	last string
}

// NewKeyWriter starts a list.
func NewKeyWriter(e Encoding) *KeyWriter { return &KeyWriter{enc: e} }

// Append writes the next key.
func (k *KeyWriter) Append(w *bytescan.Writer, key string) {
	n := 0
	for n < len(key) && n < len(k.last) && key[n] == k.last[n] {
		n++
	}
	w.Uvarint(uint64(n))
	if k.enc.Size() == 0 {
		w.Uvarint(uint64(len(key) - n))
	}
	w.Bytes([]byte(key[n:]))
	k.last = key
}

// ReadKeys reads n keys that a KeyWriter wrote, of at most limit bytes in total, and shows them to visit, whose slice the next key
// ends. It holds one key. Keys that do not ascend fail.
func ReadKeys(r *bytescan.Reader, e Encoding, n, limit int, visit func(i int, key []byte)) {
	var key []byte
	for i := range n {
		shared := int(min(r.Uvarint(), uint64(limit)+1))
		length := e.Size() - shared
		if e.Size() == 0 {
			length = r.Count(limit, 1)
		}
		if r.Err() == nil && (shared > len(key) || length < 0 || shared+length > limit) {
			r.Fail("key %d shares %d of %d bytes and adds %d, with %d left to all keys", i, shared, len(key), length, limit)
		}
		limit -= shared + length
		suffix := r.Bytes(length)
		if r.Err() == nil && i > 0 && string(suffix) <= string(key[shared:]) {
			r.Fail("key %d is not above the one before", i)
		}
		if r.Err() != nil {
			return
		}
		key = append(key[:shared], suffix...)
		visit(i, key)
	}
}
