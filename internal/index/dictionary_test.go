package index

import (
	"fmt"
	"testing"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
)

func TestKeysReadBack(t *testing.T) {
	e := Encoding{Kind: column.String}
	want := []string{"", "a", "ab", "abc", "abd", "b", "ba\xff", "c"}
	var w bytescan.Writer
	keys := NewKeyWriter(e)
	for _, k := range want {
		keys.Append(&w, k)
	}
	var got []string
	r := bytescan.NewReader("keys", w.Buf)
	ReadKeys(r, e, len(want), 14, func(_ int, key []byte) { got = append(got, string(key)) })
	if err := r.Done(); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, %v", got, err)
	}
	short := bytescan.NewReader("keys", w.Buf)
	if ReadKeys(short, e, len(want), 13, func(int, []byte) {}); short.Err() == nil {
		t.Error("keys of more bytes than the limit were read")
	}
}

func FuzzReadKeys(f *testing.F) {
	f.Add([]byte("\x00\x01a\x01\x01b"), uint8(14), uint8(2))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x01\x07\x01"), uint8(3), uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, kind, n uint8) {
		e := Encoding{Kind: column.Kind(kind)}
		if !keyed(e.Kind) || e.Kind == column.Fixed {
			return
		}
		last := ""
		ReadKeys(bytescan.NewReader("keys", b), e, int(n), 100, func(i int, key []byte) {
			if i > 0 && string(key) <= last || len(key) > 100 || e.Size() > 0 && len(key) != e.Size() {
				t.Errorf("key %d is %q after %q", i, key, last)
			}
			last = string(key)
		})
	})
}
