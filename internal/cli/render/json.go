package render

import (
	"bufio"
	"encoding/json"
	"io"
	"math"
	"strconv"

	"github.com/skomerdb/skomer/internal/column"
)

// lines writes one JSON object a row.
type lines struct {
	w    *bufio.Writer
	keys [][]byte // `"name":`
	buf  []byte
}

func newLines(w io.Writer, fields []column.Field) *lines {
	out := &lines{w: bufio.NewWriter(w)}
	for _, f := range fields {
		out.keys = append(out.keys, append(appendString(nil, f.Name), ':'))
	}
	return out
}

func (l *lines) Write(b *column.Batch) error {
	for row := range b.Rows {
		l.buf = append(l.buf[:0], '{')
		for i, col := range b.Cols {
			if i > 0 {
				l.buf = append(l.buf, ',')
			}
			l.buf = append(l.buf, l.keys[i]...)
			l.buf = appendJSON(l.buf, col, row)
		}
		l.buf = append(l.buf, '}', '\n')
		if _, err := l.w.Write(l.buf); err != nil {
			return err
		}
	}
	return nil
}

func (l *lines) Close() error { return l.w.Flush() }

// appendJSON appends value i of a vector: numbers and booleans plain, lists as arrays, structs as objects, maps with text
// keys as objects and other maps as an array of {"key","value"}, everything else quoted. NaN and infinities are quoted.
func appendJSON(dst []byte, v *column.Vector, i int) []byte {
	if v.Type.Kind == column.Unknown || v.Null(i) {
		return append(dst, "null"...)
	}
	switch v.Type.Kind {
	case column.Struct:
		dst = append(dst, '{')
		for k, kid := range v.Kids {
			if k > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, v.Type.Fields[k].Name), ':')
			dst = appendJSON(dst, kid, i)
		}
		return append(dst, '}')
	case column.List:
		dst = append(dst, '[')
		for at := v.Off[i]; at < v.Off[i+1]; at++ {
			if at > v.Off[i] {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, v.Kids[0], int(at))
		}
		return append(dst, ']')
	case column.Map:
		return appendMap(dst, v, i)
	default:
		value, _ := v.Value(i)
		return appendPrimitive(dst, value)
	}
}

func appendMap(dst []byte, v *column.Vector, i int) []byte {
	keys, values := v.Kids[0], v.Kids[1]
	object := keys.Type.Kind == column.String
	opening, closing := byte('['), byte(']')
	if object {
		opening, closing = '{', '}'
	}
	dst = append(dst, opening)
	for at := int(v.Off[i]); at < int(v.Off[i+1]); at++ {
		if at > int(v.Off[i]) {
			dst = append(dst, ',')
		}
		if object {
			dst = appendJSON(dst, keys, at)
			dst = appendJSON(append(dst, ':'), values, at)
			continue
		}
		dst = appendJSON(append(dst, `{"key":`...), keys, at)
		dst = appendJSON(append(dst, `,"value":`...), values, at)
		dst = append(dst, '}')
	}
	return append(dst, closing)
}

func appendPrimitive(dst []byte, v column.Value) []byte {
	switch v.Kind {
	case column.Bool:
		return strconv.AppendBool(dst, v.Lo != 0)
	case column.Int, column.Long:
		return strconv.AppendInt(dst, v.Int64(), 10)
	case column.Float, column.Double:
		if f := v.Float64(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return append(dst, Text(v)...)
		}
	}
	return appendString(dst, Text(v))
}

// appendString appends a JSON string; bytes that are not UTF-8 become U+FFFD.
func appendString(dst []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil { // strings always marshal
		return append(dst, `""`...)
	}
	return append(dst, quoted...)
}
