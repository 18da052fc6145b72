package sketch

import (
	"encoding/binary"
	"errors"
)

var errShort = errors.New("items run past the end")

// narrowSerde writes keys of 8 bytes.
type narrowSerde struct{}

func (narrowSerde) SizeOf(uint64) int { return 8 }

func (narrowSerde) SizeOfMany(mem []byte, at, n int) (int, error) {
	if at > len(mem) || n > (len(mem)-at)/8 {
		return 0, errShort
	}
	return n * 8, nil
}

func (s narrowSerde) SerializeOneToSlice(x uint64) []byte {
	return s.SerializeManyToSlice([]uint64{x})
}

func (narrowSerde) SerializeManyToSlice(items []uint64) []byte {
	out := make([]byte, 0, 8*len(items))
	for _, x := range items {
		out = binary.LittleEndian.AppendUint64(out, x)
	}
	return out
}

func (s narrowSerde) DeserializeManyFromSlice(mem []byte, at, n int) ([]uint64, error) {
	if _, err := s.SizeOfMany(mem, at, n); err != nil {
		return nil, err
	}
	out := make([]uint64, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(mem[at+8*i:])
	}
	return out, nil
}

// wideSerde writes keys as u32 length and bytes.
type wideSerde struct{}

func (wideSerde) SizeOf(s string) int { return 4 + len(s) }

func (wideSerde) SizeOfMany(mem []byte, at, n int) (int, error) {
	from := at
	for range n {
		if at > len(mem)-4 {
			return 0, errShort
		}
		size := binary.LittleEndian.Uint32(mem[at:])
		if size > keyBytes || int(size) > len(mem)-at-4 {
			return 0, errShort
		}
		at += 4 + int(size)
	}
	return at - from, nil
}

func (s wideSerde) SerializeOneToSlice(x string) []byte { return s.SerializeManyToSlice([]string{x}) }

func (wideSerde) SerializeManyToSlice(items []string) []byte {
	var out []byte
	for _, x := range items {
		out = append(binary.LittleEndian.AppendUint32(out, uint32(len(x))), x...)
	}
	return out
}

func (s wideSerde) DeserializeManyFromSlice(mem []byte, at, n int) ([]string, error) {
	if _, err := s.SizeOfMany(mem, at, n); err != nil {
		return nil, err
	}
	out := make([]string, n)
	for i := range out {
		size := int(binary.LittleEndian.Uint32(mem[at:]))
		out[i] = string(mem[at+4 : at+4+size])
		at += 4 + size
	}
	return out, nil
}
