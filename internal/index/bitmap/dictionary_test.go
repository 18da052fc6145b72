package bitmap

import (
	"bytes"
	"testing"

	"github.com/skomerdb/skomer/internal/index/indextest"
)

// TestKeysAreComparedAsBytes: with the same first bytes or without, and where one ends with the zeros that the other lacks.
func TestKeysAreComparedAsBytes(t *testing.T) {
	r := indextest.Rand(t)
	for range 2000 {
		var d [2]dictionary
		for i := range d {
			key := make([]byte, r.IntN(11))
			for k := range key {
				key[k] = []byte{0, 0, 1, 255}[r.IntN(4)]
			}
			d[i].keys, d[i].ends = append([]byte("before"), key...), []int{6, 6 + len(key)}
			if d[i].turnTo(1); !bytes.Equal(d[i].key, key) {
				t.Fatalf("key %x, want %x", d[i].key, key)
			}
		}
		if got, want := d[0].compare(&d[1]), bytes.Compare(d[0].key, d[1].key); got != want {
			t.Fatalf("%x and %x compare as %d, want %d", d[0].key, d[1].key, got, want)
		}
	}
}
