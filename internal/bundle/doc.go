// Package bundle answers: where in this Puffin file are the artifacts of one build, and are their bytes intact?
//
// A bundle is a Puffin file that any reader of the format opens:
//
//	body blob × artifacts   skomer.<kind>.v<N>; an artifact with an empty body has an empty blob
//	lineage blob            skomer.lineage.v1: the lineage records of all artifacts, framed
//	roots blob              skomer.roots.v1, the last one: the roots of all artifacts and a directory
//	footer
//
// so that one read of the file's end gives footer, directory and roots. Bodies carry in `fields` the indexed field ids, in
// `snapshot-id` and `sequence-number` the snapshot that was read, and in their properties the id of the index and the SHA-256
// of the lineage record. Blobs are never compressed as a whole; `compression-codec` is absent.
//
// The package knows neither overlay versions nor what roots and bodies mean.
package bundle

import (
	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
)

// Blob types beside those of the kinds.
const (
	LineageType = "skomer.lineage.v1"
	RootsType   = "skomer.roots.v1"
	typePrefix  = "skomer."
)

// Properties of blobs and files.
const (
	propIndex   = "skomer.index-id"
	propLineage = "skomer.lineage-sha256"
	propBuild   = "skomer.build-id"
	propTable   = "skomer.table-uuid"
	propCreator = "created-by"
	creator     = "Skomer"
)

// Placed is an artifact in its bundle. Places are offsets in the file.
type Placed struct {
	IndexID             string
	BlobType            string
	Body, Root, Lineage lineage.Place
	BodySHA256          [32]byte
}

// The lineage blob. Integers are little-endian.
//
//	"SKLN", version u8 = 1, three zero bytes
//	per artifact: u32 length, u32 CRC32C, and the record as JSON; the artifact's Lineage place is the JSON alone
const (
	lineageMagic = "SKLN"
	frameHeader  = 8
	magicHeader  = 8 // magic, version, three zero bytes
	formatOne    = 1
)

// The roots blob. Varints are unsigned LEB128.
//
//	root × artifacts, in the order of the directory
//	directory: varint count, then per artifact
//	    varint length and bytes of the index id; varint length and bytes of the blob type
//	    body:    varint offset, varint length, u32 CRC32C, SHA-256 of 32 bytes
//	    root:    varint offset, varint length, u32 CRC32C
//	    lineage: varint offset, varint length, u32 CRC32C
//	u32 length of the directory, u32 its CRC32C
//	"SKRT", version u8 = 1, three zero bytes
const (
	rootsMagic   = "SKRT"
	rootsTrailer = 16
	minPlaced    = 2 + 6 + 3*4 + 32
	maxArtifacts = 1 << 20
	maxText      = 1024
	maxRoots     = 256 << 20 // bytes of a roots blob
	maxLineage   = 256 << 20 // bytes of a lineage blob that is read whole
)

func appendPlace(w *bytescan.Writer, p lineage.Place) {
	w.Uvarint(uint64(p.Off))
	w.Uvarint(uint64(p.Len))
	w.U32(p.CRC)
}

func readPlace(r *bytescan.Reader, end int64) lineage.Place {
	off, n := r.Uvarint(), r.Uvarint()
	p := lineage.Place{CRC: r.U32()}
	if off > uint64(end) || n > uint64(end)-off {
		r.Fail("range of %d bytes at %d ends behind %d", n, off, end)
		return p
	}
	p.Off, p.Len = int64(off), int64(n)
	return p
}

func encodeDirectory(placed []Placed) []byte {
	var w bytescan.Writer
	w.Uvarint(uint64(len(placed)))
	for i := range placed {
		p := &placed[i]
		w.String(p.IndexID)
		w.String(p.BlobType)
		w.Uvarint(uint64(p.Body.Off))
		w.Uvarint(uint64(p.Body.Len))
		w.U32(p.Body.CRC)
		w.Bytes(p.BodySHA256[:])
		appendPlace(&w, p.Root)
		appendPlace(&w, p.Lineage)
	}
	n := len(w.Buf)
	sum := bytescan.CRC32C(w.Buf)
	w.U32(uint32(n))
	w.U32(sum)
	w.Bytes([]byte(rootsMagic))
	w.Bytes([]byte{formatOne, 0, 0, 0})
	return w.Buf
}

// parseDirectory reads the directory at the end of a roots blob. No artifact may reach behind end, an offset in the file.
func parseDirectory(name string, blob []byte, end int64) ([]Placed, error) {
	r := bytescan.NewReader(name, blob)
	r.Bytes(len(blob) - rootsTrailer)
	n, sum := r.U32(), r.U32()
	if string(r.Bytes(len(rootsMagic))) != rootsMagic {
		r.Fail("roots blob without its magic")
	}
	version := r.U8()
	r.Bytes(3)
	if err := r.Done(); err != nil {
		return nil, err
	}
	if version != formatOne {
		return nil, fault.New(fault.Unsupported, name, "roots blob of version %d", version).WithFix("upgrade skomer")
	}
	at := len(blob) - rootsTrailer - int(n)
	if at < 0 {
		r.Fail("directory of %d bytes in a roots blob of %d", n, len(blob))
		return nil, r.Err()
	}
	dir := blob[at : at+int(n)]
	if err := bytescan.CheckCRC(name+" directory", dir, sum); err != nil {
		return nil, err
	}
	r = bytescan.NewReader(name, dir)
	out := make([]Placed, r.Count(maxArtifacts, minPlaced))
	for i := range out {
		out[i] = readPlaced(r, end)
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	return out, nil
}

func readPlaced(r *bytescan.Reader, end int64) Placed {
	p := Placed{IndexID: r.String(maxText), BlobType: r.String(maxText)}
	p.Body = readPlace(r, end)
	copy(p.BodySHA256[:], r.Bytes(32))
	p.Root, p.Lineage = readPlace(r, end), readPlace(r, end)
	return p
}
