// Package bitmap answers: which rows hold a value, exactly, where values are few?
//
// It is the index kind that keeps a dictionary of the distinct values of a file and the set of rows of each, and the sets of null
// and NaN rows. A probe tries the dictionary and reads the row sets that it needs and no others. Above a cap of values a file
// says "too many", which means "maybe" to every comparison.
//
// # Version 2
//
// Integers are little-endian, uv is an unsigned LEB128 varint.
//
//	root    u8 version: 1; 2: there are row sets in pieces
//	        encoding                index.Encoding: u8 kind, u8 scale, uv width
//	        u8 shape                0: a value a row, 1: a list a row, whose elements are the values
//	        uv rows
//	        uv body bytes
//	        rows without order      shape 0: of nulls, shape 1: null lists and lists with a null element
//	        rows without order      of NaNs; shape 0, Float and Double only
//	        only where other rows exist or the shape is 1:
//	        uv values + 1           0: too many to list
//	        only where values > 0:
//	        u8 form
//	          form 0                a page with all values
//	          form 1                uv pages, per page: uv values, uv length, first key, unit
//	rows without order
//	        uv count
//	        unit                    only where 0 < count < rows: uv offset, uv length, u32 CRC32C; of length 0: not kept
//	page    keys, ascending         per key uv shared, uv suffix length (only where keys vary in length), suffix
//	        uv offset               of the first key's row set; the others follow it without gaps
//	        per key                 uv count; only where count < rows: uv length, u32 CRC32C of the row set
//	body    row sets in key order, null rows, NaN rows, pages
//	row set index.AppendRows: chunks of 65,536 rows, as ranges or bits, whichever is smaller; or in pieces:
//	        u8 0
//	        per piece               uv rows of no piece before it, uv rows of the piece, uv length, row set of these, numbered from its first one on
//
// The dictionary stays in the root while that is at most 32 KiB; beyond that it moves to pages of about 16 KiB.
package bitmap

const (
	version = 2
	whole   = 1        // version of a root without row sets in pieces
	maxCap  = 16 << 10 // values of a file
	// bytesPerValue makes the cap on the key bytes of a file: 256 KiB by default. Below minBytes of keys no file has too many.
	bytesPerValue = 64
	minBytes      = 4 << 10
	maxKeys       = maxCap * bytesPerValue
	inlineRoot    = 32 << 10
	pageTarget    = 16 << 10
	maxPage       = pageTarget + maxKeys + 64 // one key more than the target
	maxRoot       = 2 << 20
	maxRowSet     = 4 << 20 // 32 million scattered rows
	// copiedBytes is the least bytes of a row set that a merge copies as a piece. Smaller ones are joined, so that a row set that was merged
	// often has few pieces.
	copiedBytes = 128
	// maxProbe bounds the row sets that one probe reads: a question that wide is cheaper as a scan of the column.
	maxProbe = 8 << 20
	// maxBuild and minBuild bound the row sets that a builder holds, half its budget between them.
	maxBuild = 128 << 20
	minBuild = 1 << 20
)

const (
	formInline = iota
	formPages
)

// byteCap is the cap on key bytes that goes with a cap on values.
func byteCap(values int) int { return max(values*bytesPerValue, minBytes) }
