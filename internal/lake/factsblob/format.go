// Package factsblob answers: what did this manifest say, as bytes of which a plan reads only the columns it asks for?
//
// Manifests are immutable, so what they say can be kept. A pack is one object that holds the facts of several manifests,
// column by column: what a plan compares over all of them lies together and is one read. The package decodes bytes that are
// handed to it and knows no store, no overlay and no predicate. Whatever is wrong with the bytes is a corrupt fault, after
// which the manifest itself is read.
package factsblob

import (
	"cmp"

	"github.com/skomerdb/skomer/internal/facts"
)

// A pack. Integers are little-endian, varints unsigned LEB128, signed ones zigzag:
//
//	sections of all manifests, ordered by kind, field and manifest; nothing between them
//	heads, one a manifest; nothing between them
//
// A head says what it was made from and where the sections are. Its offset, length and CRC32C are kept by the overlay:
//
//	"SKFB", version u8 = 1, three zero bytes
//	manifest: varint length and bytes of its path as the list states it, varint length in bytes, varint length and bytes of
//	    its entity tag when it was read ("" where the store gave none)
//	varint format version, signed varint spec id (-1: not stated), varint length and bytes of the spec's JSON
//	u8 bits (1 if the manifest says that it holds deletes, 2 if some entry is a delete file)
//	varint partition fields; each: name, signed varint field id (-1: none), u8 Avro type, logical type, varint scale, varint size
//	varint entries n
//	varint sections; each: u8 kind, varint field id (0 but for kinds 4 and 5), varint offset in the pack, varint length, u32 CRC32C
//
// Sections by kind:
//
//	0 tuples      integers: number of each entry's tuple; varint distinct tuples; each: u8 1 if stated, then a value a field:
//	              u8 bits (1 null, 2 a number follows, 4 bytes follow), signed varint number, varint length and bytes
//	1 base        integers: added, content, format, encrypted, snapshot id, sequence, records, size, first row id, number of
//	              the equality ids, content offset, content size; varint distinct lists of equality ids; each: u8 1 if stated,
//	              varint count, signed varints. Numbers that inheritance will give are -1
//	2 paths       front-coded strings: varint bytes shared with the one before (0 for every 16th), varint length, the rest
//	3 referenced  the same, of the data file that a delete file is about; no bytes where no entry has one
//	4 keys        u8 form (0 none, 1 of 4 bytes, 2 of 8 bytes, 3 prefixes of 8 bytes), u8 bits (1 text, 2 NaNs, 4 all null,
//	              8 a set of sure entries follows); the set; lower keys; upper keys
//	5 rest        integers: values, nulls, NaNs; lower bounds; upper bounds. Bounds: u8 1 if a set of stated ones follows; the
//	              set; with form 3 integers: their lengths, and their bytes one after another
//
//	integers      signed varint base, u8 width (0, 1, 2, 4, 8), n unsigned integers of that width to add to it
//	set           ceil(n/64) u64, bit i%64 of word i/64 for entry i
//
// Keys of forms 1 and 2 are the bounds themselves. Those of form 3 are their first bytes, filled up with zeros: a plan that
// finds them equal to its literal's reads the rest.
const (
	magic   = "SKFB"
	version = 1

	maxHead     = 16 << 20
	maxText     = 1 << 20
	maxFields   = 1 << 16
	maxSections = 1 << 18
	maxTuples   = 1 << 26
	// MaxEntries is the most entries of one manifest.
	MaxEntries = 1 << 24
)

type kind uint8

const (
	tuples kind = iota
	base
	paths
	referenced
	keys
	rest
	kinds
)

const (
	keysText = 1 << iota
	keysNaNs
	keysAllNull
	keysSure
)

// Section is a part of a pack that is read alone.
type Section struct {
	kind     kind
	field    int
	Off, Len int64
	CRC      uint32
}

func compareSections(a, b Section) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.field, b.field))
}

// Origin is the manifest that a blob was made from.
type Origin struct {
	Path   string // as the manifest list states it
	Length int64  // bytes
	Tag    string // entity tag when it was read; "": not known
}

func words(n int) int { return (n + 63) / 64 }

// baseInts is the integers of section base.
func baseInts(all []*facts.Ints) []*facts.Ints {
	const tuple = 9 // in the order of manifest.Ints
	out := append([]*facts.Ints{}, all[:tuple]...)
	return append(out, all[tuple+1:]...)
}
