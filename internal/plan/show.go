package plan

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/column"
)

// shown is the most bytes of a value that a reason repeats.
const shown = 40

// Show is a value for people, long ones cut.
func Show(v column.Value) string { return show(v) }

// show is Show for this package.
func show(v column.Value) string {
	switch v.Kind {
	case column.Bool:
		return strconv.FormatBool(v.Lo != 0)
	case column.Float:
		return strconv.FormatFloat(v.Float64(), 'g', -1, 32)
	case column.Double:
		return strconv.FormatFloat(v.Float64(), 'g', -1, 64)
	case column.Decimal:
		return showDecimal(v)
	case column.Date:
		return time.Unix(v.Int64()*secondsPerDay, 0).UTC().Format("2006-01-02")
	case column.Time:
		return time.UnixMicro(v.Int64()).UTC().Format("15:04:05.999999")
	case column.Timestamp, column.TimestampTZ:
		return time.UnixMicro(v.Int64()).UTC().Format("2006-01-02T15:04:05.999999")
	case column.TimestampNS, column.TimestampNZ:
		return time.Unix(0, v.Int64()).UTC().Format("2006-01-02T15:04:05.999999999")
	case column.String:
		return strconv.Quote(cutText(v.S))
	case column.UUID:
		if h := hex.EncodeToString([]byte(v.S)); len(h) == 32 {
			return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
		}
		fallthrough
	case column.Fixed, column.Binary:
		return "X'" + hex.EncodeToString([]byte(v.S[:min(len(v.S), shown)])) + "'"
	default:
		return strconv.FormatInt(v.Int64(), 10)
	}
}

// cutText is the head of a long text: no character is cut in two.
func cutText(s string) string {
	n := shown
	for n < len(s) && n > shown-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	if n >= len(s) {
		return s
	}
	return s[:n] + "…"
}

func showDecimal(v column.Value) string {
	x := new(big.Int).Lsh(big.NewInt(v.Hi), 64)
	x.Add(x, new(big.Int).SetUint64(v.Lo))
	digits := new(big.Int).Abs(x).String()
	if n := int(v.Scale); n > 0 {
		digits = strings.Repeat("0", max(0, n+1-len(digits))) + digits
		digits = digits[:len(digits)-n] + "." + digits[len(digits)-n:]
	}
	if x.Sign() < 0 {
		return "-" + digits
	}
	return digits
}

// show is a partition value as Iceberg paths write it: 2024, 2024-01, 2024-01-31, 2024-01-31-23.
func (t transform) show(p column.Value) string {
	if p.Kind != column.Int {
		return show(p)
	}
	n := p.Int64()
	switch t.kind {
	case year:
		return strconv.FormatInt(1970+n, 10)
	case month:
		return time.Date(1970, time.January+time.Month(n), 1, 0, 0, 0, 0, time.UTC).Format("2006-01")
	case day:
		return time.Unix(n*secondsPerDay, 0).UTC().Format("2006-01-02")
	case hour:
		return time.Unix(n*secondsPerHour, 0).UTC().Format("2006-01-02-15")
	case bucket:
		return fmt.Sprintf("bucket %d of %d", n, t.param)
	default:
		return show(p)
	}
}
