package avrorows

import (
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/avro"
)

// sink gathers the values of one field.
type sink struct {
	field column.Field
	find  resolver
	flat  *column.Builder // of a primitive; the rest is for nested types
	n     int
	nulls int
	valid []uint64
	off   []uint32
	kids  []*sink
	// fields tells, for a record schema met before, which kid each of its fields goes to; -1: none.
	fields map[*avro.Schema][]int
}

func newSink(f column.Field, find resolver) *sink {
	s := &sink{field: f, find: find}
	if !f.Type.Kind.Nested() {
		s.flat = column.NewBuilder(f.Type)
		return s
	}
	if f.Type.Kind != column.Struct {
		s.off = []uint32{0}
	}
	for _, k := range f.Type.Fields {
		inner := find
		if f.ID != 0 {
			inner = find.inside(f)
		}
		s.kids = append(s.kids, newSink(k, inner))
	}
	return s
}

// slot adds a value of a nested type.
func (s *sink) slot(there bool) {
	if s.n&63 == 0 {
		s.valid = append(s.valid, 0)
	}
	if there {
		s.valid[s.n>>6] |= 1 << (s.n & 63)
	} else {
		s.nulls++
	}
	s.n++
}

// null adds a null; what is inside of a struct is null with it.
func (s *sink) null() {
	switch {
	case s.flat != nil:
		s.flat.AppendNull()
		return
	case s.off != nil:
		s.off = append(s.off, s.off[len(s.off)-1])
	default:
		for _, k := range s.kids {
			k.null()
		}
	}
	s.slot(false)
}

// lack adds what a row has of a field that the file lacks.
func (s *sink) lack() {
	switch {
	case s.field.Initial == nil || s.off != nil:
		s.null()
	case s.flat != nil && s.field.Type.Kind != column.Unknown:
		s.flat.Append(*s.field.Initial)
	case s.flat != nil:
		s.flat.AppendNull()
	default:
		for _, k := range s.kids {
			k.lack()
		}
		s.slot(true)
	}
}

func (s *sink) mismatch(have *avro.Schema) error {
	return fault.New(fault.Unsupported, "column "+s.field.Name, "the file's Avro %s cannot be read as the table's %s", have.Kind, s.field.Type)
}

// read adds the value at the cursor, which was written as have.
func (s *sink) read(c *avro.Cursor, have *avro.Schema) error {
	branch := c.Branch(have)
	if branch == nil {
		s.null()
		return nil
	}
	switch k := s.field.Type.Kind; {
	case k == column.Unknown:
		c.Skip(branch)
		s.null()
		return nil
	case k == column.Struct && branch.Kind == avro.Record:
		return s.record(c, branch)
	case k == column.List && branch.Kind == avro.Array:
		return s.items(c, func() error { return s.kids[0].read(c, branch.Items) })
	case k == column.Map && branch.Kind == avro.Array && branch.Items.Kind == avro.Record && len(branch.Items.Fields) == 2:
		pair := branch.Items.Fields
		return s.items(c, func() error {
			if err := s.kids[0].read(c, pair[0].Schema); err != nil {
				return err
			}
			return s.kids[1].read(c, pair[1].Schema)
		})
	case k == column.Map && branch.Kind == avro.Map && s.kids[0].field.Type.Kind == column.String:
		return s.items(c, func() error {
			s.kids[0].flat.Append(column.StringValue(c.String()))
			return s.kids[1].read(c, branch.Items)
		})
	case k == column.Variant && branch.Kind == avro.Record:
		s.flat.Append(variant(c, branch))
		return nil
	case k.Nested():
		return s.mismatch(branch)
	}
	v, ok := value(c, branch, s.field.Type)
	if !ok {
		return s.mismatch(branch)
	}
	s.flat.Append(v)
	return nil
}

// items adds a list or map.
func (s *sink) items(c *avro.Cursor, item func() error) error {
	var failed error
	n := s.off[len(s.off)-1]
	c.Blocks(func() {
		if failed == nil {
			failed = item()
			n++
		}
		if failed != nil {
			c.Fail("an item cannot be read")
		}
	})
	s.off = append(s.off, n)
	s.slot(true)
	return failed
}

// record adds a struct.
func (s *sink) record(c *avro.Cursor, have *avro.Schema) error {
	goes, ok := s.fields[have]
	if !ok {
		goes = s.match(have)
	}
	seen := 0
	for i := range have.Fields {
		if goes[i] < 0 {
			c.Skip(have.Fields[i].Schema)
			continue
		}
		seen++
		if err := s.kids[goes[i]].read(c, have.Fields[i].Schema); err != nil {
			return err
		}
	}
	if seen < len(s.kids) {
		for k := range s.kids {
			if !contains(goes, k) {
				s.kids[k].lack()
			}
		}
	}
	s.slot(true)
	return nil
}

// match finds the kid of each field of a record, each kid once.
func (s *sink) match(have *avro.Schema) []int {
	goes := make([]int, len(have.Fields))
	find := s.find
	if s.field.ID != 0 {
		find = find.inside(s.field)
	}
	for i := range have.Fields {
		goes[i] = -1
		for k := range s.kids {
			if find.is(&have.Fields[i], s.kids[k].field) && !contains(goes[:i], k) {
				goes[i] = k
				break
			}
		}
	}
	if s.fields == nil {
		s.fields = map[*avro.Schema][]int{}
	}
	s.fields[have] = goes
	return goes
}

func contains(list []int, x int) bool {
	for _, y := range list {
		if x == y {
			return true
		}
	}
	return false
}

// vector is what was gathered.
func (s *sink) vector() *column.Vector {
	if s.flat != nil {
		return s.flat.Finish()
	}
	v := &column.Vector{Type: s.field.Type, Len: s.n, Off: s.off}
	if s.nulls > 0 {
		v.Valid = s.valid
	}
	for _, k := range s.kids {
		v.Kids = append(v.Kids, k.vector())
	}
	return v
}
