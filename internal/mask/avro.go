package mask

import (
	"context"
	"math/big"

	"github.com/google/uuid"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/avro"
	"github.com/skomerdb/skomer/internal/store"
)

// avroRows is what to read of an Avro delete file, and who takes it.
type avroRows struct {
	cols  []column.Path
	visit func(*column.Batch) error
}

// readAvro reads whole Avro delete files, in one wave for as many as memory holds.
func (w *work) readAvro(ctx context.Context, files []int32, want func(i int32) avroRows) error {
	d := &w.scope.snapshot.Deletes
	for len(files) > 0 {
		n, bytes := 0, int64(0)
		var reads []store.Read
		for n < len(files) && (n == 0 || bytes+d.Size[files[n]] <= w.memory()) {
			bytes += max(d.Size[files[n]], 0)
			reads = append(reads, store.Read{Key: d.Path[files[n]], Max: w.memory()})
			n++
		}
		for k, res := range w.Store.Fetch(ctx, reads) {
			if res.Err != nil {
				return fault.About(reads[k].Key, res.Err)
			}
			rows := want(files[k])
			if err := readAvroFile(reads[k].Key, res.Data[0], rows.cols, rows.visit); err != nil {
				return err
			}
		}
		files = files[n:]
	}
	return ctx.Err()
}

// avroReader turns the records of one file into batches.
type avroReader struct {
	name     string
	cols     []column.Path
	builders []*column.Builder
	set      []bool // of the record at hand
	rows     int
	base     uint32
}

func readAvroFile(name string, b []byte, cols []column.Path, visit func(*column.Batch) error) error {
	f, err := avro.Open(name, b)
	if err != nil {
		return err
	}
	if f.Schema.Kind != avro.Record {
		return fault.New(fault.Corrupt, name, "a delete file holds records")
	}
	for _, c := range cols {
		if !holds(f.Schema, c) && c.Leaf().Type.Kind != column.Unknown {
			return fault.New(fault.Corrupt, name, "is a delete file without the column %s (field id %d)", c.Name(), c.Leaf().ID)
		}
	}
	r := &avroReader{name: name, cols: cols, set: make([]bool, len(cols))}
	r.start()
	err = f.Each(func(c *avro.Cursor) error {
		clear(r.set)
		if err := r.record(c, f.Schema, 0, nil); err != nil {
			return err
		}
		for i, set := range r.set {
			if !set {
				r.builders[i].AppendNull()
			}
		}
		if r.rows++; r.rows < batchRows || c.Failed() {
			return nil
		}
		return r.flush(visit)
	})
	if err == nil {
		err = r.flush(visit)
	}
	return fault.About(name, err)
}

func (r *avroReader) start() {
	r.builders = r.builders[:0]
	for _, c := range r.cols {
		r.builders = append(r.builders, column.NewBuilder(c.Leaf().Type))
	}
	r.base += uint32(r.rows)
	r.rows = 0
}

func (r *avroReader) flush(visit func(*column.Batch) error) error {
	if r.rows == 0 {
		return nil
	}
	b := &column.Batch{Start: r.base, Rows: r.rows}
	for _, x := range r.builders {
		b.Cols = append(b.Cols, x.Finish())
	}
	err := visit(b)
	r.start()
	return err
}

// is reports whether an Avro field is a column: by field id, and by name in files without ids.
func is(f *avro.Field, c column.Field) bool { return f.ID == c.ID || f.ID < 0 && f.Name == c.Name }

func holds(s *avro.Schema, path column.Path) bool {
	for i := range s.Fields {
		if !is(&s.Fields[i], path[0]) {
			continue
		}
		inner := s.Fields[i].Schema.Value()
		return len(path) == 1 || inner.Kind == avro.Record && holds(inner, path[1:])
	}
	return false
}

