package tabletest

import (
	"context"
	"fmt"
	"math/bits"
	"testing"
	"time"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
)

// repartition makes a new spec of up to two fields over top-level columns the default.
func (e *Evolving) repartition(t testing.TB) {
	e.specs++
	spec := &facts.Spec{ID: e.specs}
	for _, f := range e.schema.Fields[1:] {
		if len(spec.Fields) == 2 || e.rng.IntN(3) > 0 || e.nameless[f.ID] || e.unnamed[f.ID] != nil {
			continue
		}
		able := transforms(f.Type.Kind)
		if len(able) == 0 {
			continue
		}
		p := facts.PartitionField{ID: 1000 + 10*e.specs + len(spec.Fields), SourceID: f.ID, Transform: able[e.rng.IntN(len(able))]}
		p.Name = fmt.Sprintf("p%d", p.ID)
		spec.Fields = append(spec.Fields, p)
	}
	e.spec = spec
	e.did("partition by %v", spec.Fields)
	e.must(t, e.Writer.SetSpec(context.Background(), spec))
}

func transforms(k column.Kind) []string {
	switch k {
	case column.Int, column.Long:
		return []string{"identity", "identity", "bucket[5]", "truncate[7]", "void"}
	case column.Bool:
		return []string{"identity"}
	case column.String, column.Binary:
		return []string{"identity", "bucket[5]", "truncate[2]"}
	case column.UUID, column.Fixed:
		return []string{"identity", "bucket[5]"}
	case column.Decimal, column.Time:
		return []string{"identity"}
	case column.Date:
		return []string{"identity", "bucket[5]", "year", "month", "day"}
	case column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ:
		return []string{"identity", "bucket[5]", "year", "month", "day", "hour"}
	default:
		return nil
	}
}

// place changes the file's rows so that they lie in one partition of the present spec, and gives its tuple.
func (e *Evolving) place(f *writtenFile, leaves []Leaf) []facts.PartitionValue {
	tuple := []facts.PartitionValue{}
	for _, p := range e.spec.Fields {
		at := -1
		for i, l := range leaves {
			if l.Path.Leaf().ID == p.SourceID {
				at = i
			}
		}
		field := leaves[at].Path.Leaf()
		base := Domain{Type: field.Type, Low: e.rng.Int64N(40) - 20, N: 20}.Draw(e.rng)
		null := !field.Required && e.rng.IntN(6) == 0
		value := facts.PartitionValue{Null: null || p.Transform == "void"}
		if !value.Null {
			value.Value = transformed(p.Transform, base)
		}
		tuple = append(tuple, value)
		if p.Transform == "void" {
			continue
		}
		if p.Transform == "identity" {
			f.partition[p.SourceID] = nil
			if !null {
				f.partition[p.SourceID] = &base
			}
		}
		for _, row := range f.rows {
			row[at] = Cell{Null: null}
			if !null {
				row[at].Val = e.neighbour(p.Transform, base)
			}
		}
	}
	return tuple
}

// neighbour is a value of the partition that v lies in.
func (e *Evolving) neighbour(transform string, v column.Value) column.Value {
	var out column.Value
	n := e.rng.Int64N(1000)
	switch v.Kind {
	case column.String, column.Binary:
		out = column.BytesValue(v.Kind, []byte(v.S+"xy"[:n%3]))
	case column.Date:
		out = column.IntValue(v.Kind, v.Int64()+n%9-4)
	case column.TimestampNS, column.TimestampNZ:
		out = column.IntValue(v.Kind, v.Int64()+(n-500)*3_600_000_000)
	case column.Timestamp, column.TimestampTZ:
		out = column.IntValue(v.Kind, v.Int64()+(n-500)*3_600_000)
	case column.Int, column.Long:
		out = column.IntValue(v.Kind, v.Int64()+n%9-4)
	default:
		return v
	}
	if transformed(transform, out) != transformed(transform, v) {
		return v
	}
	return out
}

// transformed is the partition value of a value (table specification, "Partition Transforms"), written from the specification
// alone.
func transformed(transform string, v column.Value) column.Value {
	switch transform {
	case "identity":
		return v
	case "bucket[5]":
		return column.IntValue(column.Int, int64(murmur3(hashed(v))&0x7fffffff)%5)
	case "truncate[7]":
		n := v.Int64()
		return column.IntValue(v.Kind, n-((n%7)+7)%7)
	case "truncate[2]":
		if v.Kind == column.Binary {
			return column.BytesValue(v.Kind, []byte(v.S[:min(2, len(v.S))]))
		}
		r := []rune(v.S)
		return column.StringValue(string(r[:min(2, len(r))]))
	case "void":
		return column.Value{}
	}
	at := instant(v)
	switch transform {
	case "year":
		return column.IntValue(column.Int, int64(at.Year()-1970))
	case "month":
		return column.IntValue(column.Int, int64(at.Year()-1970)*12+int64(at.Month())-1)
	case "day":
		return column.IntValue(column.Date, floor(at.Unix(), 86400))
	default:
		return column.IntValue(column.Int, floor(at.Unix(), 3600))
	}
}

func instant(v column.Value) time.Time {
	switch n := v.Int64(); v.Kind {
	case column.Date:
		return time.Unix(n*86400, 0).UTC()
	case column.TimestampNS, column.TimestampNZ:
		return time.Unix(0, n).UTC()
	default:
		return time.UnixMicro(n).UTC()
	}
}

func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// hashed is the bytes that bucket hashes (appendix B): numbers as little-endian longs, nanoseconds as microseconds.
func hashed(v column.Value) []byte {
	switch v.Kind {
	case column.String, column.Binary, column.UUID, column.Fixed:
		return []byte(v.S)
	}
	n := v.Int64()
	if v.Kind == column.TimestampNS || v.Kind == column.TimestampNZ {
		n = floor(n, 1000)
	}
	var b []byte
	for range 8 {
		b = append(b, byte(n))
		n >>= 8
	}
	return b
}

// murmur3 is MurmurHash3 x86 32-bit with seed 0 (Appleby, 2008).
func murmur3(b []byte) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	var h uint32
	size := uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
		h ^= bits.RotateLeft32(k*c1, 15) * c2
		h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
	}
	var k uint32
	for i := len(b) - 1; i >= 0; i-- {
		k = k<<8 | uint32(b[i])
	}
	h ^= bits.RotateLeft32(k*c1, 15) * c2
	h ^= size
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}
