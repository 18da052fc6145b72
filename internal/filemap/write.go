package filemap

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"slices"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
)

// Sink takes the leaves of a run in order.
type Sink interface {
	Write(leaf []byte) (int, error)
	// Next makes the leaves that follow go into another object.
	Next() error
}

// stream is entries by ascending hash.
type stream interface {
	next() (e entry, ok bool, err error)
}

// dropped is the slot of a file that is left out.
const dropped = ^uint32(0)

// renumbered is a stream with other slots; entries of files that are left out are too.
type renumbered struct {
	stream
	slots []uint32
}

func (r *renumbered) next() (e entry, ok bool, err error) {
	for {
		e, ok, err = r.stream.next()
		if !ok || err != nil || e.place>>8 == tooMany {
			return e, ok, err
		}
		if slot := r.slots[e.place>>8]; slot != dropped {
			e.place = place(slot, uint8(e.place))
			return e, true, nil
		}
	}
}

// arrange brings files of several runs into the order of slots, each incarnation once, and returns per run where its slots went. A file
// whose stride is 0 is left out. An incarnation that runs cut into granules of different lengths is taken from those with the shortest.
func arrange(runs [][]File) (files []File, slots [][]uint32) {
	for _, run := range runs {
		for i := range run {
			if run[i].Stride > 0 {
				files = append(files, run[i])
			}
		}
	}
	byOrder := func(a, b File) int { return compareFiles(&a, &b) }
	slices.SortFunc(files, func(a, b File) int { return cmp.Or(byOrder(a, b), cmp.Compare(a.Stride, b.Stride)) })
	files = slices.CompactFunc(files, func(a, b File) bool { return compareFiles(&a, &b) == 0 })
	for _, run := range runs {
		to := make([]uint32, len(run))
		for i := range run {
			to[i] = dropped
			if run[i].Stride == 0 {
				continue
			}
			if at, _ := slices.BinarySearchFunc(files, run[i], byOrder); files[at].Stride == run[i].Stride {
				to[i] = uint32(at)
			}
		}
		slots = append(slots, to)
	}
	return files, slots
}

// write lays out a run of about n entries, which in brings, and of the value map, unless that holds too much.
func write(enc index.Encoding, files []File, n uint64, width int, in []stream, values *valueMap, out Sink) (root []byte, keys uint64, err error) {
	if len(files) > maxFiles {
		return nil, 0, fault.New(fault.Exhausted, "file map", "%d files, limit %d", len(files), maxFiles)
	}
	w := &writer{shape: shapeOf(width, 0, files), out: out}
	w.shape.leafBits = leafBitsFor(n, w.shape)
	sorted, err := mergeStreams(in)
	if err != nil {
		return nil, 0, err
	}
	for {
		e, ok, err := sorted.next()
		if err != nil {
			return nil, 0, err
		}
		if ok {
			e.hash = w.shape.cut(e.hash)
		}
		if len(w.group) > 0 && (!ok || w.group[0].hash != e.hash) {
			if err := w.closeGroup(); err != nil {
				return nil, 0, err
			}
		}
		if !ok {
			break
		}
		if w.group = append(w.group, e); len(w.group) >= 4*maxGroup {
			w.group = capped(w.group)
		}
	}
	if err := w.closeLeaves(1 << w.shape.leafBits); err != nil {
		return nil, 0, err
	}
	w.buf = w.buf[:0]
	if !values.fits() {
		values = nil
	} else if w.buf = values.encode(enc, len(files)); len(w.buf) > maxValueMap {
		return nil, 0, fault.New(fault.Exhausted, "file map", "value map of %d bytes, limit %d", len(w.buf), maxValueMap)
	}
	if err := w.put(); err != nil {
		return nil, 0, err
	}
	w.objects = append(w.objects, w.inObject)
	root = encodeRoot(enc, &w.shape, w.keys, files, w.objects, w.dir, values)
	if len(root) > maxRoot {
		return nil, 0, fault.New(fault.Exhausted, "file map", "root of %d bytes, limit %d", len(root), maxRoot)
	}
	return root, w.keys, nil
}