// record reads the wanted columns of a record; within is the fields above it.
func (r *avroReader) record(c *avro.Cursor, s *avro.Schema, depth int, within column.Path) error {
	for i := range s.Fields {
		f := &s.Fields[i]
		at, leaf := r.wanted(f, depth, within)
		if at < 0 {
			c.Skip(f.Schema)
			continue
		}
		branch := c.Branch(f.Schema)
		switch {
		case branch == nil: // null
		case leaf:
			v, ok := avroValue(c, branch, r.cols[at].Leaf().Type)
			if !ok {
				return fault.New(fault.Unsupported, "column "+r.cols[at].Name(), "the file's Avro type cannot be read as the table's %s",
					r.cols[at].Leaf().Type)
			}
			r.builders[at].Append(v)
			r.set[at] = true
		case branch.Kind == avro.Record:
			if err := r.record(c, branch, depth+1, r.cols[at][:depth+1]); err != nil {
				return err
			}
		default:
			c.Skip(branch)
		}
		if c.Failed() {
			return nil // File.Each reports it
		}
	}
	return nil
}

// wanted is a column that a field is or leads to.
func (r *avroReader) wanted(f *avro.Field, depth int, within column.Path) (at int, leaf bool) {
	for i, path := range r.cols {
		if r.set[i] || len(path) <= depth || !is(f, path[depth]) || depth > 0 && path[depth-1].ID != within[depth-1].ID {
			continue
		}
		return i, len(path) == depth+1
	}
	return -1, false
}

// avroValue reads a value that was written as s, as type t.
func avroValue(c *avro.Cursor, s *avro.Schema, t column.Type) (column.Value, bool) {
	switch s.Kind {
	case avro.Bool:
		return column.BoolValue(c.Bool()), t.Kind == column.Bool
	case avro.Int, avro.Long:
		return avroInteger(c.Long(), s.Logical, t)
	case avro.Float:
		v := c.Float()
		if t.Kind == column.Double {
			return column.DoubleValue(float64(v)), true
		}
		return column.FloatValue(v), t.Kind == column.Float
	case avro.Double:
		return column.DoubleValue(c.Double()), t.Kind == column.Double
	case avro.String:
		return avroBytes(c.Bytes(), s, t)
	case avro.Bytes:
		return avroBytes(c.Bytes(), s, t)
	case avro.Fixed:
		return avroBytes(c.Fixed(s.Size), s, t)
	default:
		return column.Value{}, false
	}
}

func avroInteger(n int64, logical string, t column.Type) (column.Value, bool) {
	nanos := t.Kind == column.TimestampNS || t.Kind == column.TimestampNZ
	switch t.Kind {
	case column.Int, column.Long, column.Date:
		return column.IntValue(t.Kind, n), true
	case column.Time, column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ:
	default:
		return column.Value{}, false
	}
	switch logical {
	case "time-millis", "timestamp-millis", "local-timestamp-millis":
		n *= 1000
		if nanos {
			n *= 1000
		}
	case "timestamp-micros", "local-timestamp-micros":
		if nanos {
			n *= 1000
		}
	}
	return column.IntValue(t.Kind, n), true
}

func avroBytes(b []byte, s *avro.Schema, t column.Type) (column.Value, bool) {
	switch t.Kind {
	case column.String:
		return column.StringValue(string(b)), s.Kind == avro.String
	case column.UUID:
		if s.Kind == avro.String {
			u, err := uuid.ParseBytes(b)
			return column.BytesValue(t.Kind, u[:]), err == nil
		}
		return column.BytesValue(t.Kind, b), len(b) == t.Size()
	case column.Fixed:
		return column.BytesValue(t.Kind, b), len(b) == t.Size()
	case column.Binary:
		return column.BytesValue(t.Kind, b), s.Kind != avro.String
	case column.Decimal:
		return avroDecimal(b, s, t)
	default:
		return column.Value{}, false
	}
}

// avroDecimal reads a big-endian two's complement unscaled value.
func avroDecimal(b []byte, s *avro.Schema, t column.Type) (column.Value, bool) {
	if len(b) == 0 || s.Kind == avro.String || s.Scale != t.Scale {
		return column.Value{}, false
	}
	n := new(big.Int).SetBytes(b)
	if b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	if n.BitLen() > 127 {
		return column.Value{}, false
	}
	low := new(big.Int).And(n, new(big.Int).SetUint64(^uint64(0))).Uint64()
	return column.DecimalValue(new(big.Int).Rsh(n, 64).Int64(), low, t.Scale), true
}
