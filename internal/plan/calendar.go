package plan

import "github.com/skomerdb/skomer/internal/column"

const secondsPerHour, secondsPerDay = 3600, 86_400

// period is the values whose year, month, day or hour since 1970 is p, counted by floor.
//
// Java writers up to 0.10 rounded dates and timestamps before 1970 towards zero instead, so that all but exact multiples
// landed one period too high (apache/iceberg#2024 and the ProjectionUtil fix): a period at or before 0 may also hold the
// values of the one before it. Days of a date need no rounding.
func (t transform) period(p int64) (in span) {
	first := p
	if p <= 0 && !(t.kind == day && t.of.Kind == column.Date) {
		first--
	}
	in.lo, in.hasLo = t.start(first)
	in.hi, in.hasHi = t.start(p + 1)
	in.hi-- // no start is the least integer: scaled reports the overflow
	return in
}

// start is the first value of period p; ok is false when the column's type does not reach there.
func (t transform) start(p int64) (int64, bool) {
	if t.kind == hour {
		return scaled(p, secondsPerHour*t.unit())
	}
	days := p
	switch t.kind {
	case year:
		days = daysToMonth(p * 12)
	case month:
		days = daysToMonth(p)
	}
	if t.of.Kind == column.Date {
		return days, true
	}
	return scaled(days, secondsPerDay*t.unit())
}

// daysToMonth is the days from 1970-01-01 to the first of a month, counted in months from 1970-01, in the proleptic
// Gregorian calendar. The year is taken to begin in March, so that the leap day ends it (Howard Hinnant, "chrono-Compatible
// Low-Level Date Algorithms", days_from_civil).
func daysToMonth(months int64) int64 {
	const perEra = 400 * 12 // months; 146,097 days
	m := months + 1970*12 - 2
	era := m / perEra
	if m%perEra < 0 {
		era--
	}
	m -= era * perEra
	y := m / 12
	dayOfYear := (153*(m%12) + 2) / 5
	return era*146_097 + y*365 + y/4 - y/100 + dayOfYear - 719_468
}
