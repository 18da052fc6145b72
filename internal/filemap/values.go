package filemap

import (
	"maps"
	"slices"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
)

// Caps of a value map. Above any but valueFiles the run has none; above valueFiles a value is in too many files to list. All are final
// through merges, and count alike whatever was merged first.
const (
	maxValues     = 4096
	maxValueBytes = 256 << 10 // of all keys
	maxPairs      = 1 << 20   // of a value and a file; a value in too many counts as one of valueFiles
	valueFiles    = 16 << 10
	maxValueMap   = 4 << 20 // as it is stored
)

// valueMap is which files of a run hold which value, exactly.
type valueMap struct {
	keys []string // ascending
	held []slots  // per key
	null slots    // the files that hold a null
	// gone tells that a value of too many files may be in none that is left.
	gone bool
}

// slots is files of a run, ascending, or too many to list.
type slots struct {
	list []uint32
	many bool
}

func (s *slots) add(slot uint32) {
	if n := len(s.list); s.many || n > 0 && s.list[n-1] == slot {
		return
	}
	if s.list = append(s.list, slot); len(s.list) > valueFiles {
		*s = slots{many: true}
	}
}

func (s *slots) pairs() int {
	if s.many {
		return valueFiles
	}
	return len(s.list)
}

// valuesOf gathers the values of a run's files, one file after the other.
type valuesOf struct {
	distinct *index.Distinct
	held     []slots // per number of a value
	null     slots
	pairs    int // at least
}

func newValuesOf(e index.Encoding) *valuesOf {
	return &valuesOf{distinct: index.NewDistinct(e, maxValues, maxValueBytes)}
}

// add notes that value i of k is in a file, and returns the value's number; false: there are too many.
func (v *valuesOf) add(k *index.Keys, i int, file uint32) (int, bool) {
	id, ok := v.distinct.Number(k, i)
	if !ok {
		return 0, false
	}
	if id == len(v.held) {
		v.held = append(v.held, slots{})
	}
	before := len(v.held[id].list)
	v.held[id].add(file)
	v.pairs += max(0, len(v.held[id].list)-before)
	return id, v.pairs <= maxPairs
}

// finish is the map, with the slots that the files got.
func (v *valuesOf) finish(to []uint32) *valueMap {
	out := &valueMap{}
	for _, id := range v.distinct.Ascending() {
		out.keys, out.held = append(out.keys, v.distinct.Key(id)), append(out.held, v.held[id])
	}
	for i := range out.held {
		out.held[i].renumber(to)
	}
	out.null = v.null
	out.null.renumber(to)
	return out
}

// renumber changes every slot to another, and drops those of files that are left out.

func (s *slots) renumber(to []uint32) {
	out := make([]uint32, 0, len(s.list))
	for _, slot := range s.list {
		if to[slot] != dropped {
			out = append(out, to[slot])
		}
	}
	slices.Sort(out)
	s.list = out
}

// mergeValues is the map of runs whose files went to the slots; nil: a run has none, or they hold too much together. left tells which
// runs lose files. Values that no file is left of are gone.
func mergeValues(sources []*valueMap, to [][]uint32, left []bool) *valueMap {
	out := &valueMap{}
	held := map[string][]slots{}
	var null []slots
	for i, m := range sources {
		if m == nil {
			return nil
		}
		many := m.null.many
		for k, key := range m.keys {
			m.held[k].renumber(to[i])
			many = many || m.held[k].many
			held[key] = append(held[key], m.held[k])
		}
		m.null.renumber(to[i])
		null = append(null, m.null)
		out.gone = out.gone || m.gone || many && left[i]
	}
	out.null = united(null)
	for _, key := range slices.Sorted(maps.Keys(held)) {
		if files := united(held[key]); files.pairs() > 0 {
			out.keys, out.held = append(out.keys, key), append(out.held, files)
		}
	}
	return out
}

// united is every file of some sets.
func united(sets []slots) (out slots) {
	for _, s := range sets {
		out.list, out.many = append(out.list, s.list...), out.many || s.many
	}
	slices.Sort(out.list)
	out.list = slices.Compact(out.list)
	if out.many || len(out.list) > valueFiles {
		return slots{many: true}
	}
	return out
}

// fits tells that the map, which may be nil, is within its caps.
func (m *valueMap) fits() bool {
	if m == nil {
		return false
	}
	bytes, pairs := 0, m.null.pairs()
	for i, key := range m.keys {
		bytes += len(key)
		pairs += m.held[i].pairs()
	}
	return len(m.keys) <= maxValues && bytes <= maxValueBytes && pairs <= maxPairs
}

// encode lays the map out for a run of so many files.
func (m *valueMap) encode(e index.Encoding, files int) []byte {
	w := &bytescan.Writer{}
	w.Uvarint(uint64(len(m.keys)))
	keys := index.NewKeyWriter(e)
	for _, key := range m.keys {
		keys.Append(w, key)
	}
	body := &bytescan.Writer{}
	m.null.append(w, body, files)
	for i := range m.held {
		m.held[i].append(w, body, files)
	}
	w.Bytes(body.Buf)
	return w.Buf
}

// The heads of sets; that of a list is setList + its bytes.
const (
	setMany = iota
	setBits
	setList
)

// append writes the head of a set and, behind all heads, its files: as distances or as bits, whichever is shorter.
func (s *slots) append(head, body *bytescan.Writer, files int) {
	if s.many {
		head.Uvarint(setMany)
		return
	}
	list := &bytescan.Writer{}
	next := uint32(0)
	for _, slot := range s.list {
		list.Uvarint(uint64(slot - next))
		next = slot + 1
	}
	if size := (files + 7) / 8; len(list.Buf) > size {
		bits := make([]byte, size)
		for _, slot := range s.list {
			bits[slot>>3] |= 1 << (slot & 7)
		}
		head.Uvarint(setBits)
		body.Bytes(bits)
		return
	}
	head.Uvarint(uint64(setList + len(list.Buf)))
	body.Bytes(list.Buf)
}
