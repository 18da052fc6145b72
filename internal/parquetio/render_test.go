package parquetio_test

import (
	"fmt"
	"math/big"

	"github.com/skomerdb/skomer/internal/column"
)

// render is value i of a vector as plain Go: nil, bool, int64, float32, float64, *big.Int (unscaled decimal), string (all byte
// kinds), []any (lists), []pair (maps) and []any with a length of the fields (structs).
func render(v *column.Vector, i int) any {
	if v.Type.Kind == column.Unknown || v.Null(i) {
		return nil
	}
	if v.Dict != nil {
		return render(v.Dict, int(v.Idx[i]))
	}
	switch v.Type.Kind {
	case column.Struct:
		out := []any{}
		for _, k := range v.Kids {
			out = append(out, render(k, i))
		}
		return out
	case column.List:
		out := []any{}
		for j := v.Off[i]; j < v.Off[i+1]; j++ {
			out = append(out, render(v.Kids[0], int(j)))
		}
		return out
	case column.Map:
		out := []pair{}
		for j := v.Off[i]; j < v.Off[i+1]; j++ {
			out = append(out, pair{render(v.Kids[0], int(j)), render(v.Kids[1], int(j))})
		}
		return out
	}
	x, ok := v.Value(i)
	if !ok {
		return nil
	}
	return renderValue(x)
}

type pair struct{ key, value any }

func renderValue(x column.Value) any {
	switch x.Kind {
	case column.Bool:
		return x.Lo == 1
	case column.Float:
		return float32(x.Float64())
	case column.Double:
		return x.Float64()
	case column.Decimal:
		n := new(big.Int).Lsh(big.NewInt(x.Hi), 64)
		return n.Add(n, new(big.Int).SetUint64(x.Lo))
	case column.Int, column.Long, column.Date, column.Time, column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ:
		return x.Int64()
	default:
		return x.S
	}
}

// rowsOf renders the batch's rows, each with its position first.
func rowsOf(b *column.Batch) [][]any {
	out := make([][]any, b.Rows)
	for i := range out {
		out[i] = append(out[i], b.Position(i))
		for _, c := range b.Cols {
			out[i] = append(out[i], render(c, i))
		}
	}
	return out
}

// text makes rendered values comparable, NaNs included.
func text(row []any) string { return fmt.Sprintf("%#v", dereference(row)) }

func dereference(v any) any {
	switch x := v.(type) {
	case *big.Int:
		return "decimal " + x.String()
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = dereference(x[i])
		}
		return out
	case []pair:
		out := make([]pair, len(x))
		for i := range x {
			out[i] = pair{dereference(x[i].key), dereference(x[i].value)}
		}
		return out
	default:
		return v
	}
}

// valueOf is the inverse of renderValue.
func valueOf(t column.Type, v any) column.Value {
	switch x := v.(type) {
	case bool:
		return column.BoolValue(x)
	case float32:
		return column.FloatValue(x)
	case float64:
		return column.DoubleValue(x)
	case int64:
		return column.IntValue(t.Kind, x)
	case *big.Int:
		lo := new(big.Int).And(x, new(big.Int).SetUint64(^uint64(0)))
		hi := new(big.Int).Rsh(x, 64)
		return column.DecimalValue(hi.Int64(), lo.Uint64(), t.Scale)
	case string:
		return column.BytesValue(t.Kind, []byte(x))
	}
	panic(fmt.Sprintf("no value of %T", v))
}
