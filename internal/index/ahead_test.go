package index

import (
	"bytes"
	"io"
	"testing"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
)

// countedBytes counts what is read.
type countedBytes struct {
	io.ReaderAt
	n int
}

func (c *countedBytes) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, off)
	c.n += n
	return n, err
}

// TestUnitsAreReadAheadOnce reads units of any size in their order, then in any: each is itself, and in order no byte is read twice.
func TestUnitsAreReadAheadOnce(t *testing.T) {
	r := seeded(t)
	for range 20 {
		body, units := []byte{}, []Unit(nil)
		for range 1 + r.IntN(60) {
			b := make([]byte, r.IntN([]int{10, 1000, aheadWindow, 3 * aheadWindow}[r.IntN(4)]))
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			units = append(units, Unit{Span: Span{Off: int64(len(body)), Len: int64(len(b))}, CRC: bytescan.CRC32C(b)})
			body = append(body, b...)
		}
		counted := &countedBytes{ReaderAt: bytes.NewReader(body)}
		a := NewAheadOf(&Source{Body: counted, Size: int64(len(body))}, []int64{aheadWindow, 0, 20 << 10}[r.IntN(3)])
		check := func(u Unit) {
			b, err := a.Unit("units", u)
			if err != nil || !bytes.Equal(b, body[u.Off:][:u.Len]) {
				t.Fatalf("%d bytes at %d of %d: %v", u.Len, u.Off, len(body), err)
			}
		}
		for _, u := range units {
			check(u)
		}
		if counted.n > len(body) {
			t.Errorf("%d bytes read of %d", counted.n, len(body))
		}
		for range 100 {
			if r.IntN(20) == 0 {
				a.Close()
			}
			u := units[r.IntN(len(units))]
			check(u)
			if u.CRC++; u.Len > 0 {
				if _, err := a.Unit("units", u); !fault.Is(err, fault.Corrupt) {
					t.Fatalf("%d bytes with another checksum: %v", u.Len, err)
				}
			}
		}
		if _, err := a.Unit("units", Unit{Span: Span{Off: int64(len(body)), Len: 1}}); !fault.Is(err, fault.Corrupt) {
			t.Errorf("a byte behind the last: %v", err)
		}
	}
}

// TestReadsAheadOutlastAFailure: what was at hand before a body that ends too early is still itself.
func TestReadsAheadOutlastAFailure(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), aheadWindow/16)
	a := NewAhead(&Source{Body: bytes.NewReader(body), Size: 2 * aheadWindow}) // half of it is missing
	first := Unit{Span: Span{Off: 16, Len: 32}, CRC: bytescan.CRC32C(body[16:48])}
	for range 3 {
		for _, u := range []Unit{{Span: Span{Len: aheadWindow + 1}}, {Span: Span{Off: aheadWindow - 8, Len: 16}}} {
			if _, err := a.Unit("units", u); !fault.Is(err, fault.Corrupt) {
				t.Fatalf("%v: %v", u.Span, err)
			}
		}
		a.from.Size = aheadWindow
		if b, err := a.Unit("units", first); err != nil || !bytes.Equal(b, body[16:48]) {
			t.Fatalf("%q, %v", b, err)
		}
		a.from.Size = 2 * aheadWindow
	}
}

// TestWindowsAreNoLargerThanTheirSources: of very many small artifacts a merge holds no more than their bytes.
func TestWindowsAreNoLargerThanTheirSources(t *testing.T) {
	body := make([]byte, 3*aheadWindow)
	for _, size := range []int64{1, 1000, aheadWindow / 2, aheadWindow/2 + 1, aheadWindow, 3 * aheadWindow} {
		a := NewAhead(&Source{Body: bytes.NewReader(body), Size: size})
		if _, err := a.Unit("units", Unit{Span: Span{Off: 0, Len: size}, CRC: bytescan.CRC32C(body[:size])}); err != nil {
			t.Fatal(err)
		}
		most := size
		if a.memory != nil {
			most = 2 * size
		}
		if held := int64(cap(a.window)); held > most || a.memory != nil && size > aheadWindow {
			t.Errorf("%d bytes held of %d", held, size)
		}
		a.Close()
	}
}

// TestWindowsThatWereGivenBackAreNotRead: what others do to the memory is not seen.
func TestWindowsThatWereGivenBackAreNotRead(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), aheadWindow/16)
	u := Unit{Span: Span{Off: 16, Len: 32}, CRC: bytescan.CRC32C(body[16:48])}
	a := NewAhead(&Source{Body: bytes.NewReader(body), Size: aheadWindow})
	for range 3 {
		if b, err := a.Unit("units", u); err != nil || !bytes.Equal(b, body[16:48]) {
			t.Fatalf("%q, %v", b, err)
		}
		a.Close()
		var others [8]*[aheadWindow]byte
		for i := range others {
			others[i] = aheadPool.Get().(*[aheadWindow]byte)
			clear(others[i][:])
		}
		for _, m := range others {
			aheadPool.Put(m)
		}
	}
}
