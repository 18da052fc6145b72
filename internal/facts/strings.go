package facts

import (
	"encoding/binary"
	"math"

	"github.com/skomerdb/skomer/internal/fault"
)

// A string of Strings begins anew, and is found without its elders, every restart strings.
const restart = 16

const maxString = 1 << 20 // bytes

// Strings is a column of strings, front-coded: each repeats only what differs from the one before.
//
// A column of nothing but empty strings takes no bytes at all.
//
//	string i = varint bytes shared with string i-1 (0 where i is a multiple of 16) | varint length of the rest | the rest
type Strings struct {
	Data   []byte
	starts []uint32 // where strings 0, 16, 32, … begin in Data
}

// StringsBuilder makes Strings. The zero value is ready.
type StringsBuilder struct {
	out  Strings
	n    int
	last []byte
	any  bool // some string is not empty
}

// Add appends a string.
func (b *StringsBuilder) Add(s []byte) {
	shared := 0
	if b.n%restart == 0 {
		b.out.starts = append(b.out.starts, uint32(len(b.out.Data)))
	} else {
		for shared < len(s) && shared < len(b.last) && s[shared] == b.last[shared] {
			shared++
		}
	}
	b.out.Data = binary.AppendUvarint(b.out.Data, uint64(shared))
	b.out.Data = binary.AppendUvarint(b.out.Data, uint64(len(s)-shared))
	b.out.Data = append(b.out.Data, s[shared:]...)
	b.last = append(b.last[:shared], s[shared:]...)
	b.any = b.any || len(s) > 0
	b.n++
}

// Strings is what was added.
func (b *StringsBuilder) Strings() Strings {
	if !b.any {
		return Strings{}
	}
	return b.out
}

// OpenStrings checks that data holds n strings; what names it in faults.
func OpenStrings(what string, data []byte, n int) (Strings, error) {
	if len(data) == 0 {
		return Strings{}, nil
	}
	s := Strings{Data: data, starts: make([]uint32, 0, min(n, len(data))/restart+1)}
	if len(data) > math.MaxUint32 || n > len(data)/2 {
		return Strings{}, fault.New(fault.Corrupt, what, "%d strings in %d bytes", n, len(data))
	}
	at, length := 0, uint64(0)
	for i := range n {
		if i%restart == 0 {
			s.starts, length = append(s.starts, uint32(at)), 0
		}
		shared, k := binary.Uvarint(data[at:])
		rest, m := binary.Uvarint(data[at+max(k, 0):])
		if k <= 0 || m <= 0 || shared > length || rest > maxString || shared+rest > maxString || rest > uint64(len(data)-at-k-m) {
			return Strings{}, fault.New(fault.Corrupt, what, "string %d of %d does not fit", i, n)
		}
		at, length = at+k+m+int(rest), shared+rest
	}
	if at != len(data) {
		return Strings{}, fault.New(fault.Corrupt, what, "%d bytes left over", len(data)-at)
	}
	return s, nil
}

// Append appends string i to dst.
func (s *Strings) Append(dst []byte, i int) []byte {
	if len(s.Data) == 0 {
		return dst
	}
	base, at := len(dst), int(s.starts[i/restart])
	for range i%restart + 1 {
		shared, k := binary.Uvarint(s.Data[at:])
		rest, m := binary.Uvarint(s.Data[at+k:])
		at += k + m
		dst = append(dst[:base+int(shared)], s.Data[at:at+int(rest)]...)
		at += int(rest)
	}
	return dst
}

// At is string i.
func (s *Strings) At(i int) string { return string(s.Append(nil, i)) }

// Bytes is the memory that the column holds.
func (s *Strings) Bytes() int { return len(s.Data) + 4*len(s.starts) }
