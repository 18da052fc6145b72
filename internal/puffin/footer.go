package puffin

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/skomerdb/skomer/internal/fault"
)

// ParseFooter reads the footer at the end of tail, which holds the last bytes of an object of size bytes; name is the
// object's in errors. If tail is too short, need is the length of the suffix that is long enough and the rest is nil; a tail
// of less than 12 bytes does not tell yet how long the footer is, and the answer is what is needed to learn it.
// The magic at the start of the file is checked when tail reaches it.
func ParseFooter(name string, tail []byte, size int64) (f *Footer, need int64, err error) {
	n := int64(len(tail))
	switch {
	case size < minObject:
		return nil, 0, fault.New(fault.Corrupt, name, "%d bytes are too few for a Puffin file", size)
	case n > size:
		return nil, 0, fault.New(fault.Invalid, name, "%d bytes cannot be the end of an object of %d", n, size)
	case n < trailer:
		return nil, framing, nil
	}
	end := tail[n-trailer:]
	if string(end[8:]) != magic {
		return nil, 0, fault.New(fault.Corrupt, name, "does not end like a Puffin file: % x", end[8:])
	}
	flags := binary.LittleEndian.Uint32(end[4:])
	if flags&^compressed != 0 {
		return nil, 0, fault.New(fault.Unsupported, name, "footer flags %#08x of a newer Puffin version", flags)
	}
	length := int64(int32(binary.LittleEndian.Uint32(end)))
	switch {
	case length < 0 || length > size-minObject:
		return nil, 0, fault.New(fault.Corrupt, name, "footer of %d bytes in a file of %d", length, size)
	case length > MaxFooter:
		return nil, 0, fault.New(fault.Exhausted, name, "footer of %d bytes, the limit is %d", length, MaxFooter)
	case n < length+framing:
		return nil, length + framing, nil
	}
	start := size - length - framing
	if err := checkMagics(name, tail, size, start); err != nil {
		return nil, 0, err
	}
	payload := tail[n-trailer-length : n-trailer]
	if flags&compressed != 0 {
		if payload, err = inflateLZ4(name, payload, MaxFooter); err != nil {
			return nil, 0, err
		}
	}
	f, err = parsePayload(name, payload)
	if err == nil {
		f.Start = start
		err = checkRanges(name, f)
	}
	if err != nil {
		return nil, 0, err
	}
	return f, 0, nil
}

func checkMagics(name string, tail []byte, size, start int64) error {
	first := size - int64(len(tail)) // offset of tail[0]
	if string(tail[start-first:][:magicSize]) != magic {
		return fault.New(fault.Corrupt, name, "no magic at the start of the footer")
	}
	if first == 0 && string(tail[:magicSize]) != magic {
		return fault.New(fault.Corrupt, name, "no magic at the start of the file")
	}
	return nil
}

// checkRanges makes sure that every blob lies between magic and footer and shares no byte with another.
func checkRanges(name string, f *Footer) error {
	order := make([]int, len(f.Blobs))
	for i, b := range f.Blobs {
		if b.Offset < magicSize || b.Length < 0 || b.Offset > f.Start || b.Length > f.Start-b.Offset {
			return fault.New(fault.Corrupt, name, "blob %d lies outside: offset %d, length %d, footer at %d", i, b.Offset, b.Length, f.Start)
		}
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { // an empty blob before the one that begins where it lies
		x, y := f.Blobs[a], f.Blobs[b]
		return cmp.Or(cmp.Compare(x.Offset, y.Offset), cmp.Compare(x.Length, y.Length))
	})
	for k := 1; k < len(order); k++ {
		x, y := f.Blobs[order[k-1]], f.Blobs[order[k]]
		if x.Offset+x.Length > y.Offset {
			return fault.New(fault.Corrupt, name, "blobs %d and %d overlap", order[k-1], order[k])
		}
	}
	return nil
}
