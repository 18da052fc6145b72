package sketch

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
)

func samples(t testing.TB) map[string]struct {
	it.Artifact
	rows uint32
} {
	r := rand.New(rand.NewPCG(1, 1))
	out := map[string]struct {
		it.Artifact
		rows uint32
	}{}
	for what, n := range map[string]int{"none": 0, "one": 1, "few": 20, "many": 9000} {
		for _, typ := range []column.Type{column.Of(column.Long), column.Of(column.String)} {
			values := make([]any, n)
			for i := range values {
				values[i] = any(i)
				if typ.Kind == column.String {
					values[i] = fmt.Sprint("value ", i)
				}
			}
			c := it.Of(typ, values...)
			_, a := of(t, r, &c, index.Params{paramK: "512"})
			out[what+" "+typ.String()] = struct {
				it.Artifact
				rows uint32
			}{a, uint32(n)}
		}
	}
	return out
}

// TestDamageIsRefused: roots and units that were cut or changed are refused; what passes its checksum and was changed by somebody who
// wrote a new one may be anything, but neither panics nor takes more than it states.
func TestDamageIsRefused(t *testing.T) {
	for what, a := range samples(t) {
		for n := range a.Root {
			if _, err := (Kind{}).Open(a.Root[:n:n], a.rows); !fault.Is(err, fault.Corrupt) {
				t.Fatalf("%s: root cut to %d: %v", what, n, err)
			}
		}
		if _, err := (Kind{}).Open(a.Root, a.rows+1); !fault.Is(err, fault.Corrupt) {
			t.Errorf("%s: %v", what, err)
		}
		future := bytes.Clone(a.Root)
		future[0] = 99
		if _, err := (Kind{}).Open(future, a.rows); !fault.Is(err, fault.Unsupported) {
			t.Errorf("%s: version 99: %v", what, err)
		}
		r, err := Kind{}.Open(a.Root, a.rows)
		if err != nil {
			t.Fatal(err)
		}
		x := r.(*Reader)
		for i, u := range x.units {
			unit := a.Body[u.Off : u.Off+u.Len]
			damage(t, what, x, i, unit)
		}
	}
}

// damage cuts and flips one unit: through Feed, which checks sums, and past it.
func damage(t *testing.T, what string, x *Reader, i int, unit []byte) {
	t.Helper()
	parse := func(b []byte) (err error) {
		switch i {
		case 0:
			_, err = parseTheta(b, x.lgK, x.Values)
		case 1:
			_, err = parseHLL(b, x.Values)
		default:
			var q quantiles
			if q, err = parseQuantiles(x.enc, b, x.Values); err == nil {
				err = guarded("quantiles", func() error { _, err := q.at([]float64{0, 0.5, 1}); return err })
			}
		}
		return err
	}
	if err := parse(unit); err != nil {
		t.Fatalf("%s: unit %d: %v", what, i, err)
	}
	step := max(1, len(unit)/200)
	for n := 0; n < len(unit); n += step {
		if err := parse(unit[:n:n]); !fault.Is(err, fault.Corrupt) {
			t.Errorf("%s: unit %d cut to %d of %d: %v", what, i, n, len(unit), err)
		}
	}
	for bit := 0; bit < 8*len(unit); bit += max(1, len(unit)/300) {
		flipped := bytes.Clone(unit)
		flipped[bit/8] ^= 1 << (bit % 8)
		if err := parse(flipped); err != nil && !fault.Is(err, fault.Corrupt) {
			t.Errorf("%s: unit %d, bit %d: %v", what, i, bit, err)
		}
		data := [][]byte{nil, nil, nil}
		data[i] = flipped
		if err := x.Load().Feed(data); err == nil {
			t.Errorf("%s: unit %d, bit %d is believed", what, i, bit)
		}
	}
}

