package filemap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/predicate"
)

// small is a run over three files: their values are 7, 7 + their number, null and, in the last, 300 rows of 1000 and up.
func small(t testing.TB) *built {
	c, err := NewCollector(it.Path(column.Of(column.Long)), true, index.Budget{TempDir: t.TempDir()})
	require.NoError(t, err)
	for i := range 3 {
		values := it.Of(column.Of(column.Long), 7, 7+i, nil)
		if i == 2 {
			for k := range 300 {
				v := it.Lit(values.Type, 1000+k)
				values.Values = append(values.Values, &v)
			}
		}
		f := File{Path: PathKey(fmt.Sprint("s3://t/", i)), Size: int64(100 + i), Records: int64(len(values.Values)), Tag: fmt.Sprint("tag-", i)}
		require.NoError(t, c.Start(f, []uint32{0, 100, 200, 300}))
		b := column.NewBuilder(values.Type)
		for _, v := range values.Values {
			if v == nil {
				b.AppendNull()
			} else {
				b.Append(*v)
			}
		}
		require.NoError(t, c.Add(b.Finish()))
	}
	b := &built{objects: [][]byte{nil}}
	b.root, _, err = c.Run(b)
	require.NoError(t, err)
	b.run, err = Open(b.root)
	require.NoError(t, err)
	return b
}

// TestGolden holds the bytes of version 2, and reads those of version 1.
func TestGolden(t *testing.T) {
	b := small(t)
	it.Golden(t, "run.v2", "three files of 3, 3 and 303 rows: 7, 7 + number, null, and in the last 1000 to 1299; pages of 100 rows",
		it.Artifact{Root: b.root, Body: b.objects[0]})
	for _, name := range []string{"run.v1", "run.v2"} {
		kept := it.ReadGolden(t, name)
		old := &built{root: kept.Root, objects: [][]byte{kept.Body}}
		var err error
		old.run, err = Open(kept.Root)
		require.NoError(t, err)
		hits, all := old.ask(t, it.Test(column.Of(column.Long), predicate.Equal, 7))
		require.False(t, all)
		require.Len(t, hits, 3)
		hits, _ = old.ask(t, it.Test(column.Of(column.Long), predicate.Equal, 1299))
		require.Len(t, hits, 1)
		require.Equal(t, entriesOf(t, b), entriesOf(t, old))
		hits, all = old.ask(t, it.Test(column.Of(column.Long), predicate.Greater, 8))
		require.Equal(t, name == "run.v1", all)
		require.True(t, all || len(hits) == 1, "%v", hits)
		require.Equal(t, name == "run.v2", merge(t, old.source(), b.source()).run.HasValues, "version 1 has no value map")
	}
}

// TestTheHashIsPinned: xxHash64 with seed 0 of key-v1 bytes, as published for the xxHash library.
func TestTheHashIsPinned(t *testing.T) {
	require.Equal(t, uint64(0xef46db3751d8e999), Hash(nil))
	require.Equal(t, uint64(0xd24ec4f1a98c6e5b), Hash([]byte("a")))
	require.Equal(t, Hash([]byte{0x80, 0, 0, 0, 0, 0, 0, 7}), Hash(column.AppendKey(nil, column.IntValue(column.Int, 7))))
}

// TestDamagedRoots: a root that was cut is corrupt, one from the future unsupported, and no flipped bit makes anything panic.
func TestDamagedRoots(t *testing.T) {
	b := small(t)
	for n := range b.root {
		_, err := Open(b.root[:n:n])
		require.True(t, fault.Is(err, fault.Corrupt), "%d bytes: %v", n, err)
	}
	_, err := Open(append(slices.Clone(b.root), 0))
	require.True(t, fault.Is(err, fault.Corrupt), err)
	future := slices.Clone(b.root)
	future[0] = 9
	_, err = Open(future)
	require.True(t, fault.Is(err, fault.Unsupported), err)
	for bit := range len(b.root) * 8 {
		root := slices.Clone(b.root)
		root[bit/8] ^= 1 << (bit % 8)
		if run, err := Open(root); err == nil {
			probe(run, b.objects[0], 7)
		} else {
			require.True(t, fault.Is(err, fault.Corrupt) || fault.Is(err, fault.Unsupported), err)
		}
	}
}

