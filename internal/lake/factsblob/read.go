package factsblob

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/avro"
	"github.com/skomerdb/skomer/internal/lake/manifest"
)

// Blob is the facts of one manifest, of which only the head was read. It is immutable.
type Blob struct {
	Origin
	what     string
	empty    manifest.Manifest // what the head says
	sections map[place]Section
	fields   []int
}

type place struct {
	kind  kind
	field int
}

// Open parses a head, whose checksum the caller has checked; what names it in faults.
func Open(what string, head []byte) (*Blob, error) {
	r := bytescan.NewReader(what, head)
	if len(head) > maxHead || string(r.Bytes(len(magic))) != magic {
		return nil, fault.New(fault.Corrupt, what, "no facts of a manifest")
	}
	if v := r.U8(); r.Err() == nil && v != version {
		return nil, fault.New(fault.Unsupported, what, "facts of format version %d, this build reads %d", v, version).WithFix("upgrade skomer")
	}
	r.Bytes(3)
	b := &Blob{what: what, sections: map[place]Section{}}
	b.Path, b.Length, b.Tag = r.String(maxText), int64(r.Uvarint()), r.String(maxText)
	m := &b.empty
	m.FormatVersion, m.SpecID = int(int32(r.Uvarint())), int(int32(varint(r)))
	if json := r.Blob(maxHead); len(json) > 0 {
		m.SpecJSON = append([]byte{}, json...)
	}
	bits := r.U8()
	m.Deletes, m.HasDeletes = bits&1 != 0, bits&2 != 0
	for range r.Count(maxFields, 6) {
		f := avro.Field{Name: r.String(maxText), ID: int(int32(varint(r)))}
		f.Schema = &avro.Schema{Kind: avro.Kind(r.U8()), Logical: r.String(maxText), Scale: r.Count(1<<20, 0), Size: r.Count(1<<20, 0)}
		if !plainSchema(f.Schema) {
			r.Fail("partition field %q of Avro type %d", f.Name, f.Schema.Kind)
		}
		m.Partition = append(m.Partition, f)
	}
	m.N = r.Count(MaxEntries, 0)
	m.Columns = map[int]*facts.Metrics{}
	for range r.Count(maxSections, 8) {
		s := Section{kind: kind(r.U8()), field: r.Count(1<<31-1, 0), Off: int64(r.Uvarint()), Len: int64(r.Uvarint()), CRC: r.U32()}
		if s.kind >= kinds || s.Off < 0 || s.Len < 0 || s.Off+s.Len < s.Off {
			r.Fail("section of kind %d at %d of %d bytes", s.kind, s.Off, s.Len)
		}
		b.sections[place{s.kind, s.field}] = s
		if s.kind == keys {
			b.fields = append(b.fields, s.field)
		}
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	for k := range keys {
		if _, ok := b.sections[place{kind: k}]; !ok {
			return nil, fault.New(fault.Corrupt, what, "no section of kind %d", k)
		}
	}
	for at := range b.sections {
		_, both := b.sections[place{keys + rest - at.kind, at.field}]
		if at.kind >= keys && !both {
			return nil, fault.New(fault.Corrupt, what, "half of the metrics of field %d", at.field)
		}
	}
	if int64(m.N) > b.sections[place{kind: paths}].Len/2 { // no two bytes a path
		return nil, fault.New(fault.Corrupt, what, "%d entries without paths", m.N)
	}
	return b, nil
}

// Sections lists all sections, in the order of their places in the pack.
func (b *Blob) Sections() []Section {
	return slices.SortedFunc(maps.Values(b.sections), func(x, y Section) int { return cmp.Compare(x.Off, y.Off) })
}

// Want is what is to be known of a manifest.
type Want struct {
	Parts  manifest.Parts
	Fields []int // whose metrics
	Whole  bool  // the whole metrics, not only keys
}

// Missing lists the sections that m, which came from this blob or is nil, lacks of what is wanted.
func (b *Blob) Missing(m *manifest.Manifest, want Want) (out []Section) {
	if m == nil {
		m = &manifest.Manifest{}
	}
	add := func(k kind, field int) {
		if s, ok := b.sections[place{k, field}]; ok {
			out = append(out, s)
		}
	}
	lacks := want.Parts &^ m.Parts
	if lacks&manifest.Tuples != 0 {
		add(tuples, 0)
	}
	if lacks&manifest.Base != 0 {
		add(base, 0)
	}
	if lacks&manifest.Names != 0 {
		add(paths, 0)
		add(referenced, 0)
	}
	fields, whole := want.Fields, want.Whole
	if lacks&manifest.AllColumns != 0 {
		fields, whole = b.fields, true
	}
	seen := map[int]bool{}
	for _, id := range fields {
		if c := m.Columns[id]; !seen[id] {
			seen[id] = true
			if c == nil {
				add(keys, id)
			}
			if whole && (c == nil || !c.Whole) {
				add(rest, id)
			}
		}
	}
	return out
}

// Fill is m, or nothing if it is nil, and what was wanted. data is the bytes of Missing's sections. m stays as it is; memory is
// shared with it and with data.
func (b *Blob) Fill(m *manifest.Manifest, want Want, sections []Section, data [][]byte) (*manifest.Manifest, error) {
	if m == nil {
		m = &b.empty
	}
	out := *m
	out.Columns = maps.Clone(m.Columns)
	for _, id := range want.Fields {
		if _, known := out.Columns[id]; !known {
			out.Columns[id] = nil
		}
	}
	for i, s := range sections {
		if err := bytescan.CheckCRC(b.what, data[i], s.CRC); err != nil {
			return nil, err
		}
		r := bytescan.NewReader(b.what, data[i])
		b.read(&out, s, r)
		if err := r.Done(); err != nil {
			return nil, err
		}
	}
	out.Parts |= want.Parts
	return &out, nil
}

func (b *Blob) read(m *manifest.Manifest, s Section, r *bytescan.Reader) {
	switch s.kind {
	case tuples:
		m.Tuple = readInts(r, m.N)
		b.readTuples(m, r)
		below(r, &m.Tuple, m.N, len(m.Tuples), "tuple")
	case base:
		for _, x := range baseInts(m.Ints()) {
			*x = readInts(r, m.N)
		}
		readEquality(m, r)
		below(r, &m.Equality, m.N, len(m.EqualityIDs), "list of equality ids")
		below(r, &m.Content, m.N, 3, "content")
		below(r, &m.Format, m.N, int(facts.Puffin)+1, "format")
		below(r, &m.Records, m.N, 1<<62, "record count")
		below(r, &m.Size, m.N, 1<<62, "size")
	case paths:
		m.Path = readStrings(b.what, r, m.N)
	case referenced:
		m.Referenced = readStrings(b.what, r, m.N)
	case keys:
		c := metricsOf(m, s.field)
		c.Keys = readKeys(r, m.N)
		m.Columns[s.field] = c
	case rest:
		c := metricsOf(m, s.field)
		c.Values, c.Nulls, c.NaNs = readInts(r, m.N), readInts(r, m.N), readInts(r, m.N)
		c.Lower, c.Upper = readBounds(r, m.N, c.Keys.Form), readBounds(r, m.N, c.Keys.Form)
		c.Whole = true
		m.Columns[s.field] = c
	}
}

// metricsOf is a copy of a column's metrics.
func metricsOf(m *manifest.Manifest, id int) *facts.Metrics {
	if c := m.Columns[id]; c != nil {
		out := *c
		return &out
	}
	return &facts.Metrics{}
}

func (b *Blob) readTuples(m *manifest.Manifest, r *bytescan.Reader) {
	m.Tuples = make([][]manifest.Raw, r.Count(maxTuples, 1))
	for i := range m.Tuples {
		if r.U8() == 0 || r.Err() != nil {
			continue
		}
		t := make([]manifest.Raw, len(m.Partition))
		for k := range t {
			bits := r.U8()
			t[k].Null = bits&1 != 0
			if bits&2 != 0 {
				t[k].Num = varint(r)
			}
			if bits&4 != 0 {
				t[k].Bytes = r.String(maxText)
			}
			if r.Err() != nil {
				return
			}
		}
		m.Tuples[i] = t
	}
}

func readEquality(m *manifest.Manifest, r *bytescan.Reader) {
	m.EqualityIDs = make([][]int, r.Count(maxTuples, 2))
	for i := range m.EqualityIDs {
		stated := r.U8() != 0
		ids := make([]int, r.Count(maxFields, 1))
		for k := range ids {
			ids[k] = int(varint(r))
		}
		if stated {
			m.EqualityIDs[i] = ids
		}
	}
}

func readKeys(r *bytescan.Reader, n int) (k facts.Keys) {
	k.Form = facts.Form(r.U8())
	if k.Form > facts.Prefix8 {
		r.Fail("keys of form %d", k.Form)
		return facts.Keys{}
	}
	bits := r.U8()
	k.Text, k.NaNs, k.AllNull = bits&keysText != 0, bits&keysNaNs != 0, bits&keysAllNull != 0
	if bits&keysSure != 0 {
		k.Sure = readSet(r, n)
	}
	w := k.Form.Width()
	k.Lower, k.Upper = r.Bytes(n*w), r.Bytes(n*w)
	if r.Err() != nil || w == 0 {
		k.Lower, k.Upper = nil, nil
	}
	return k
}

func readBounds(r *bytescan.Reader, n int, f facts.Form) (b facts.Bounds) {
	if r.U8() != 0 {
		b.Stated = readSet(r, n)
	}
	if f != facts.Prefix8 {
		return b
	}
	lengths := readInts(r, n)
	if r.Err() != nil {
		return b
	}
	off, end := make([]uint32, 1, n+1), int64(0)
	for i := range n {
		l := lengths.At(i)
		if l < 0 || l > int64(r.Left())-end {
			r.Fail("bound %d of %d bytes does not fit", i, l)
			return b
		}
		end += l
		off = append(off, uint32(end))
	}
	b.Off, b.Data = off, r.Bytes(int(end))
	return b
}

func readSet(r *bytescan.Reader, n int) facts.Bits {
	raw := r.Bytes(8 * words(n))
	if raw == nil {
		return facts.Bits{}
	}
	b := make(facts.Bits, words(n))
	for i := range b {
		b[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	return b
}

func readStrings(what string, r *bytescan.Reader, n int) facts.Strings {
	s, err := facts.OpenStrings(what, r.Bytes(r.Left()), n)
	if err != nil {
		r.Fail("%v", err)
	}
	return s
}

func readInts(r *bytescan.Reader, n int) facts.Ints {
	x := facts.Ints{Base: varint(r), Width: int(r.U8())}
	switch x.Width {
	case 0, 1, 2, 4, 8:
		x.Data = r.Bytes(n * x.Width)
	default:
		r.Fail("integers of %d bytes", x.Width)
	}
	if r.Err() != nil {
		return facts.Ints{}
	}
	return x
}

// below fails unless each of n integers is at least 0 and below limit.
func below(r *bytescan.Reader, x *facts.Ints, n, limit int, what string) {
	if r.Err() != nil || n == 0 {
		return
	}
	if x.Width == 0 {
		n = 1
	}
	for i := range n {
		if v := x.At(i); v < 0 || v >= int64(limit) {
			r.Fail("%s %d of entry %d, there are %d", what, v, i, limit)
			return
		}
	}
}

func varint(r *bytescan.Reader) int64 {
	u := r.Uvarint()
	return int64(u>>1) ^ -int64(u&1)
}
