package avro

import "math/bits"

const (
	litBits  = 11 // first level of the table of literals and lengths
	distBits = 8  // and of that of distances
	maxCode  = 15 // bits of the longest code
)

// The tables of a block's codes map the next bits of the input, lowest first, to entries. A second level has as many entries as the
// bits that its longest code adds ask for: there are never more than these, the second number of zlib's enough.c for 288 symbols
// and 11 bits, and for 32 and 8.
type (
	litTable  [2342]entry
	distTable [402]entry
)

// entry of a table:
//
//	bits 0–5    bits of the input that the symbol takes: its code and the extra bits behind it
//	bits 8–11   bits of the code
//	bit  14     special
//	bit  15     literal
//	bits 16–31  the literal; the least length or distance; a code length
//
// Special is the end of the data; and where no bits are taken, the second level of bits 8–11 more bits, which begins at the entry
// that bits 16–31 tell. An entry of nothing is of bits that begin no code.
type entry uint32

const (
	special entry = 1 << 14
	literal entry = 1 << 15
)

func (e entry) taken() uint { return uint(e & 63) }
func (e entry) code() uint  { return uint(e >> 8 & 15) }
func (e entry) least() int  { return int(e >> 16) }

// value is the length or distance that the entry and its extra bits tell.
func (e entry) value(hold uint64) int { return e.least() + int(hold&(1<<e.taken()-1)>>e.code()) }

// find is the entry of the next bits.
func (t *litTable) find(hold uint64) entry {
	e := t[hold&(1<<litBits-1)]
	if e&special != 0 && e.taken() == 0 {
		e = t[e.least()+int(hold>>litBits&(1<<e.code()-1))]
	}
	return e
}

// find is the entry of the next bits.
func (t *distTable) find(hold uint64) entry {
	e := t[hold&(1<<distBits-1)]
	if e&special != 0 {
		e = t[e.least()+int(hold>>distBits&(1<<e.code()-1))]
	}
	return e
}

// Lengths and distances: the least value of each symbol and the number of bits that follow (RFC 1951, 3.2.5).
var (
	lengthBase = [29]uint16{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258}
	lengthBits = [29]uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	distBase   = [30]uint16{1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577}
	distExtra  = [30]uint8{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13}
)

// literals, distances and numbers are the entries of the three alphabets but for the bits of the codes; 0 is a symbol that may not
// come.
var literals, distances, numbers = func() (l [288]entry, d [32]entry, n [19]entry) {
	for i := range entry(endOfData) {
		l[i] = literal | i<<16
	}
	l[endOfData] = special
	for i, base := range lengthBase {
		l[endOfData+1+i] = entry(base)<<16 | entry(lengthBits[i])
	}
	for i, base := range distBase {
		d[i] = entry(base)<<16 | entry(distExtra[i])
	}
	for i := range entry(len(n)) {
		n[i] = literal | i<<16
	}
	return l, d, n
}()

// build makes the table, of a first level of so many bits, of the canonical code in which symbols have these lengths. A code that
// leaves bits over is allowed where it has one symbol of one bit or none, as a distance code may; one with too many is not.
func build(t []entry, first uint, lengths []uint8, alphabet []entry) error {
	var count [maxCode + 1]int
	for _, n := range lengths {
		count[n]++
	}
	var next [maxCode + 2]int // where the symbols of each length begin, sorted by it
	left := 1
	for n := 1; n <= maxCode; n++ {
		if left = left<<1 - count[n]; left < 0 {
			return errInflate
		}
		next[n+1] = next[n] + count[n]
	}
	used := next[maxCode+1]
	if left > 0 && (used > 1 || used > count[1]) {
		return errInflate
	}
	var sorted [288]uint16
	for symbol, n := range lengths {
		if n > 0 {
			sorted[next[n]] = uint16(symbol)
			next[n]++
		}
	}
	t[0] = 0
	symbols, code := sorted[:used], uint16(0)
	for n := uint(1); n <= first; n++ {
		copy(t[1<<(n-1):1<<n], t) // what is known of the next n-1 bits holds for both values of the one behind
		for _, symbol := range symbols[:count[n]] {
			t[bits.Reverse16(code)>>(16-n)] = coded(alphabet[symbol], n)
			code++
		}
		symbols = symbols[count[n]:]
		code <<= 1
	}
	secondLevel(t, first, code, symbols, &count, alphabet)
	return nil
}

// secondLevel enters the symbols whose codes are longer than the first level: sorted, the next code being of first+1 bits.
func secondLevel(t []entry, first uint, code uint16, symbols []uint16, count *[maxCode + 1]int, alphabet []entry) {
	end, base, prefix, deep := 1<<first, 0, -1, uint(0)
	for n := first + 1; len(symbols) > 0; n++ {
		for i, symbol := range symbols[:count[n]] {
			at := int(bits.Reverse16(code) >> (16 - n))
			code++
			if low := at & (1<<first - 1); low != prefix {
				deep = n - first
				for room := count[n] - i; room < 1<<deep; { // the code is complete: so many codes begin like this one
					deep++
					room = room<<1 + count[first+deep]
				}
				prefix, base, end = low, end, end+1<<deep
				t[low] = special | entry(base)<<16 | entry(deep)<<8
			}
			for k := at >> first; k < 1<<deep; k += 1 << (n - first) {
				t[base+k] = coded(alphabet[symbol], n)
			}
		}
		symbols = symbols[count[n]:]
		code <<= 1
	}
}

// coded is the entry of a symbol by a code of n bits.
func coded(symbol entry, n uint) entry {
	if symbol == 0 {
		return 0
	}
	return symbol + entry(n)<<8 + entry(n)
}
