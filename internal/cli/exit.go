package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/skomerdb/skomer/internal/cli/render"
	"github.com/skomerdb/skomer/internal/fault"
)

// The exit codes. Scripts depend on them: never renumber.
const (
	exitOK          = 0
	exitNoMatch     = 1   // no row matched, with --exit-code only
	exitUsage       = 2   // bad flag, predicate or column
	exitNotFound    = 3   // table, snapshot, index or file
	exitDenied      = 4   // credentials are missing or insufficient
	exitRefused     = 5   // damaged or unsupported bytes, or a promise forbids it; also errors of no class
	exitConflict    = 6   // somebody else committed first
	exitLimit       = 7   // memory, requests, bytes or time
	exitUnhealthy   = 8   // verify found a difference, doctor found trouble, status --fail-on holds, a sweep compared nothing, or a server gave no answer
	exitInterrupted = 130 // as shells report SIGINT
)

var exitCodes = map[fault.Class]int{
	fault.Unclassified: exitRefused,
	fault.NotFound:     exitNotFound,
	fault.Denied:       exitDenied,
	fault.Stale:        exitRefused,
	fault.Corrupt:      exitRefused,
	fault.Unsupported:  exitRefused,
	fault.Conflict:     exitConflict,
	fault.Exhausted:    exitLimit,
	fault.Refused:      exitRefused,
	fault.Invalid:      exitUsage,
	fault.Unreachable:  exitUnhealthy,
}

// silent ends a command with a code when everything was already said.
type silent int

func (s silent) Error() string { return fmt.Sprintf("exit code %d", int(s)) }

func exitCode(err error) int {
	var quiet silent
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &quiet):
		return int(quiet)
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, context.DeadlineExceeded):
		return exitLimit
	default:
		return exitCodes[fault.ClassOf(err)]
	}
}

// failure is an error as JSON.
type failure struct {
	Code    int    `json:"code"` // the exit code
	Kind    string `json:"kind"` // the class: not found, invalid, …
	Subject string `json:"subject"`
	Reason  string `json:"reason"`
	Fix     string `json:"fix,omitempty"`
}

// describeError splits an error into its parts: the subject is that of the outermost fault, the reason is the rest.
func describeError(err error) failure {
	f := failure{Code: exitCode(err), Kind: fault.ClassOf(err).String(), Reason: err.Error(), Fix: fault.FixOf(err)}
	switch f.Code {
	case exitInterrupted:
		f.Kind, f.Reason = "interrupted", "interrupted"
		return f
	case exitLimit:
		if errors.Is(err, context.DeadlineExceeded) {
			f.Kind, f.Fix = fault.Exhausted.String(), "give a longer --timeout"
		}
	}
	var top *fault.Error
	if errors.As(err, &top) && top.Subject != "" && err.Error() == top.Error() {
		rest := *top
		rest.Subject = ""
		f.Subject, f.Reason = top.Subject, strings.TrimPrefix(rest.Error(), top.Subject+": ") // the cause may name it, too
	}
	return f
}

// printError writes an error for people, or as one JSON object where the output is JSON.
func printError(w io.Writer, err error, asJSON bool) {
	var quiet silent
	if errors.As(err, &quiet) {
		return
	}
	f := describeError(err)
	if asJSON {
		text, jsonErr := json.Marshal(f)
		if jsonErr == nil {
			fmt.Fprintln(w, string(text))
			return
		}
	}
	line := f.Reason
	if f.Subject != "" {
		line = f.Subject + ": " + line
	}
	fmt.Fprintln(w, "skomer:", render.PrintableLines(line))
	if f.Fix != "" {
		fmt.Fprintln(w, "  try:", render.Printable(f.Fix))
	}
}
