package indextest

import (
	"bytes"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
)

// Leaves is one leaf per operator, sign and dialect on a column of type t, asking about v.
func Leaves(t column.Type, v column.Value) []*predicate.Leaf {
	var out []*predicate.Leaf
	for _, op := range Ops(t) {
		for i := range 4 {
			l := &predicate.Leaf{Column: predicate.Column{Path: Path(t)}, Op: op, Negated: i&1 == 1, Dialect: predicate.Dialect(i >> 1)}
			switch op {
			case predicate.IsNull, predicate.IsNaN:
			case predicate.Like:
				l.Pattern = Pattern(strings.ToValidUTF8(v.S, "_")+"%x", 0) // a pattern is text, whatever the fuzzer found
			case predicate.ILike:
				l.Pattern = AnyCase("%"+strings.ToValidUTF8(v.S, "_")+"%", 0)
			case predicate.Match:
				l.Regex = Regex(regexp.QuoteMeta(strings.ToValidUTF8(v.S, "_")), false)
			default:
				l.Values = []column.Value{v}
			}
			out = append(out, l)
		}
	}
	return out
}

// Hostile damages an artifact over rows rows whose probes of v read its body: truncated roots must be refused as corrupt, flipped roots
// must not panic, and damaged, short or missing units must end in a corrupt or invalid fault and "maybe".
func Hostile(t *testing.T, k index.Kind, a Artifact, typ column.Type, rows uint32, v column.Value) {
	t.Helper()
	for n := range a.Root {
		if _, err := k.Open(a.Root[:n:n], rows); !fault.Is(err, fault.Corrupt) {
			t.Fatalf("root cut to %d of %d bytes: %v", n, len(a.Root), err)
		}
	}
	for bit := range len(a.Root) * 8 {
		root := bytes.Clone(a.Root)
		root[bit/8] ^= 1 << (bit % 8)
		reader, err := k.Open(root, rows)
		if err != nil {
			continue
		}
		for _, leaf := range Leaves(typ, v) {
			verdict, _, _ := Run(reader.Probe(leaf), a.Body)
			if verdict.May.Size() != rows || verdict.Must.Size() != rows {
				t.Fatalf("bit %d of the root: verdict over %d rows", bit, verdict.May.Size())
			}
		}
	}
	if reader, err := k.Open(a.Root, rows+1); err == nil {
		t.Errorf("opened over %d rows too: %v", rows+1, reader)
	}
	future := bytes.Clone(a.Root)
	future[0] = 99
	if _, err := k.Open(future, rows); !fault.Is(err, fault.Unsupported) {
		t.Errorf("version 99: %v", err)
	}
	reader, err := k.Open(a.Root, rows)
	if err != nil {
		t.Fatal(err)
	}
	fed := 0
	for _, leaf := range Leaves(typ, v) {
		fed += damaged(t, reader, a, leaf)
	}
	if fed == 0 {
		t.Error("no probe reads the body")
	}
}

// damaged spoils each wave of a probe in turn and returns how many it spoiled.
func damaged(t *testing.T, reader index.Reader, a Artifact, leaf *predicate.Leaf) int {
	spoils := map[string]func([][]byte) [][]byte{
		"flipped":  func(d [][]byte) [][]byte { d[len(d)-1] = bytes.Clone(d[len(d)-1]); d[len(d)-1][0] ^= 4; return d },
		"short":    func(d [][]byte) [][]byte { d[0] = d[0][:len(d[0])-1]; return d },
		"missing":  func(d [][]byte) [][]byte { return d[1:] },
		"too many": func(d [][]byte) [][]byte { return append(d, nil) },
	}
	_, cost, err := Run(reader.Probe(leaf), a.Body)
	if err != nil {
		t.Fatalf("%v\n%s", err, Describe(leaf))
	}
	for what, spoil := range spoils {
		for wave := range cost.Waves {
			p := reader.Probe(leaf)
			for range wave {
				if err := p.Feed(units(p, a.Body)); err != nil {
					t.Fatal(err)
				}
			}
			err := p.Feed(spoil(units(p, a.Body)))
			if !fault.Is(err, fault.Corrupt) && !fault.Is(err, fault.Invalid) {
				t.Errorf("%s in wave %d: %v\n%s", what, wave, err, Describe(leaf))
			}
			if v := p.Verdict(); !v.May.Full() || !v.Must.Empty() || len(p.Need()) > 0 {
				t.Errorf("%s in wave %d: still says must %s, may %s, needs %v\n%s", what, wave, v.Must, v.May, p.Need(), Describe(leaf))
			}
		}
	}
	return cost.Waves * len(spoils)
}

func units(p index.Probe, body []byte) [][]byte {
	var out [][]byte
	for _, s := range p.Need() {
		out = append(out, body[s.Off:s.Off+s.Len])
	}
	return out
}

// Allocates fails the test when work allocates more than mib MiB in total.
func Allocates(t *testing.T, mib float64, work func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	if got := float64(after.TotalAlloc-before.TotalAlloc) / (1 << 20); got > mib {
		t.Errorf("allocated %.1f MiB, the limit is %.1f", got, mib)
	}
}

// FuzzReader runs open and every probe of every type over arbitrary roots and bodies: no panic, verdicts over the right rows.
func FuzzReader(k index.Kind, root, body []byte, rows uint32, pick uint8) (bad string) {
	rows %= 1 << 20
	reader, err := k.Open(root, rows)
	if err != nil {
		if !fault.Is(err, fault.Corrupt) && !fault.Is(err, fault.Unsupported) {
			return "unclassified fault: " + err.Error()
		}
		return ""
	}
	typ := Types[int(pick)%len(Types)]
	v := column.Value{Kind: typ.Kind, Scale: uint8(typ.Scale), Lo: uint64(pick), S: string(body[:min(len(body), int(pick))])}
	for _, leaf := range Leaves(typ, v) {
		if verdict, _, _ := Run(reader.Probe(leaf), body); verdict.May.Size() != rows || verdict.Must.Size() != rows {
			return "verdict over other rows"
		}
	}
	return ""
}
