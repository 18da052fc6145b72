package predicate

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/skomerdb/skomer/internal/column"
)

const (
	microsPerDay = 86_400_000_000
	nanosPerDay  = 1000 * microsPerDay
)

// instant is a parsed date, time or timestamp: a day from 1970-01-01 and nanoseconds of that day, both before the
// offset is taken off.
type instant struct {
	day     int64
	nanos   int64
	finer   bool  // there are non-zero digits after the nanoseconds
	zoned   bool  // an offset or Z stands behind the time
	offset  int64 // seconds east of UTC
	hasTime bool
}

// parseTimestamp reads an ISO 8601 date, alone or with a time after 'T' or one space, and an optional offset:
// 2026-01-02, 2026-01-02 03:04, 2026-01-02T03:04:05.123456Z, 2026-01-02 03:04:05+02:00. Years have four digits, or a
// sign and four to seven.
func parseTimestamp(text string) (in instant, ok bool) {
	text = strings.TrimSpace(text)
	at := strings.IndexAny(text, "Tt ")
	date, clock := text, ""
	if at >= 0 {
		date, clock = text[:at], text[at+1:]
	}
	in.day, ok = parseDate(date)
	if !ok || at < 0 {
		return in, ok
	}
	in.hasTime = true
	clock, in.offset, in.zoned, ok = cutOffset(clock)
	if !ok {
		return in, false
	}
	in.nanos, in.finer, ok = parseClock(clock)
	return in, ok
}

func parseDate(text string) (day int64, ok bool) {
	sign, body := int64(1), text
	if text != "" && (text[0] == '-' || text[0] == '+') {
		body = text[1:]
		if text[0] == '-' {
			sign = -1
		}
	}
	parts := strings.Split(body, "-")
	if len(parts) != 3 || len(parts[0]) < 4 || len(parts[0]) > 7 || len(parts[0]) > 4 && len(body) == len(text) {
		return 0, false
	}
	y, yok := digits(parts[0], len(parts[0]))
	m, mok := digits(parts[1], 2)
	d, dok := digits(parts[2], 2)
	y *= sign
	if !yok || !mok || !dok || m < 1 || m > 12 || d < 1 || d > daysIn(y, m) {
		return 0, false
	}
	return daysFromCivil(y, m, d), true
}

func parseClock(text string) (nanos int64, finer, ok bool) {
	whole, fraction, hasFraction := strings.Cut(text, ".")
	parts := strings.Split(whole, ":")
	if len(parts) < 2 || len(parts) > 3 || hasFraction && (len(parts) != 3 || !allDigits(fraction)) {
		return 0, false, false
	}
	limits := [3]int64{24, 60, 60}
	for i := range limits {
		var n int64
		if i < len(parts) {
			var ok bool
			if n, ok = digits(parts[i], 2); !ok || n >= limits[i] {
				return 0, false, false
			}
		}
		nanos = nanos*60 + n
	}
	if len(fraction) > 9 {
		finer = strings.Trim(fraction[9:], "0") != ""
		fraction = fraction[:9]
	}
	n, _ := digits((fraction + "000000000")[:9], 9)
	return nanos*1_000_000_000 + n, finer, true
}

// cutOffset takes Z, ±hh, ±hhmm or ±hh:mm off the end of a clock.
func cutOffset(text string) (clock string, seconds int64, zoned, ok bool) {
	if rest, found := strings.CutSuffix(strings.ToUpper(text), "Z"); found {
		return rest, 0, true, true
	}
	at := strings.LastIndexAny(text, "+-")
	if at < 0 {
		return text, 0, false, true
	}
	offset := text[at+1:]
	switch {
	case len(offset) == 2:
		offset += "00"
	case len(offset) == 5 && offset[2] == ':':
		offset = offset[:2] + offset[3:]
	}
	n, ok := digits(offset, 4)
	h, m := n/100, n%100
	if !ok || h > 18 || m > 59 {
		return "", 0, false, false
	}
	seconds = h*3600 + m*60
	if text[at] == '-' {
		seconds = -seconds
	}
	return strings.TrimRight(text[:at], " "), seconds, true, true
}

