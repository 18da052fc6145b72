// Package ngram answers: which rows can hold this piece of text?
//
// It keeps, for every three consecutive bytes of the folded texts of a string column (analysis.AppendFold: without case), the rows
// that have them. A pattern or a regular expression is turned into what every match must hold; the rows that have all of it are a
// superset of the answer and are always rechecked. Since texts and patterns are folded alike, one artifact serves LIKE and ILIKE;
// since it counts bytes and not characters, one Chinese character is a trigram. The idea and the treatment of regular expressions
// follow Russ Cox, "Regular Expression Matching with a Trigram Index" (2012).
//
// # Version 2
//
// Integers are little-endian, uv is an unsigned LEB128 varint. A trigram is the number first byte × 65,536 + second × 256 + third.
//
//	root        u8 version: 1; 2: postings have seams
//	            encoding                   index.Encoding: u8 kind, u8 scale, uv width; of strings
//	            uv length, Unicode version by whose tables texts were folded, in ASCII
//	            uv rows                    of the segment
//	            uv body bytes
//	            null rows                  index.Unordered: uv count; where 0 < count < rows a unit: uv offset, uv length (0: not kept),
//	                                       u32 CRC32C
//	            u8 form                    0: the dictionary block follows; 1: the directory of the dictionary blocks follows
//	            directory  uv blocks, uv offset of the first; the others follow it without gaps
//	                       per block  uv first trigram - the one of the block before - 1 (the very first: itself),
//	                                  uv length, u32 CRC32C
//	body        postings in the order of their trigrams, dictionary blocks, null rows
//	dictionary block
//	            uv entries, uv offset of the first posting; the others follow it without gaps
//	            per entry  uv trigram - the one before - 1 (the first: itself)
//	                       uv rows << 1 | inside      0 rows: too frequent, its rows are not kept
//	                       inside   uv length, posting
//	                       else     uv length, u32 CRC32C of a posting in the body
//	posting     chunks of 65,536 rows until its end; empty ones are left out
//	            uv (65,536 + row - base) << 1      a seam, where it stands: chunks after it are numbered anew, from the row on, which is
//	                                               their base; before the first seam that is row 0
//	            uv (chunk number - previous - 1; the first after a base: chunk number) << 1 | form
//	              form 0    uv rows - 1; per 128 rows: u8 width, their gaps in width bits each from the least significant bit on;
//	                        a gap is the rows between a row and the one before (the first: the chunk's start)
//	              form 1    8,192 bytes, a bit per row, least significant first
//	null rows   see package index, AppendRows
package ngram

const (
	version     = 2
	seamless    = 1       // version of a root whose postings have no seams
	blockTarget = 8 << 10 // of a dictionary block; also the largest that lives in the root
	maxBlock    = 16 << 10
	maxRoot     = 1 << 20
	maxFolding  = 32      // bytes of a Unicode version
	maxPosting  = 1 << 30 // bytes; a bit per row of the largest segment is half of it
	maxInside   = 8       // bytes of a posting that stands in the dictionary
	// A trigram in more rows than a quarter of the segment, and than commonRows, is too frequent: reading its rows costs more than it
	// saves.
	commonShare = 4
	commonRows  = 1024
	// maxProbe bounds the bytes of postings that one probe reads, maxBlocks its dictionary blocks.
	maxProbe  = 8 << 20
	maxBlocks = 64
)

const (
	formInside = iota
	formBlocks
)

const (
	chunkRows   = 1 << 16
	chunkBitmap = chunkRows / 8
	packRows    = 128
	seamHead    = 2 * chunkRows // and above: a seam
	// copiedRows is the least rows of chunks that a merge copies as they are. Fewer are written anew, so that a posting that was merged
	// often has few seams and full chunks.
	copiedRows = 128
)

// trigrams is the number of different trigrams.
const trigrams = 1 << 24

// tooFrequent reports whether a trigram in n rows of a segment of rows rows is not kept.
func tooFrequent(n, rows uint32) bool { return n > commonRows && n > rows/commonShare }
