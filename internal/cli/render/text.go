package render

import (
	"encoding/hex"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/skomerdb/skomer/internal/column"
)

// Layouts of ISO 8601 with as many digits as the type can hold, trailing zeros left out.
const (
	dateLayout   = "2006-01-02"
	timeLayout   = "15:04:05.999999"
	microsLayout = "2006-01-02T15:04:05.999999"
	nanosLayout  = "2006-01-02T15:04:05.999999999"
	zone         = "+00:00"
)

// Text is one primitive value as Iceberg's JSON serialisation spells it, without quotes.
func Text(v column.Value) string {
	switch v.Kind {
	case column.Bool:
		return strconv.FormatBool(v.Lo != 0)
	case column.Float:
		return strconv.FormatFloat(v.Float64(), 'g', -1, 32)
	case column.Double:
		return strconv.FormatFloat(v.Float64(), 'g', -1, 64)
	case column.Decimal:
		return decimalText(v)
	case column.Date:
		return time.Unix(v.Int64()*86_400, 0).UTC().Format(dateLayout)
	case column.Time:
		return time.UnixMicro(v.Int64()).UTC().Format(timeLayout)
	case column.Timestamp:
		return time.UnixMicro(v.Int64()).UTC().Format(microsLayout)
	case column.TimestampTZ:
		return time.UnixMicro(v.Int64()).UTC().Format(microsLayout) + zone
	case column.TimestampNS:
		return time.Unix(0, v.Int64()).UTC().Format(nanosLayout)
	case column.TimestampNZ:
		return time.Unix(0, v.Int64()).UTC().Format(nanosLayout) + zone
	case column.String:
		return v.S
	case column.UUID:
		if id, err := uuid.FromBytes([]byte(v.S)); err == nil {
			return id.String()
		}
		return hex.EncodeToString([]byte(v.S))
	case column.Fixed, column.Binary, column.Variant, column.Geometry, column.Geography:
		return hex.EncodeToString([]byte(v.S))
	default:
		return strconv.FormatInt(v.Int64(), 10)
	}
}

func decimalText(v column.Value) string {
	n := new(big.Int).Lsh(big.NewInt(v.Hi), 64)
	n.Or(n, new(big.Int).SetUint64(v.Lo))
	digits := new(big.Int).Abs(n).String()
	scale := int(v.Scale)
	if scale > 0 {
		if len(digits) <= scale {
			digits = strings.Repeat("0", scale-len(digits)+1) + digits
		}
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if n.Sign() < 0 {
		return "-" + digits
	}
	return digits
}