// TestMemoryOfHostileHeads: a few bytes that state the largest counts take no more than the format page says.
func TestMemoryOfHostileHeads(t *testing.T) {
	head := func(b ...byte) []byte { return b }
	it.Allocates(t, 1, func() {
		for _, b := range [][]byte{
			append(head(3, 3, 3, 0, 0, 0x1a, 0xcc, 0x93), 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0),
			head(2, 3, 3, 0, 0, 0, 0, 0, 0xff, 0xff, 1, 0, 0, 0, 0, 0),
		} {
			if _, err := parseTheta(b, maxLgK, 1<<40); !fault.Is(err, fault.Corrupt) {
				t.Error(err)
			}
		}
		for _, b := range [][]byte{head(10, 1, 7, 12, 12, 0, 0, 10), head(3, 1, 7, 12, 12, 0, 0, 9, 0xff, 0xff, 0, 0), head(3, 1, 7, 21, 26, 0, 0, 9)} {
			if _, err := parseHLL(b, 1<<40); !fault.Is(err, fault.Corrupt) {
				t.Error(err)
			}
		}
		kll := head(5, 1, 15, 0, 200, 0, 8, 0)
		kll = binary.LittleEndian.AppendUint64(kll, 1<<40)
		kll = append(kll, 200, 0, 255, 0)
		if _, err := parseQuantiles(index.Encoding{Kind: column.Long}, kll, 1<<40); !fault.Is(err, fault.Corrupt) {
			t.Error(err)
		}
	})
}

func TestGolden(t *testing.T) {
	c := it.Of(column.Of(column.Double), 1.0, nil, 2.5, math.NaN(), 1.0)
	_, a := of(t, rand.New(rand.NewPCG(1, 1)), &c, index.Params{paramK: "512"})
	it.Golden(t, "double.v1", `
double [1.0 null 2.5 NaN 1.0], k=512
root: 01 version, 05 00 00 double, 00 a value a row, 09 lg k, uv body bytes, 5 rows, 3 values, 1 null, 1 NaN, 0 empty, 3 units
body: compact theta of 2 hashes, HLL_8 list of 2 coupons, KLL of 3 keys`, a)
}

// TestTheCapacityOfLevelsIsTheLibrarys holds capacity against the sketches that the library makes.
func TestTheCapacityOfLevelsIsTheLibrarys(t *testing.T) {
	q := newQuantiles(index.Encoding{Kind: column.Long}).(*keys[uint64])
	next := 1
	for n := 1; n < 1<<18; n++ {
		q.kll.Update(uint64(n))
		if n == next {
			b, err := q.bytes()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parseQuantiles(q.enc, b, int64(n)); err != nil {
				t.Fatalf("%d values: %v", n, err)
			}
			next += 1 + n/7
		}
	}
}

func FuzzSketches(f *testing.F) {
	for _, a := range samples(f) {
		f.Add(a.Root, a.Body, a.rows)
	}
	f.Fuzz(func(t *testing.T, root, body []byte, rows uint32) {
		r, err := Kind{}.Open(root, rows)
		if err != nil {
			return
		}
		x := r.(*Reader)
		var units [3][]byte
		for i, u := range x.units {
			if u.Off+u.Len <= int64(len(body)) {
				units[i] = body[u.Off : u.Off+u.Len]
			}
		}
		s := &Sketch{header: x.header}
		var errs [3]error
		s.theta, errs[0] = parseTheta(units[0], x.lgK, x.Values-x.Empty)
		s.hll, errs[1] = parseHLL(units[1], x.Values-x.Empty)
		s.order, errs[2] = parseQuantiles(x.enc, units[2], x.Values)
		if err := cmp.Or(errs[0], errs[1], errs[2]); err != nil {
			return
		}
		s.Distinct()
		s.DistinctHLL()
		_ = guarded("quantiles", func() error { _, err := s.Quantiles([]float64{0, 0.5, 1}); return err })
		u := &Union{}
		if err := u.Add(s); err == nil {
			_, _ = u.Sketch()
		}
	})
}
