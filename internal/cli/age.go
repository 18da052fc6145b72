package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
)

// age is a duration on the command line: as Go writes them, or a number of days, such as 7d.
type age time.Duration

func (a *age) String() string {
	d := time.Duration(*a)
	if d == 0 {
		return "0" // which pflag knows to be nothing
	}
	if d > 0 && d%(24*time.Hour) == 0 {
		return strconv.FormatInt(int64(d/(24*time.Hour)), 10) + "d"
	}
	return d.String()
}

// Set implements pflag.Value.
func (a *age) Set(text string) error {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 32)
		if err == nil && n >= 0 && n < 1e5 {
			*a = age(time.Duration(n) * 24 * time.Hour)
			return nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return fault.New(fault.Invalid, text, "is no length of time").WithFix("write 90m, 12h or 7d")
	}
	*a = age(d)
	return nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *age) UnmarshalText(text []byte) error { return a.Set(string(text)) }

// Type implements pflag.Value.
func (*age) Type() string { return "duration" }
