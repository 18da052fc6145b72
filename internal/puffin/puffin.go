// Package puffin answers: which blobs are in this Puffin file, where, and how do I write one?
//
// Puffin is Iceberg's side-car container (https://iceberg.apache.org/puffin-spec/, version 1). All integers are
// little-endian:
//
//	file    magic blob* footer
//	magic   50 46 41 31                      "PFA1"
//	footer  magic payload size flags magic
//	payload JSON in UTF-8, or one LZ4 frame of it when flag bit 0 is set
//	size    int32, bytes of payload as stored
//	flags   4 bytes; bit 0 of the first: payload compressed; all others must be 0
//
// Blob types, and what blobs contain, are not this package's business; neither is where the bytes come from.
package puffin

const (
	magic      = "PFA1"
	magicSize  = int64(len(magic))
	trailer    = 12                  // size, flags, magic
	framing    = magicSize + trailer // what a footer has besides its payload
	minObject  = magicSize + framing // an empty payload, which is still too short for JSON
	compressed = uint32(1)           // flag bit 0
)

// Limits on what the bytes of a file may ask for.
const (
	// MaxFooter is the largest footer payload that is read, in bytes, stored and decompressed.
	MaxFooter = 64 << 20
	// MaxBlobs is how many blobs a footer may list.
	MaxBlobs = 1 << 20
	// MaxEntries is how many field ids and properties the blobs of a footer may have in all.
	MaxEntries = 4 << 20
)

// Codecs of foreign blobs. Ours are stored uncompressed and the key is omitted.
const (
	LZ4  = "lz4"
	Zstd = "zstd"
)

// Blob describes one blob as the footer does.
type Blob struct {
	Type           string
	Fields         []int32 // field ids, in the order that the type defines
	SnapshotID     int64
	SequenceNumber int64
	Offset, Length int64  // in the file, as stored
	Codec          string // "" (none), LZ4, Zstd or one that is unknown
	Properties     map[string]string
}

// Footer lists the blobs of a file in the order of its JSON.
type Footer struct {
	Blobs      []Blob
	Properties map[string]string
	Start      int64 // offset of the footer; blobs end at or before it
}