func digits(s string, n int) (int64, bool) {
	if len(s) != n || !allDigits(s) {
		return 0, false
	}
	v, err := strconv.ParseInt(s, 10, 64)
	return v, err == nil
}

func daysIn(y, m int64) int64 {
	switch {
	case m == 2 && (y%4 == 0 && y%100 != 0 || y%400 == 0):
		return 29
	case m == 2:
		return 28
	case m == 4 || m == 6 || m == 9 || m == 11:
		return 30
	default:
		return 31
	}
}

// daysFromCivil counts days from 1970-01-01 in the proleptic Gregorian calendar, by years that begin in March
// (H. Hinnant, "chrono-Compatible Low-Level Date Algorithms").
func daysFromCivil(y, m, d int64) int64 {
	if m <= 2 {
		y--
	}
	era := floorDiv(y, 400)
	yearOfEra := y - era*400
	dayOfYear := (153*((m+9)%12)+2)/5 + d - 1
	return era*146097 + yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear - 719468
}

// civilFromDays is the inverse of daysFromCivil.
func civilFromDays(days int64) (y, m, d int64) {
	days += 719468
	era := floorDiv(days, 146097)
	dayOfEra := days - era*146097
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36524 - dayOfEra/146096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	month := (5*dayOfYear + 2) / 153
	d = dayOfYear - (153*month+2)/5 + 1
	m = (month+2)%12 + 1
	y = yearOfEra + era*400
	if m <= 2 {
		y++
	}
	return y, m, d
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// in places the instant on a column's scale: days, microseconds or nanoseconds.
func (in instant) in(kind column.Kind) point {
	nanos := new(big.Int).Mul(big.NewInt(in.day), big.NewInt(nanosPerDay))
	nanos.Add(nanos, big.NewInt(in.nanos-in.offset*1_000_000_000))
	unit := int64(1000)
	switch kind {
	case column.Date:
		unit = nanosPerDay
	case column.TimestampNS, column.TimestampNZ:
		unit = 1
	}
	floor, rest := new(big.Int).DivMod(nanos, big.NewInt(unit), new(big.Int))
	return point{floor: floor, frac: rest.Sign() != 0 || in.finer}
}

// formatTemporal renders a value of a date, time or timestamp column so that parseTimestamp or parseClock reads it back.
func formatTemporal(v column.Value) string {
	perDay, digits := int64(microsPerDay), 6
	switch v.Kind {
	case column.Date:
		return formatDay(v.Int64())
	case column.Time:
		return formatClock(v.Int64(), digits)
	case column.TimestampNS, column.TimestampNZ:
		perDay, digits = nanosPerDay, 9
	}
	day := floorDiv(v.Int64(), perDay)
	text := formatDay(day) + " " + formatClock(v.Int64()-day*perDay, digits)
	if zonedKind(v.Kind) {
		text += "+00:00"
	}
	return text
}

func formatDay(days int64) string {
	y, m, d := civilFromDays(days)
	switch {
	case y < 0:
		return fmt.Sprintf("-%04d-%02d-%02d", -y, m, d)
	case y > 9999:
		return fmt.Sprintf("+%04d-%02d-%02d", y, m, d)
	default:
		return fmt.Sprintf("%04d-%02d-%02d", y, m, d)
	}
}

// formatClock renders a count of 10^-digits seconds; it drops a fraction of zero.
func formatClock(n int64, digits int) string {
	perSecond := int64(1_000_000)
	if digits == 9 {
		perSecond = 1_000_000_000
	}
	s, fraction := n/perSecond, n%perSecond
	text := fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
	if fraction != 0 {
		text += strings.TrimRight(fmt.Sprintf(".%0*d", digits, fraction), "0")
	}
	return text
}

func zonedKind(k column.Kind) bool { return k == column.TimestampTZ || k == column.TimestampNZ }
