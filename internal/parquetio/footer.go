// Package parquetio answers: what does a Parquet file hold, which bytes of it are needed for which rows, and what values
// do those bytes mean as columns of a table?
//
// It is the boundary to Parquet: footers, page indexes, spans, statistics and columns → batches. It reads nothing itself:
// it says which spans it needs and is fed bytes, so that a caller can unite many files in one wave. It knows nothing of
// snapshots, predicates, deletes or indexes. What it distrusts, and why, is in docs/format/parquet.md.
//
// The wire structures are parsed here with bounds and with the presence of optional fields kept, since a missing null
// count is not a zero; the delta, byte-stream-split and bit-packed value encodings are decoded by parquet-go. Nothing of that
// library leaves the room, and its panics become corrupt faults.
package parquetio

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
)

// MaxFooter is the largest footer that is read. Real ones reach tens of megabytes.
const MaxFooter = 128 << 20

// TailGuess is a good first suffix to fetch of a file that nothing is known of: most footers fit.
const TailGuess = 64 << 10

const (
	magicSize = 4
	tailSize  = magicSize + 4 // footer length and magic
)

// File is a parsed footer. It is safe for concurrent use; only page indexes are added to it after parsing.
type File struct {
	name   string
	tag    store.Tag
	size   int64
	footer []byte // kept: min and max are views into it
	hash   [sha256.Size]byte
	meta   *metadata
	root   *node
	leaves []*node
	hasIDs bool
	// sharedID: two fields of one group have the same id.
	sharedID bool
	starts   []uint32 // first row of each row group, and the end
	writer   writer
	index    pageIndexes
}

// ParseFooter parses the footer of a file of size bytes from its last bytes. When tail is too short, f and err are nil and
// need is the length of the suffix to come back with. A footer above MaxFooter is an Exhausted fault, an encrypted one
// Unsupported, anything that contradicts itself Corrupt.
func ParseFooter(name string, tail []byte, size int64, tag store.Tag) (f *File, need int64, err error) {
	if size < 2*magicSize+4 {
		return nil, 0, fault.New(fault.Corrupt, name, "%d bytes are too short for a Parquet file", size)
	}
	if int64(len(tail)) > size {
		return nil, 0, fault.New(fault.Corrupt, name, "%d bytes of tail for a file of %d", len(tail), size)
	}
	if len(tail) < tailSize {
		return nil, min(size, TailGuess), nil
	}
	end := tail[len(tail)-tailSize:]
	switch string(end[4:]) {
	case "PAR1":
	case "PARE":
		return nil, 0, fault.New(fault.Unsupported, name, "the Parquet footer is encrypted")
	default:
		return nil, 0, fault.New(fault.Corrupt, name, "not a Parquet file: ends with % x", end[4:])
	}
	length := int64(binary.LittleEndian.Uint32(end))
	if length > size-tailSize-magicSize || length == 0 {
		return nil, 0, fault.New(fault.Corrupt, name, "footer of %d bytes in a file of %d", length, size)
	}
	if length > MaxFooter {
		return nil, 0, fault.New(fault.Exhausted, name, "footer of %d bytes, the limit is %d", length, int64(MaxFooter))
	}
	if int64(len(tail)) < length+tailSize {
		return nil, length + tailSize, nil
	}
	f = &File{name: name, tag: tag, size: size, footer: bytes.Clone(tail[int64(len(tail))-length-tailSize : len(tail)-tailSize])}
	if err := f.parse(); err != nil {
		return nil, 0, fault.About(name, err)
	}
	return f, 0, nil
}

func (f *File) parse() error {
	f.hash = sha256.Sum256(f.footer)
	c := &compact{b: f.footer}
	f.meta = c.fileMetadata()
	if c.err != nil {
		return c.err
	}
	f.writer = parseWriter(f.meta.createdBy)
	if err := f.buildSchema(); err != nil {
		return err
	}
	if err := f.checkRows(); err != nil {
		return err
	}
	for g := range f.meta.groups {
		if err := f.checkGroup(&f.meta.groups[g], g); err != nil {
			return err
		}
	}
	f.index.init(len(f.meta.groups), len(f.leaves))
	return nil
}

// checkRows holds the row counts against each other and against the 2³²−1 rows that positions can number.
func (f *File) checkRows() error {
	var sum int64
	f.starts = make([]uint32, 0, len(f.meta.groups)+1)
	for g := range f.meta.groups {
		f.starts = append(f.starts, uint32(sum))
		rows := f.meta.groups[g].rows
		if rows > math.MaxUint32 || sum+rows > math.MaxUint32 {
			return fault.New(fault.Unsupported, "row groups", "more than %d rows", uint32(math.MaxUint32))
		}
		sum += rows
	}
	f.starts = append(f.starts, uint32(sum))
	if f.meta.rows == 0 { // some writers leave it so
		f.meta.rows = sum
	}
	if f.meta.rows != sum {
		return fault.New(fault.Corrupt, "footer", "claims %d rows, its row groups hold %d", f.meta.rows, sum)
	}
	return nil
}

// checkGroup holds a row group's chunks against the schema and the file. A chunk that cannot be read is left to the
// binding that wants it.
func (f *File) checkGroup(g *rowGroup, at int) error {
	if len(g.chunks) != len(f.leaves) {
		return fault.New(fault.Corrupt, "footer", "row group %d has %d column chunks, the schema %d columns", at, len(g.chunks), len(f.leaves))
	}
	for i := range g.chunks {
		g.chunks[i].order = orderUndefined
		if i < len(f.meta.orders) {
			g.chunks[i].order = f.meta.orders[i]
		}
	}
	return nil
}

// Name is what the file was called by the caller.
func (f *File) Name() string { return f.name }

// Tag is the content tag that the footer was read under.
func (f *File) Tag() store.Tag { return f.tag }

// Size is the file's bytes.
func (f *File) Size() int64 { return f.size }

// Rows is the number of rows.
func (f *File) Rows() int64 { return f.meta.rows }

// Created is the writer's name for itself; it may be empty.
func (f *File) Created() string { return f.meta.createdBy }

// FooterHash is the SHA-256 of the footer's Thrift bytes (without length and magic).
func (f *File) FooterHash() [sha256.Size]byte { return f.hash }

// RowGroups is the row range of every row group, in file positions.
func (f *File) RowGroups() []rowset.Range {
	out := make([]rowset.Range, len(f.meta.groups))
	for g := range out {
		out[g] = f.group(g)
	}
	return out
}

func (f *File) group(g int) rowset.Range { return rowset.Range{Start: f.starts[g], End: f.starts[g+1]} }

// MemorySize is the bytes that the file keeps in memory, page indexes included.
func (f *File) MemorySize() int64 {
	const chunkSize, nodeSize = 200, 200
	n := int64(len(f.footer)) + int64(len(f.meta.elements))*nodeSize
	for g := range f.meta.groups {
		n += int64(len(f.meta.groups[g].chunks)) * chunkSize
	}
	return n + f.index.memorySize()
}

// bytesOf resolves a view; nil is absent.
func (f *File) bytesOf(v view) []byte {
	if !v.has() {
		return nil
	}
	return slices.Clip(f.footer[v.off : v.off+v.len])
}