// probe looks a value up in a run whose leaves may lie anywhere.
func probe(run *Run, body []byte, v int64) (hits int, err error) {
	l := it.Test(column.Of(column.Long), predicate.Equal)
	l.Values = []column.Value{column.IntValue(column.Long, v)}
	look := run.Look(l)
	if look == nil {
		return 0, nil
	}
	var data [][]byte
	for _, p := range look.Need() {
		from := min(max(p.Off, 0), int64(len(body)))
		data = append(data, body[from:min(max(from+p.Len, from), int64(len(body)))])
	}
	if err := look.Feed(data); err != nil {
		return 0, err
	}
	look.Hits(func(h Hit) {
		if rows := run.Rows(h); rows.Start > rows.End || int64(rows.End) > run.Files[h.Slot].Records {
			err = fmt.Errorf("rows %v of %d", rows, run.Files[h.Slot].Records)
		}
		hits++
	})
	return hits, err
}

// TestDamagedLeaves: a leaf that is flipped, cut, missing or another is corrupt; one whose checksum fits all the same gives an error or
// answers in range.
func TestDamagedLeaves(t *testing.T) {
	b := small(t)
	look := func() *Look {
		return b.run.Look(it.Test(column.Of(column.Long), predicate.Equal, 7))
	}
	good := b.read(look().Need()[0])
	for _, bad := range [][][]byte{nil, {nil}, {good[:len(good)-1]}, {append(slices.Clone(good), 0)}, {good, good}, {flipped(good, 3)}} {
		l := look()
		err := l.Feed(bad)
		require.True(t, fault.Is(err, fault.Corrupt) || fault.Is(err, fault.Invalid), err)
		l.Hits(func(Hit) { t.Error("a hit in a damaged leaf") })
	}
	for bit := range len(good) * 8 {
		leaf := flipped(good, bit)
		run := forged(t, b, leaf)
		if _, err := probe(run, leaf, 7); err != nil {
			require.True(t, fault.Is(err, fault.Corrupt), err)
		}
		s := Source{Run: run, Fetch: func(int, int) ([][]byte, error) { return [][]byte{leaf}, nil }}
		if _, _, err := Merge([]Source{s}, &built{objects: [][]byte{nil}}); err != nil {
			require.True(t, fault.Is(err, fault.Corrupt), err)
		}
	}
}

func flipped(b []byte, bit int) []byte {
	out := slices.Clone(b)
	out[bit/8] ^= 1 << (bit % 8)
	return out
}

// forged is the run with another leaf and its right checksum.
func forged(t *testing.T, b *built, leaf []byte) *Run {
	t.Helper()
	w := &bytescan.Writer{}
	w.U32(uint32(len(leaf)))
	w.U32(bytescan.CRC32C(leaf))
	w.U64(0) // no value map
	run, err := Open(encodeRoot(b.run.Encoding, &b.run.shape, b.run.Keys, b.run.Files, []int{2}, w.Buf, nil))
	require.NoError(t, err)
	return run
}

