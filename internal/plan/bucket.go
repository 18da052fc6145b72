package plan

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/twmb/murmur3"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
)

// hashes are the 32-bit Murmur3 hashes (x86, seed 0) that writers give a value (Iceberg spec, appendix B). Nanosecond
// timestamps hash as microseconds; before 1970 writers may have rounded either way, so that there are two.
func hashes(v column.Value) []uint32 {
	switch v.Kind {
	case column.Decimal:
		return []uint32{murmur3.Sum32(minimalBytes(v))}
	case column.String, column.UUID, column.Fixed, column.Binary:
		return []uint32{murmur3.Sum32([]byte(v.S))}
	case column.TimestampNS, column.TimestampNZ:
		zero, floor := v.Int64()/1000, v.Int64()/1000
		if v.Int64()%1000 < 0 {
			floor--
		}
		if zero != floor {
			return []uint32{hashLong(zero), hashLong(floor)}
		}
		return []uint32{hashLong(floor)}
	default:
		return []uint32{hashLong(v.Int64())}
	}
}

func hashLong(x int64) uint32 {
	return murmur3.Sum32(binary.LittleEndian.AppendUint64(nil, uint64(x)))
}

// buckets are the partition values, ascending, that rows equal to any of values can have.
func (t transform) buckets(values []column.Value) []int64 {
	var out []int64
	for _, v := range values {
		for _, h := range hashes(v) {
			out = append(out, int64(h&math.MaxInt32)%t.param)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hashStable reports whether the column kept, through all schemas, a type that hashes alike: int and long do, a date and
// the timestamp it was promoted to do not.
func hashStable(s *facts.Snapshot, id int, now column.Type) bool {
	for _, old := range s.Schemas {
		p := old.ByID(id)
		if p == nil {
			continue
		}
		was := p.Leaf().Type
		if was.Kind == now.Kind && was.Scale == now.Scale || isInteger(was.Kind) && isInteger(now.Kind) {
			continue
		}
		return false
	}
	return true
}

func isInteger(k column.Kind) bool { return k == column.Int || k == column.Long }
