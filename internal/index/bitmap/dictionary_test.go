package bitmap

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
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

// TestPagesOutOfOrderFail: pages whose checksums are right, in another order than their keys or one of them twice, are no dictionary.
func TestPagesOutOfOrderFail(t *testing.T) {
	r := indextest.Rand(t)
	typ := column.Of(column.String)
	c := indextest.Column{Type: typ, Values: make([]*column.Value, 100)}
	for i := range c.Values {
		v := column.StringValue(fmt.Sprintf("%03d", i))
		c.Values[i] = &v
	}
	spec := indextest.SpecOf(r, typ, len(c.Values))
	a := indextest.Build(t, r, Kind{sizes{inline: 1, page: 200}}, &c, spec, index.Budget{})
	source := indextest.SourceOf(&a, spec.Rows)
	walk := func(damage func(pages []page)) (keys int, err error) {
		d, err := openDictionary(a.Root, spec.Rows)
		if err != nil {
			return 0, err
		}
		d.from = &source
		damage(d.pages)
		x := merger{values: []*dictionary{d}}
		defer x.close()
		err = x.eachKey(func([]byte, []held) error { keys++; return nil })
		return keys, err
	}
	if keys, err := walk(func(pages []page) {
		if len(pages) < 4 {
			t.Fatalf("%d pages", len(pages))
		}
	}); err != nil || keys != len(c.Values) {
		t.Fatalf("%d keys of %d: %v", keys, len(c.Values), err)
	}
	for what, damage := range map[string]func(p []page){
		"swapped": func(p []page) { p[1], p[2] = p[2], p[1] },
		"last to": func(p []page) { p[len(p)-1] = p[0] },
		"twice":   func(p []page) { p[2] = p[1] },
	} {
		if _, err := walk(damage); !fault.Is(err, fault.Corrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestKeysThatMeetAtPagesAscend: a page that begins with the last key of the one before would name its rows twice.
func TestKeysThatMeetAtPagesAscend(t *testing.T) {
	r := indextest.Rand(t)
	typ := column.Of(column.String)
	v := column.StringValue("the only one of its page, longer than a page is")
	c := indextest.Column{Type: typ, Values: []*column.Value{&v, nil}}
	a := indextest.Build(t, r, Kind{sizes{inline: 1, page: 1}}, &c, indextest.SpecOf(r, typ, 2), index.Budget{})
	source := indextest.SourceOf(&a, 2)
	d, err := openDictionary(a.Root, 2)
	if err != nil || len(d.pages) != 1 {
		t.Fatal(err)
	}
	d.from, d.pages = &source, append(d.pages, d.pages[0])
	if ok, err := d.start(); !ok || err != nil {
		t.Fatal(err)
	}
	if _, err := d.next(); !fault.Is(err, fault.Corrupt) {
		t.Errorf("the same key twice: %v", err)
	}
}