// TestMemory holds the bounds of docs/format/filemap.md.
func TestMemory(t *testing.T) {
	b := small(t)
	it.Allocates(t, 0.1, func() {
		if _, err := Open(b.root); err != nil {
			t.Error(err)
		}
	})
	// a root that claims as many files as it has room for
	w := &bytescan.Writer{}
	w.U8(version)
	b.run.Encoding.Append(w)
	w.U8(40)
	w.U8(0)
	w.Uvarint(1)
	w.Uvarint(maxFiles)
	w.Uvarint(1)
	w.Bytes(make([]byte, maxFiles*minFile))
	it.Allocates(t, 80, func() {
		_, err := Open(w.Buf)
		require.True(t, fault.Is(err, fault.Corrupt), err)
	})
	// a value map with as many files as it can claim, and with as many values
	bits := &bytescan.Writer{}
	bits.Uvarint(30)
	keys := index.NewKeyWriter(b.run.Encoding)
	for i := range 30 {
		keys.Append(bits, string(column.AppendKey(nil, it.Lit(column.Of(column.Long), i))))
	}
	bits.Bytes(bytes.Repeat([]byte{setBits}, 31))
	bits.Bytes(bytes.Repeat([]byte{0xff}, 31*maxFiles/8))
	run := &Run{Encoding: b.run.Encoding, Files: make([]File, maxFiles)}
	it.Allocates(t, 1, func() {
		_, listed, err := run.holders(bits.Buf, []test{{leaf: it.Test(column.Of(column.Long), predicate.Equal, 7), ask: index.Ask{In: []index.Interval{{NoHi: true}}}}})
		require.NoError(t, err)
		require.True(t, listed)
	})
	it.Allocates(t, 1, func() {
		_, err := run.whole(bits.Buf)
		require.True(t, fault.Is(err, fault.Corrupt), err)
	})
	full := &valueMap{}
	for i := range maxPairs / valueFiles {
		full.keys, full.held = append(full.keys, string(column.AppendKey(nil, it.Lit(column.Of(column.Long), i)))), append(full.held, slots{})
		for slot := range valueFiles {
			full.held[i].add(uint32(slot * 60))
		}
	}
	require.True(t, full.fits())
	stored := full.encode(b.run.Encoding, maxFiles)
	it.Allocates(t, 6, func() {
		m, err := run.whole(stored)
		require.NoError(t, err)
		require.Len(t, m.held, len(full.held))
	})
	// a leaf that claims as many entries as a leaf can have
	leaf := append([]byte{0xff, 0xff, 0xff, 0x1f}, make([]byte, 1<<20)...)
	it.Allocates(t, 0.1, func() {
		_, err := openLeaf(&b.run.shape, leaf)
		require.True(t, fault.Is(err, fault.Corrupt), err)
	})
}

func TestMeta(t *testing.T) {
	m := Meta{FormatVersion: 2, Columns: []lineage.Column{{FieldID: 1}}, Objects: []Object{{Key: "data/x.puffin", Off: 4}}, Files: 3, Invalid: []uint32{1}}
	raw, err := json.Marshal(m)
	require.NoError(t, err)
	got, err := ParseMeta("x", raw)
	require.NoError(t, err)
	require.Equal(t, &m, got)
	for _, bad := range []string{"", "{}", `{"columns":[{}],"objects":[]}`, `{"columns":[{}],"objects":[{"key":"","off":1}]}`, `{"columns":[{}],"objects":[{"key":"a","off":-1}]}`} {
		_, err := ParseMeta("x", []byte(bad))
		require.True(t, fault.Is(err, fault.Corrupt), bad)
	}
	b := small(t)
	_, err = got.OpenChecked("x", b.root, bytescan.CRC32C(b.root))
	require.NoError(t, err)
	_, err = got.OpenChecked("x", b.root, 1)
	require.True(t, fault.Is(err, fault.Corrupt), err)
	got.Files = 4
	_, err = got.OpenChecked("x", b.root, bytescan.CRC32C(b.root))
	require.True(t, fault.Is(err, fault.Corrupt), err)
}

// FuzzRoot opens arbitrary roots and looks a value up in arbitrary leaves.
func FuzzRoot(f *testing.F) {
	b := small(f)
	f.Add(b.root, b.objects[0], int64(7))
	f.Fuzz(func(t *testing.T, root, body []byte, v int64) {
		run, err := Open(bytes.Clone(root))
		if err != nil {
			if !fault.Is(err, fault.Corrupt) && !fault.Is(err, fault.Unsupported) {
				t.Fatal(err)
			}
			return
		}
		if _, err := probe(run, body, v); err != nil && !fault.Is(err, fault.Corrupt) {
			t.Fatal(err)
		}
	})
}

// FuzzLeaf reads arbitrary leaves of the small run.
func FuzzLeaf(f *testing.F) {
	b := small(f)
	f.Add(b.objects[0], uint64(7))
	f.Fuzz(func(t *testing.T, raw []byte, hash uint64) {
		x, err := openLeaf(&b.run.shape, raw)
		if err != nil {
			if !fault.Is(err, fault.Corrupt) {
				t.Fatal(err)
			}
			return
		}
		found, err := x.find(nil, 0, hash)
		if err != nil && !fault.Is(err, fault.Corrupt) {
			t.Fatal(err)
		}
		all, err := x.all(nil, 0)
		if err != nil {
			return
		}
		for _, place := range found {
			if !slices.ContainsFunc(all, func(e entry) bool { return e.place == place && e.hash == x.cut(hash) }) {
				t.Fatalf("found %#x, which is not among %v", place, all)
			}
		}
	})
}
