package filemap

import (
	"github.com/skomerdb/skomer/internal/bytescan"
)

// Layouts is where the pages of a run's files lie, so that a hit is read without the footer of its file. They are a blob of their own beside
// the root:
//
//	layouts u8 version = 1
//	        uv shapes
//	        per shape
//	          uv length, bytes
//	        uv files            of the run
//	        per file, by slot
//	          uv shape          counted from 1; 0: the file has no layout, and nothing follows
//	          uv length, places
//
// What shapes and places mean is parquetio's. Either holds names of columns and offsets, and no values. They are of the bytes with the
// entity tag that the run saw: who reads by them sends it.
type Layouts struct {
	raw    []byte
	shapes [][]byte
	at     []uint32 // per file where its entry begins
}

// Layout is that of one file.
type Layout struct{ Shape, Places []byte }

// LayoutsType is the type of the Puffin blob.
const LayoutsType = "skomer.filemap.layout.v1"

const (
	layoutsVersion = 1
	// maxLayouts is the bytes of the layouts of a run, which the first query takes in whole beside the leaves: those of the files that come
	// last are left out above it.
	maxLayouts = 2 << 20
	maxShapes  = 256
	// fewLayouts is the bytes of layouts that a merge copies without a look at what they are good for.
	fewLayouts = 64 << 10
)

// Layouts lays out what of tells of the run's files, in the order of slots. It is nil where that is nothing, and where it is long and takes more
// bytes than the leaves: values that are in so many files leave no file to be read by it, and merges would copy it all the same.
func (x *Run) Layouts(of func(*File) (Layout, bool)) []byte {
	if raw := encodeLayouts(x.Files, of); len(raw) <= fewLayouts || int64(len(raw)) <= x.LeafBytes() {
		return raw
	}
	return nil
}

func encodeLayouts(files []File, of func(*File) (Layout, bool)) []byte {
	var shapes, entries bytescan.Writer
	known := map[string]int{}
	some := false
	for i := range files {
		l, ok := of(&files[i])
		no := known[string(l.Shape)]
		room := maxLayouts - 64 - len(files) + i - len(shapes.Buf) - len(entries.Buf)
		if !ok || no == 0 && len(known) == maxShapes || len(l.Shape)+len(l.Places)+16 > room {
			entries.Uvarint(0)
			continue
		}
		if no == 0 {
			no = len(known) + 1
			known[string(l.Shape)] = no
			shapes.Blob(l.Shape)
		}
		entries.Uvarint(uint64(no))
		entries.Blob(l.Places)
		some = true
	}
	if !some {
		return nil
	}
	w := &bytescan.Writer{}
	w.U8(layoutsVersion)
	w.Uvarint(uint64(len(known)))
	w.Bytes(shapes.Buf)
	w.Uvarint(uint64(len(files)))
	w.Bytes(entries.Buf)
	return w.Buf
}

// OpenLayouts parses the layouts of a run of so many files, whose checksum the caller has verified. It keeps raw and 4 bytes a file.
func OpenLayouts(raw []byte, files int) (*Layouts, error) {
	r := bytescan.NewReader("layouts of a file map", raw)
	if v := r.U8(); r.Err() == nil && v != layoutsVersion {
		r.Fail("version %d", v)
	}
	if len(raw) > maxLayouts {
		r.Fail("%d bytes, above the limit of %d", len(raw), maxLayouts)
	}
	l := &Layouts{raw: raw, shapes: make([][]byte, r.Count(maxShapes, 1))}
	for i := range l.shapes {
		l.shapes[i] = r.Blob(maxLayouts)
	}
	n := r.Count(maxFiles, 1)
	if r.Err() == nil && n != files {
		r.Fail("of %d files, the run has %d", n, files)
	}
	l.at = make([]uint32, 0, n)
	for range n {
		l.at = append(l.at, uint32(r.Offset()))
		if r.Count(len(l.shapes), 0) > 0 {
			r.Blob(maxLayouts)
		}
		if r.Err() != nil {
			break
		}
	}
	return l, r.Done()
}

// Of is the layout of the file in a slot; false where it has none.
func (l *Layouts) Of(slot int) (Layout, bool) {
	if l == nil || slot >= len(l.at) {
		return Layout{}, false
	}
	r := bytescan.NewReader("layouts of a file map", l.raw[l.at[slot]:])
	no := r.Count(len(l.shapes), 0)
	if no == 0 {
		return Layout{}, false
	}
	places := r.Blob(maxLayouts)
	return Layout{l.shapes[no-1], places}, r.Err() == nil
}

// Bytes is about the memory that the layouts hold.
func (l *Layouts) Bytes() int64 { return int64(len(l.raw) + 4*len(l.at)) }
