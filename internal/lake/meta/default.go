package meta

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/skomerdb/skomer/internal/column"
)

var errNoValue = errors.New("no value of the type")

// ParseDefault reads a value in Iceberg's JSON single-value serialisation; nil for null or nothing. The default of a
// struct, {}, becomes a Value of kind Struct: the struct is present and its fields have their own defaults. Lists and maps
// have no other default than null.
func ParseDefault(t column.Type, b json.RawMessage) (*column.Value, error) {
	if b = bytes.TrimSpace(b); len(b) == 0 || bytes.Equal(b, []byte("null")) {
		return nil, nil
	}
	if t.Kind == column.Struct {
		return &column.Value{Kind: column.Struct}, nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var raw any
	if err := d.Decode(&raw); err != nil {
		return nil, err
	}
	var v column.Value
	var err error
	switch x := raw.(type) {
	case bool:
		v = column.BoolValue(x)
		if t.Kind != column.Bool {
			err = errNoValue
		}
	case json.Number:
		v, err = numberValue(t, x.String())
	case string:
		v, err = textValue(t, x)
	default:
		err = errNoValue
	}
	return &v, err
}

func numberValue(t column.Type, text string) (column.Value, error) {
	switch t.Kind {
	case column.Int:
		n, err := strconv.ParseInt(text, 10, 32)
		return column.IntValue(t.Kind, n), err
	case column.Long:
		n, err := strconv.ParseInt(text, 10, 64)
		return column.IntValue(t.Kind, n), err
	case column.Float:
		f, err := strconv.ParseFloat(text, 32)
		return column.FloatValue(float32(f)), err
	case column.Double:
		f, err := strconv.ParseFloat(text, 64)
		return column.DoubleValue(f), err
	case column.Decimal:
		return decimalValue(t, text)
	}
	return column.Value{}, errNoValue
}

func textValue(t column.Type, s string) (column.Value, error) {
	switch t.Kind {
	case column.String:
		return column.StringValue(s), nil
	case column.Float, column.Double:
		return numberValue(t, s) // NaN and the infinities, which JSON numbers cannot say
	case column.Decimal:
		return decimalValue(t, s)
	case column.Date:
		d, err := time.Parse(time.DateOnly, s)
		return column.IntValue(t.Kind, floorDiv(d.Unix(), 86400)), err
	case column.Time:
		d, err := time.Parse("15:04:05.999999999", s)
		if err != nil {
			d, err = time.Parse("15:04", s)
		}
		return column.IntValue(t.Kind, int64(d.Sub(d.Truncate(24*time.Hour))/time.Microsecond)), err
	case column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ:
		return timestampValue(t, s)
	case column.UUID:
		u, err := uuid.Parse(s)
		return column.BytesValue(t.Kind, u[:]), err
	case column.Fixed, column.Binary:
		b, err := hex.DecodeString(s)
		if err == nil && t.Kind == column.Fixed && len(b) != t.Width {
			err = errNoValue
		}
		return column.BytesValue(t.Kind, b), err
	}
	return column.Value{}, errNoValue
}

func timestampValue(t column.Type, s string) (column.Value, error) {
	var d time.Time
	var err error
	for _, layout := range []string{"2006-01-02T15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999", "2006-01-02T15:04Z07:00", "2006-01-02T15:04"} {
		if d, err = time.Parse(layout, s); err == nil {
			break
		}
	}
	if t.Kind == column.TimestampNS || t.Kind == column.TimestampNZ {
		return column.IntValue(t.Kind, d.UnixNano()), err
	}
	return column.IntValue(t.Kind, d.UnixMicro()), err
}

func decimalValue(t column.Type, s string) (column.Value, error) {
	if len(s) > 64 {
		return column.Value{}, errNoValue
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok || strings.ContainsAny(s, "/eEpPxX_") {
		return column.Value{}, errNoValue
	}
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Scale)), nil)))
	if !r.IsInt() || r.Num().BitLen() > 127 {
		return column.Value{}, errNoValue
	}
	return DecimalFromBig(r.Num(), t.Scale), nil
}

// DecimalFromBig makes a decimal value from its unscaled value, which must fit 128 bits.
func DecimalFromBig(n *big.Int, scale int) column.Value {
	low := new(big.Int).And(n, new(big.Int).SetUint64(math.MaxUint64))
	high := new(big.Int).Rsh(n, 64)
	return column.DecimalValue(high.Int64(), low.Uint64(), scale)
}

// DecimalToBig is the unscaled value of a decimal.
func DecimalToBig(v column.Value) *big.Int {
	n := new(big.Int).Lsh(big.NewInt(v.Hi), 64)
	return n.Or(n, new(big.Int).SetUint64(v.Lo))
}

// DefaultJSON is the inverse of ParseDefault, ready for json.Marshal.
func DefaultJSON(t column.Type, v column.Value) any {
	switch t.Kind {
	case column.Bool:
		return v.Lo != 0
	case column.Int, column.Long:
		return v.Int64()
	case column.Float, column.Double:
		f := v.Float64()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Sprint(f)
		}
		if t.Kind == column.Float {
			return float32(f)
		}
		return f
	case column.Decimal:
		return new(big.Rat).SetFrac(DecimalToBig(v), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Scale)), nil)).FloatString(t.Scale)
	case column.Date:
		return time.Unix(v.Int64()*86400, 0).UTC().Format(time.DateOnly)
	case column.Time:
		return time.UnixMicro(v.Int64()).UTC().Format("15:04:05.000000")
	case column.Timestamp:
		return time.UnixMicro(v.Int64()).UTC().Format("2006-01-02T15:04:05.000000")
	case column.TimestampTZ:
		return time.UnixMicro(v.Int64()).UTC().Format("2006-01-02T15:04:05.000000") + "+00:00"
	case column.TimestampNS:
		return time.Unix(0, v.Int64()).UTC().Format("2006-01-02T15:04:05.000000000")
	case column.TimestampNZ:
		return time.Unix(0, v.Int64()).UTC().Format("2006-01-02T15:04:05.000000000") + "+00:00"
	case column.UUID:
		u, _ := uuid.FromBytes([]byte(v.S))
		return u.String()
	case column.Fixed, column.Binary:
		return hex.EncodeToString([]byte(v.S))
	case column.Struct:
		return struct{}{}
	default:
		return v.S
	}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}