// writer writes leaves.
type writer struct {
	shape    shape
	out      Sink
	group    []entry // of one fingerprint
	leaf     []entry // of the leaf at hand, which has the number of leaves written
	buf      []byte
	dir      []byte
	objects  []int
	inObject int
	bytes    int64 // in the object
	keys     uint64
}

// closeGroup puts the entries of one fingerprint into their leaf.
func (w *writer) closeGroup() error {
	group := capped(w.group)
	if err := w.closeLeaves(w.shape.leafOf(group[0].hash)); err != nil {
		return err
	}
	w.leaf = append(w.leaf, group...)
	w.keys += uint64(len(group))
	w.group = w.group[:0]
	return nil
}

// capped sorts the places of one fingerprint, drops repeats and applies the caps.
func capped(group []entry) []entry {
	slices.SortFunc(group, compareEntries)
	group = slices.Compact(group)
	if group[len(group)-1].place>>8 == tooMany {
		return one(group)
	}
	out, files := group[:0], 0
	for from := 0; from < len(group); {
		slot := group[from].place >> 8
		to := from
		for to < len(group) && group[to].place>>8 == slot {
			to++
		}
		if to-from > granulesCap || uint8(group[to-1].place) == wholeFile {
			out = append(out, entry{group[from].hash, place(slot, wholeFile)})
		} else {
			out = append(out, group[from:to]...)
		}
		from = to
		if files++; files > filesCap {
			return one(group)
		}
	}
	return out
}

func one(group []entry) []entry {
	group[0].place = place(tooMany, wholeFile)
	return group[:1]
}

// closeLeaves writes the leaves before leaf to.
func (w *writer) closeLeaves(to int) error {
	for len(w.dir)/leafRecord < to {
		if w.bytes >= ObjectSize && len(w.objects) < maxObjects-1 {
			if err := w.out.Next(); err != nil {
				return err
			}
			w.objects, w.inObject, w.bytes = append(w.objects, w.inObject), 0, 0
		}
		w.buf = appendLeaf(w.buf[:0], &w.shape, w.leaf)
		if len(w.buf) > maxLeaf {
			return fault.New(fault.Exhausted, "file map", "leaf of %d bytes, limit %d", len(w.buf), maxLeaf)
		}
		if err := w.put(); err != nil {
			return err
		}
		w.leaf = w.leaf[:0]
	}
	return nil
}

// put writes what is in buf and enters it in the directory.
func (w *writer) put() error {
	if _, err := w.out.Write(w.buf); err != nil {
		return err
	}
	w.dir = binary.LittleEndian.AppendUint32(w.dir, uint32(len(w.buf)))
	w.dir = binary.LittleEndian.AppendUint32(w.dir, bytescan.CRC32C(w.buf))
	w.inObject, w.bytes = w.inObject+1, w.bytes+int64(len(w.buf))
	return nil
}

// merged is several streams as one: a heap by hash.
type merged []head

type head struct {
	entry
	stream
}

func mergeStreams(in []stream) (*merged, error) {
	m := merged{}
	for _, s := range in {
		e, ok, err := s.next()
		if err != nil {
			return nil, err
		}
		if ok {
			m = append(m, head{e, s})
		}
	}
	heap.Init(&m)
	return &m, nil
}

func (m *merged) next() (e entry, ok bool, err error) {
	h := *m
	if len(h) == 0 {
		return e, false, nil
	}
	e = h[0].entry
	if h[0].entry, ok, err = h[0].stream.next(); err != nil {
		return e, false, err
	}
	switch {
	case !ok:
		heap.Pop(m)
	case len(h) > 1:
		heap.Fix(m, 0)
	}
	return e, true, nil
}

func (m *merged) Len() int           { return len(*m) }
func (m *merged) Less(i, j int) bool { return (*m)[i].hash < (*m)[j].hash }
func (m *merged) Swap(i, j int)      { (*m)[i], (*m)[j] = (*m)[j], (*m)[i] }
func (m *merged) Push(any)           {}
func (m *merged) Pop() any {
	*m = (*m)[:len(*m)-1]
	return nil
}
