package facts

import (
	"bytes"
	"unicode/utf8"
)

// Bits is a set of rows, bit i%64 of word i/64 for row i. Nil stands for all rows.
type Bits []uint64

// Has reports whether row i is in the set.
func (b Bits) Has(i int) bool { return b == nil || b[i/64]>>(i%64)&1 != 0 }

// Form is how the bounds of a column are laid out for comparing.
type Form uint8

// The forms. Bounds of one width are stored as they are; of others the first bytes are enough to tell most files apart.
const (
	NoKeys  Form = iota // nothing is stated that could be compared
	Raw4                // every bound has 4 bytes
	Raw8                // every bound has 8 bytes
	Prefix8             // the first 8 bytes, filled up with zeros, as a big-endian integer
)

// Width is the bytes of one key.
func (f Form) Width() int { return [...]int{0, 4, 8, 8}[f] }

// Keys is what comparing a literal with the bounds of many files reads: two fixed-width values a file.
type Keys struct {
	Form         Form
	Lower, Upper []byte
	// Sure holds the files whose two keys may be believed: both bounds are stated and not crossed, and as text they are
	// cut at a character and not empty. Of the others nothing is known here.
	Sure Bits
	// Text tells that Raw keys, read as text, keep to what Sure demands of text.
	Text bool
	// NaNs tells that some file counts NaNs.
	NaNs bool
	// AllNull tells that some file counts nulls and nothing else.
	AllNull bool
}

// Metrics is what a manifest states of one schema field of its files.
type Metrics struct {
	Keys Keys
	// Whole tells that the rest is there, not only Keys.
	Whole               bool
	Values, Nulls, NaNs Ints
	Lower, Upper        Bounds
}

// Bounds is bounds as stated. Those of one width are in Keys.
type Bounds struct {
	Stated Bits
	Off    []uint32 // n+1 offsets into Data; nil: bound i is key i
	Data   []byte
}

// LowerAt is the lower bound of file i, nil if none is stated. The memory is shared.
func (m *Metrics) LowerAt(i int) []byte { return m.Lower.at(i, m.Keys.Lower, m.Keys.Form) }

// UpperAt is the upper bound of file i, nil if none is stated. The memory is shared.
func (m *Metrics) UpperAt(i int) []byte { return m.Upper.at(i, m.Keys.Upper, m.Keys.Form) }

func (b *Bounds) at(i int, keys []byte, f Form) []byte {
	switch w := f.Width(); {
	case !b.Stated.Has(i):
		return nil
	case b.Off != nil && b.Off[i] == b.Off[i+1]:
		return []byte{}
	case b.Off != nil:
		return b.Data[b.Off[i]:b.Off[i+1]:b.Off[i+1]]
	case w == 0:
		return nil
	default:
		return keys[i*w : (i+1)*w : (i+1)*w]
	}
}

// Bytes is the memory that the metrics hold.
func (m *Metrics) Bytes() int {
	n := len(m.Keys.Lower) + len(m.Keys.Upper) + 8*len(m.Keys.Sure) + len(m.Values.Data) + len(m.Nulls.Data) + len(m.NaNs.Data)
	for _, b := range []*Bounds{&m.Lower, &m.Upper} {
		n += 8*len(b.Stated) + 4*len(b.Off) + len(b.Data)
	}
	return n
}

// PackMetrics packs what is stated of a column, one element a file: counts, Unknown where none is stated, and bounds, nil where
// none is.
func PackMetrics(values, nulls, nans []int64, lower, upper func(i int) []byte) *Metrics {
	n := len(values)
	m := &Metrics{Whole: true, Values: PackInts(values), Nulls: PackInts(nulls), NaNs: PackInts(nans)}
	for i, x := range nans {
		m.Keys.NaNs = m.Keys.NaNs || x > 0
		m.Keys.AllNull = m.Keys.AllNull || nulls[i] >= 0 && nulls[i] == values[i]
	}
	m.Keys.Form = formOf(n, lower, upper)
	w := m.Keys.Form.Width()
	if w == 0 {
		return m
	}
	m.Keys.Lower, m.Keys.Upper, m.Keys.Text = make([]byte, n*w), make([]byte, n*w), true
	m.Lower, m.Upper = packBounds(n, m.Keys.Form, lower), packBounds(n, m.Keys.Form, upper)
	m.Keys.Sure = bitsOf(n, func(i int) bool {
		l, u := lower(i), upper(i)
		copy(m.Keys.Lower[i*w:(i+1)*w], l)
		copy(m.Keys.Upper[i*w:(i+1)*w], u)
		plain := plainText(l, u)
		m.Keys.Text = m.Keys.Text && plain
		return l != nil && u != nil && (plain || m.Keys.Form != Prefix8)
	})
	return m
}

// formOf is how bounds are laid out.
func formOf(n int, bounds ...func(i int) []byte) Form {
	width := -1
	for i := range n {
		for _, of := range bounds {
			switch b := of(i); {
			case b == nil || len(b) == width:
			case width < 0 && (len(b) == 4 || len(b) == 8):
				width = len(b)
			default:
				return Prefix8
			}
		}
	}
	switch width {
	case 4:
		return Raw4
	case 8:
		return Raw8
	default:
		return NoKeys
	}
}

// packBounds is bounds without those that keys hold.
func packBounds(n int, f Form, of func(i int) []byte) Bounds {
	b := Bounds{Stated: bitsOf(n, func(i int) bool { return of(i) != nil })}
	if f != Prefix8 {
		return b
	}
	b.Off = make([]uint32, 1, n+1)
	for i := range n {
		b.Data = append(b.Data, of(i)...)
		b.Off = append(b.Off, uint32(len(b.Data)))
	}
	return b
}

// plainText reports whether bounds of text are what they seem: not crossed, not empty above, and not cut inside a character,
// which writers do, leaving half of it or U+FFFD in its place.
func plainText(lower, upper []byte) bool {
	return len(upper) > 0 && lower != nil && utf8.Valid(upper) && bytes.Compare(lower, upper) <= 0 &&
		!bytes.HasSuffix(lower, []byte("\uFFFD")) && !bytes.HasSuffix(upper, []byte("\uFFFD"))
}

// bitsOf is the rows of n that has says, nil if it is all of them. It asks in order, once a row.
func bitsOf(n int, has func(i int) bool) Bits {
	b, all := make(Bits, (n+63)/64), true
	for i := range n {
		if has(i) {
			b[i/64] |= 1 << (i % 64)
		} else {
			all = false
		}
	}
	if all {
		return nil
	}
	return b
}
