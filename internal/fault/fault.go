// Package fault answers one question about any error: what kind of trouble is it, and what can be done about it?
//
// There are few classes on purpose. The layer that knows the cause picks the class once; every layer above only asks
// for it (ClassOf, Is) to decide between retry, "maybe", refusal and exit code. fault knows nothing of what failed.
package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Class is the kind of trouble.
type Class uint8

// The classes. Their numeric values are not stored anywhere.
const (
	Unclassified Class = iota
	NotFound           // the named thing does not exist
	Denied             // credentials are missing, expired or insufficient
	Stale              // the thing changed since it was described (failed If-Match, other identity)
	Corrupt            // bytes that break their format or checksum
	Unsupported        // valid, but a form this build does not read
	Conflict           // somebody else committed first
	Exhausted          // a stated limit of memory, requests, bytes or time was reached
	Refused            // Skomer will not do it: a promise or the upstream's rules forbid it
	Invalid            // input that cannot mean anything: bad predicate, unknown column, bad flag
	Unreachable        // a server gave no answer: it is down, or the network is
)

var classNames = [...]string{"error", "not found", "denied", "stale", "corrupt", "unsupported", "conflict", "exhausted", "refused", "invalid", "unreachable"}

// String names the class as users see it.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return classNames[0]
}

// Error is an error that names the thing, the reason and the way out.
type Error struct {
	Class   Class
	Subject string // the file, table, column, index or argument
	Reason  string // one clause, lower case, no full stop
	Fix     string // what the user can do; may be empty
	Retry   bool   // the same call may succeed later (throttling, broken connection)
	Cause   error  // may be nil
}

// New builds an Error whose reason is formatted like fmt.Sprintf.
func New(c Class, subject, reason string, args ...any) *Error {
	if len(args) > 0 {
		reason = fmt.Sprintf(reason, args...)
	}
	return &Error{Class: c, Subject: subject, Reason: reason}
}

// Wrap classifies cause and names its subject. A nil cause gives nil.
func Wrap(c Class, subject string, cause error) error {
	if cause == nil {
		return nil
	}
	return &Error{Class: c, Subject: subject, Cause: cause}
}

// About adds a subject to an error without changing its class. A nil error stays nil.
func About(subject string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Class: ClassOf(err), Subject: subject, Fix: FixOf(err), Retry: Retryable(err), Cause: err}
}

// WithFix states the way out and returns e.
func (e *Error) WithFix(fix string, args ...any) *Error {
	if len(args) > 0 {
		fix = fmt.Sprintf(fix, args...)
	}
	e.Fix = fix
	return e
}

// WithCause attaches the underlying error and returns e.
func (e *Error) WithCause(err error) *Error {
	e.Cause = err
	return e
}

// WithRetry marks the error as passing and returns e.
func (e *Error) WithRetry() *Error {
	e.Retry = true
	return e
}

// Error renders "subject: reason: cause". The fix is left to the edge that talks to the user.
func (e *Error) Error() string {
	var parts []string
	if e.Subject != "" {
		parts = append(parts, e.Subject)
	}
	if e.Reason != "" {
		parts = append(parts, e.Reason)
	}
	if e.Cause != nil {
		cause := e.Cause.Error()
		if e.Reason == "" && strings.HasPrefix(cause, e.Subject+": ") { // it names the subject already
			return cause
		}
		parts = append(parts, cause)
	}
	if len(parts) == 0 {
		return e.Class.String()
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// ClassOf returns the class of the outermost classified error in the chain.
func ClassOf(err error) Class {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return Unclassified
		}
		if e.Class != Unclassified {
			return e.Class
		}
		err = e.Cause
	}
	return Unclassified
}

// Is reports whether err is of class c.
func Is(err error, c Class) bool { return ClassOf(err) == c }

// Retryable reports whether any error in the chain is marked as passing.
func Retryable(err error) bool {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return false
		}
		if e.Retry {
			return true
		}
		err = e.Cause
	}
	return false
}

// FixOf returns the first stated way out in the chain, or "".
func FixOf(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Fix != "" {
			return e.Fix
		}
		err = e.Cause
	}
	return ""
}
