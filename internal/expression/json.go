package expression

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// step is a member of an object by name, or of an array by position.
type step struct {
	name  string
	array bool
	at    int
}

const (
	maxSteps = 32
	maxIndex = 1 << 30
)

func tooLong() error {
	return fault.New(fault.Invalid, "JSON path", "is longer than %d bytes or not UTF-8", MaxText)
}

// parsePath reads $, then any number of .name, ['name'] and [3].
func parsePath(path string) ([]step, error) {
	fail := func(reason string) ([]step, error) {
		return nil, fault.New(fault.Invalid, "JSON path "+path, "%s", reason).WithFix("write for example $.user.id, $.tags[0] or $['a b'].c")
	}
	rest, ok := strings.CutPrefix(path, "$")
	switch {
	case len(path) > MaxText || !utf8.ValidString(path):
		return nil, tooLong()
	case !ok:
		return fail("must start with $")
	}
	var out []step
	for rest != "" {
		var s step
		switch {
		case rest[0] == '.':
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			s.name, rest = rest[1:1+end], rest[1+end:]
			if s.name == "" || s.name == "*" {
				return fail("a name must follow the dot")
			}
		case strings.HasPrefix(rest, "['"):
			end := closing(rest[2:])
			if end < 0 {
				return fail("a bracket is not closed")
			}
			s.name, rest = strings.ReplaceAll(rest[2:2+end], "''", "'"), rest[2+end+2:]
		case rest[0] == '[':
			digits, after, found := strings.Cut(rest[1:], "]")
			n, err := strconv.Atoi(digits)
			if !found || err != nil || n < 0 || n > maxIndex || strings.HasPrefix(digits, "+") {
				return fail("a bracket holds a name in single quotes or a position from 0")
			}
			s, rest = step{array: true, at: n}, after
		default:
			return fail("a dot or a bracket must follow")
		}
		if out = append(out, s); len(out) > maxSteps {
			return fail("has more than " + strconv.Itoa(maxSteps) + " steps")
		}
	}
	return out, nil
}

// closing is where the quote and bracket stand that end a name; a quote inside is doubled.
func closing(s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] != '\'' {
			continue
		}
		if strings.HasPrefix(s[i+1:], "]") {
			return i
		}
		if !strings.HasPrefix(s[i+1:], "'") {
			return -1
		}
		i++
	}
	return -1
}

// formatPath writes a path in one form: dots where names allow it.
func formatPath(steps []step) string {
	var b strings.Builder
	b.WriteByte('$')
	for _, s := range steps {
		switch {
		case s.array:
			b.WriteString("[" + strconv.Itoa(s.at) + "]")
		case s.name == "" || s.name == "*" || strings.ContainsAny(s.name, ".['"):
			b.WriteString("['" + strings.ReplaceAll(s.name, "'", "''") + "']")
		default:
			b.WriteString("." + s.name)
		}
	}
	return b.String()
}

// atPath is the text at a path of every JSON text: of a string its content, of a number, true and false what is written, of an
// object or array its text as it stands. It is null where the text is null or no JSON (RFC 8259), and where the path leads nowhere or to
// null. Of repeated names the last one counts.
func atPath(base *column.Vector, path []step) *column.Vector {
	out := column.NewBuilder(column.Of(column.String))
	for i := range base.Len {
		if !base.Null(i) {
			if text, ok := find(base.Raw(i), path); ok {
				out.Append(column.StringValue(text))
				continue
			}
		}
		out.AppendNull()
	}
	return out.Finish()
}

func find(text []byte, path []step) (string, bool) {
	if !json.Valid(text) {
		return "", false
	}
	v := value(text)
	for _, s := range path {
		var ok bool
		if s.array {
			v, ok = v.element(s.at)
		} else {
			v, ok = v.member(s.name)
		}
		if !ok {
			return "", false
		}
	}
	switch v[0] {
	case 'n':
		return "", false
	case '"':
		return unquote(v), true
	default:
		return string(v), true
	}
}

// valid is the text of one JSON value, without space around it. Its functions trust that it is one.
type valid []byte

func value(text []byte) valid {
	text = text[space(text):]
	return valid(text[:length(text)])
}

func space(b []byte) int { return len(b) - len(bytes.TrimLeft(b, " \t\r\n")) }

// length is the bytes of the value that b starts with.
func length(b []byte) int {
	switch b[0] {
	case '"':
		for i := 1; ; i++ {
			switch b[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
	case '{', '[':
		depth := 0
		for i := 0; ; i++ {
			switch b[i] {
			case '"':
				i += length(b[i:]) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	default:
		if n := bytes.IndexAny(b, ",]} \t\r\n"); n >= 0 {
			return n
		}
		return len(b)
	}
}

// member is the last value of a name in an object.
func (v valid) member(name string) (out valid, ok bool) {
	if v[0] != '{' {
		return nil, false
	}
	for at := 1; ; {
		at += space(v[at:])
		if v[at] == '}' {
			return out, ok
		}
		key := v[at : at+length(v[at:])]
		at += len(key)
		at += space(v[at:]) + 1 // the colon
		at += space(v[at:])
		x := v[at : at+length(v[at:])]
		if string(key[1:len(key)-1]) == name || bytes.IndexByte(key, '\\') >= 0 && unquote(key) == name {
			out, ok = x, true
		}
		at += len(x)
		if at += space(v[at:]); v[at] == ',' {
			at++
		}
	}
}

// element is a value of an array by its position.
func (v valid) element(n int) (valid, bool) {
	if v[0] != '[' {
		return nil, false
	}
	for at := 1; ; n-- {
		at += space(v[at:])
		if v[at] == ']' {
			return nil, false
		}
		x := v[at : at+length(v[at:])]
		if n == 0 {
			return x, true
		}
		at += len(x)
		if at += space(v[at:]); v[at] == ',' {
			at++
		}
	}
}

// unquote is the content of a string. Halves of surrogate pairs become U+FFFD; bytes that are not UTF-8 do where the string has escapes.
func unquote(v valid) string {
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1])
	}
	var s string
	if err := json.Unmarshal(v, &s); err != nil { // it is valid
		return ""
	}
	return s
}
