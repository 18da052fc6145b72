// Package valueset answers: which values does a row group hold?
//
// It is the index kind that keeps the sorted distinct values of every row group, up to a cap, and the counts of nulls and NaNs.
// Above the cap a row group says "too many", which means "maybe" to every comparison.
//
// # Version 1
//
// Integers are little-endian, uv is an unsigned LEB128 varint.
//
//	root    u8 version = 1
//	        encoding                index.Encoding: u8 kind, u8 scale, uv width
//	        u8 shape                0: a value a row, 1: a list a row, whose elements are the values
//	        uv body bytes
//	        uv row groups
//	        u8 form                 0: sets in the root, 1: sets in the body
//	        per row group
//	          uv rows, uv nulls     shape 1: null lists and lists with a null element
//	          uv NaNs               shape 0, Float and Double only
//	          uv values + 1         only where rows > nulls + NaNs or the shape is 1; 0: too many to list
//	          set                   form 0, values > 0
//	          unit                  form 1, values > 0: uv offset, uv length, u32 CRC32C
//	set     keys, ascending         per key uv shared, uv suffix length (only where keys vary in length), suffix
//
// Sets stay in the root while it is at most 32 KiB.
package valueset

import (
	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
)

const (
	version = 1
	maxCap  = 16 << 10 // values of a row group
	// bytesPerValue makes the cap on the key bytes of a row group: 64 KiB by default. Below minBytes of keys no row group has too
	// many.
	bytesPerValue = 64
	minBytes      = 4 << 10
	maxKeys       = maxCap * bytesPerValue
	maxSet        = maxKeys + 8*maxCap // what keys share and their lengths take 8 bytes at most
	inlineRoot    = 32 << 10
	maxRoot       = 4 << 20
	// maxProbe bounds the sets that one probe reads; row groups beyond it are in doubt.
	maxProbe = 8 << 20
)

const (
	formInline = iota
	formUnits
)

// byteCap is the cap on key bytes that goes with a cap on values.
func byteCap(values int) int { return max(values*bytesPerValue, minBytes) }

// group is a row group. values is 0 where every row is null or NaN, and where there are too many.
type group struct {
	index.Granule
	tooMany bool // it has values that were not listed
	values  int
	set     []byte     // form 0
	unit    index.Unit // form 1
}

func (g *group) append(w *bytescan.Writer, e index.Encoding, ofList bool, form uint8) {
	w.Uvarint(uint64(g.Rows))
	w.Uvarint(uint64(g.Nulls))
	if e.Kind.Floating() && !ofList {
		w.Uvarint(uint64(g.NaNs))
	}
	if !g.Values() && !ofList {
		return
	}
	if g.tooMany {
		w.Uvarint(0)
		return
	}
	w.Uvarint(uint64(g.values) + 1)
	switch {
	case g.values == 0:
	case form == formInline:
		w.Bytes(g.set)
	default:
		g.unit.Append(w)
	}
}
