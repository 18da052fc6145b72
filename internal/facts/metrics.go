package facts

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
