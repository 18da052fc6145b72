package render

import (
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Printable is text as a terminal may get it, on one line: control characters (C0, DEL and C1 of ISO 6429) and bytes that are not UTF-8,
// which some terminals take for C1, are written as \x1b. Everything else stays.
func Printable(s string) string { return escaped(s, "") }

// PrintableLines is Printable of a text whose lines and tabs stay.
func PrintableLines(s string) string { return escaped(s, "\n\t") }

func escaped(s, but string) string {
	const digits = "0123456789abcdef"
	var out strings.Builder
	from := 0
	for at := 0; at < len(s); {
		r, n := utf8.DecodeRuneInString(s[at:])
		if !control(r) && (r != utf8.RuneError || n > 1) || strings.ContainsRune(but, r) && n == 1 && r < utf8.RuneSelf {
			at += n
			continue
		}
		b := s[at+n-1] // the last byte of a C1 character is its code
		out.WriteString(s[from:at])
		out.WriteString(`\x`)
		out.WriteByte(digits[b>>4])
		out.WriteByte(digits[b&15])
		at += n
		from = at
	}
	if from == 0 {
		return s
	}
	out.WriteString(s[from:])
	return out.String()
}

func control(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

// Plural is the word for n things: file for one, files for none and for many.
func Plural[T ~int | ~int64 | ~uint64](n T, one string) string {
	if n == 1 {
		return one
	}
	return one + "s"
}

// PrintableArgs makes texts and errors among the arguments of a format Printable.
func PrintableArgs(args []any) []any {
	out := make([]any, len(args))
	for i, x := range args {
		out[i] = x
		if err, ok := x.(error); ok {
			out[i] = Printable(err.Error())
		} else if v := reflect.ValueOf(x); v.Kind() == reflect.String {
			out[i] = Printable(v.String())
		}
	}
	return out
}

// printed is a table whose cells are Printable.
type printed struct{ table.Writer }

func (p printed) AppendHeader(row table.Row, config ...table.RowConfig) {
	p.Writer.AppendHeader(PrintableArgs(row), config...)
}

func (p printed) AppendRow(row table.Row, config ...table.RowConfig) {
	p.Writer.AppendRow(PrintableArgs(row), config...)
}

func (p printed) AppendRows(rows []table.Row, config ...table.RowConfig) {
	for _, row := range rows {
		p.AppendRow(row, config...)
	}
}
