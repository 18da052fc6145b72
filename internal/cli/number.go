package cli

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer/internal/fault"
)

// whole is a whole number on the command line, no less than least.
type whole[T int | int64 | uint64] struct {
	at    *T
	least T
}

// wholeFlag adds a flag for a whole number.
func wholeFlag[T int | int64 | uint64](cmd *cobra.Command, at *T, name string, value, least T, usage string) {
	*at = value
	cmd.Flags().Var(&whole[T]{at, least}, name, usage)
}

func (w *whole[T]) String() string {
	if w.at == nil { // pflag asks an empty one
		return "0"
	}
	return strconv.FormatInt(int64(*w.at), 10)
}

// Set implements pflag.Value.
func (w *whole[T]) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || T(n) < w.least || w.least >= 0 && n < 0 {
		e := fault.New(fault.Invalid, text, "is no whole number")
		if w.least >= 0 {
			e.Reason += " of " + strconv.FormatInt(int64(w.least), 10) + " or more"
		}
		return e
	}
	*w.at = T(n)
	return nil
}

// Type implements pflag.Value.
func (*whole[T]) Type() string { return "int" }

// amount is a number on the command line, negative in no case.
type amount struct{ at *float64 }

func (a *amount) String() string {
	if a.at == nil {
		return "0"
	}
	return strconv.FormatFloat(*a.at, 'g', -1, 64)
}

// Set implements pflag.Value.
func (a *amount) Set(text string) error {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0) || math.IsInf(f, 0) {
		return fault.New(fault.Invalid, text, "is no number of 0 or more")
	}
	*a.at = f
	return nil
}

// Type implements pflag.Value.
func (*amount) Type() string { return "float" }

// percentage reads a share in percent above 0, with or without the sign.
func percentage(text string) (share float64, ok bool) {
	share, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	return share, err == nil && share > 0 && share <= 100
}

// retention is what a vacuum keeps: so many of the newest versions, or those that were the newest within a time.
type retention struct {
	count  int
	within age
	timed  bool
}

func (r *retention) String() string {
	if r.timed {
		return r.within.String()
	}
	return strconv.Itoa(r.count)
}

// Set implements pflag.Value.
func (r *retention) Set(text string) error {
	n, err := strconv.Atoi(text)
	switch {
	case err == nil && n >= 1:
		*r = retention{count: n}
		return nil
	case err == nil:
		return fault.New(fault.Invalid, text, "is less than 1: the newest version always stays").WithFix("write a number of versions, such as 10, or a time, such as 7d")
	}
	*r = retention{count: 1, timed: true}
	if err := r.within.Set(text); err != nil {
		return fault.New(fault.Invalid, text, "is neither a number of versions nor a length of time").WithFix("write 10, or 12h, or 7d")
	}
	return nil
}

// Type implements pflag.Value.
func (*retention) Type() string { return "count|duration" }

var flagNamed = regexp.MustCompile(`for "(?:-\w, )?(--[\w-]+)" flag: `)

// badFlag says what is wrong with a flag: by its own name where its value was not understood.
func badFlag(cmd *cobra.Command, err error) error {
	var inner *fault.Error
	name := flagNamed.FindStringSubmatch(err.Error())
	if name == nil || !errors.As(err, &inner) {
		return fault.New(fault.Invalid, subject(cmd), "%s", err).WithFix("%s --help", cmd.CommandPath())
	}
	e := fault.New(fault.Invalid, name[1], "%q %s", inner.Subject, inner.Reason).WithFix("%s --help", cmd.CommandPath())
	if inner.Fix != "" {
		e.Fix = inner.Fix
	}
	return e
}
