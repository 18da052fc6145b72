// Package sketch answers: how many distinct values does a column hold about, and how are they distributed?
//
// It is the index kind that rules nothing out: it keeps three Apache DataSketches of a column's values, a theta sketch and an HLL
// sketch of which values there are and a KLL sketch of how they are ordered, and counts what they leave out. Sketches of several files
// merge into the sketch of the union, never into that of a difference: what a deleted file held is forgotten by merging the others anew.
//
// # Version 1
//
// Integers are little-endian, uv is an unsigned LEB128 varint.
//
//	root    u8 version = 1
//	        encoding                index.Encoding: u8 kind, u8 scale, uv width
//	        u8 shape                0: a value a row, 1: a list a row, whose elements are the values
//	        u8 lg k                 of theta, 9 to 16
//	        uv body bytes
//	        uv rows
//	        uv values               neither null nor NaN; of shape 1 the elements
//	        uv nulls                shape 1: null elements
//	        uv NaNs
//	        uv empty                values of no bytes, which theta and HLL do not take (as in Java)
//	        3 × unit                theta, HLL, KLL: uv offset, uv length, u32 CRC32C
//	theta   compact ordered theta sketch, serial version 3, seed 9001
//	HLL     compact HLL_8 sketch, lg k = 12
//	KLL     compact items sketch, k = 200, of keys: 8 bytes each where keys are narrow, else u32 length and at most 128 bytes
//
// Theta and HLL are fed with Iceberg's single-value serialisation of each value, as the Puffin specification says of
// apache-datasketches-theta-v1, so that the merged theta sketch is that blob. -0.0 is fed as 0.0. KLL is fed with key-v1 keys, which have
// the order of the values.
package sketch

import (
	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
)

const (
	version = 1
	// seed is the DataSketches default, which the Puffin specification asks for.
	seed     = 9001
	minLgK   = 9
	maxLgK   = 16
	hllLgK   = 12
	kllK     = 200
	kllM     = 8
	keyBytes = 128 // of a wide key in KLL; longer ones are cut, which keeps their order but for equal beginnings
	maxRoot  = 256
	// maxUnit is the theta sketch of lg k = 16 before it is trimmed: 15/16 of 2^17 hashes.
	maxUnit = 1 << 20
	// maxLevels of a KLL sketch halve more values than a segment has rows.
	maxLevels = 40
)

const (
	shapeValues = iota
	shapeLists
)

// Counts is what a sketch says exactly.
type Counts struct {
	Rows   int64
	Values int64 // neither null nor NaN; of lists the elements
	Nulls  int64 // of lists the null elements
	NaNs   int64
	Empty  int64 // of Values, those of no bytes
}

func (c *Counts) add(o Counts) {
	c.Rows += o.Rows
	c.Values += o.Values
	c.Nulls += o.Nulls
	c.NaNs += o.NaNs
	c.Empty += o.Empty
}

// header is a root without its units.
type header struct {
	Counts
	enc    index.Encoding
	ofList bool
	lgK    uint8
}

func (h *header) root(bodySize int64, units [3]index.Unit) []byte {
	w := &bytescan.Writer{}
	w.U8(version)
	h.enc.Append(w)
	if h.ofList {
		w.U8(shapeLists)
	} else {
		w.U8(shapeValues)
	}
	w.U8(h.lgK)
	w.Uvarint(uint64(bodySize))
	for _, n := range []int64{h.Rows, h.Values, h.Nulls, h.NaNs, h.Empty} {
		w.Uvarint(uint64(n))
	}
	for _, u := range units {
		u.Append(w)
	}
	return w.Buf
}
