package bloom

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/parquet-go/parquet-go"
	sbbf "github.com/parquet-go/parquet-go/bloom"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/realdata"
)

// xxh64 is XXH64 with seed 0, written from its specification (github.com/Cyan4973/xxHash, doc/xxhash_spec.md, version 0.2).
func xxh64(b []byte) uint64 {
	const p1, p2, p3, p4, p5 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
	round := func(acc, lane uint64) uint64 { return bits.RotateLeft64(acc+lane*p2, 31) * p1 }
	lane := binary.LittleEndian.Uint64
	h, n := uint64(p5), uint64(len(b))
	if len(b) >= 32 {
		var acc [4]uint64
		acc[0], acc[1], acc[3] = p1, p2, 0
		acc[0] += p2
		acc[3] -= p1
		for ; len(b) >= 32; b = b[32:] {
			for k := range acc {
				acc[k] = round(acc[k], lane(b[8*k:]))
			}
		}
		h = 0
		for k, by := range []int{1, 7, 12, 18} {
			h += bits.RotateLeft64(acc[k], by)
		}
		for _, a := range acc {
			h = (h^round(0, a))*p1 + p4
		}
	}
	h += n
	for ; len(b) >= 8; b = b[8:] {
		h = bits.RotateLeft64(h^round(0, lane(b)), 27)*p1 + p4
	}
	if len(b) >= 4 {
		h = bits.RotateLeft64(h^uint64(binary.LittleEndian.Uint32(b))*p1, 23)*p2 + p3
		b = b[4:]
	}
	for _, c := range b {
		h = bits.RotateLeft64(h^uint64(c)*p5, 11) * p1
	}
	h = (h ^ h>>33) * p2
	h = (h ^ h>>29) * p3
	return h ^ h>>32
}

var vectorRow = regexp.MustCompile("(?m)^\\| (\\S[^|]*?) \\| ([^|]*?) ?\\| (?:`([0-9a-f]*)`)? ?\\| `([0-9a-f]{16})` \\|$")

// TestU58HashVectors: what is hashed of a value, and to what, is pinned: by vectors that the format's page lists, by a second implementation of
// the hash, and by vectors that others published.
func TestU58HashVectors(t *testing.T) {
	for text, want := range map[string]uint64{ // of XXH64, seed 0, as its implementations publish them
		"": 0xef46db3751d8e999, "a": 0xd24ec4f1a98c6e5b, "abc": 0x44bc2cf5ad770999, "Nobody inspects the spammish repetition": 0xfbcea83c8a378bf1,
	} {
		require.Equal(t, want, xxh64([]byte(text)), text)
		require.Equal(t, want, xxhash.Sum64String(text), text)
	}
	rng := rand.New(rand.NewPCG(58, 1))
	for n := range 300 {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		require.Equal(t, xxh64(b), xxhash.Sum64(b), n)
	}
	page, err := os.ReadFile("../../../docs/format/bloom.md")
	require.NoError(t, err)
	rows := vectorRow.FindAllStringSubmatch(string(page), -1)
	require.Len(t, rows, 16)
	for _, row := range rows {
		typ, v := vectorOf(t, row[1], row[2])
		key := column.AppendKey(nil, v)
		require.Equal(t, row[3], hex.EncodeToString(key), row[0])
		require.Equal(t, row[4], fmt.Sprintf("%016x", xxh64(key)), row[0])

		// A build sets the bits that these hashes stand for, and no others.
		x := it.Open(t, Kind{}, it.Column{Type: typ, Values: []*column.Value{&v}})
		want := sbbf.MakeSplitBlockFilter(x.Body)
		filter := make(sbbf.SplitBlockFilter, len(want))
		filter.Insert(xxh64(key))
		require.Equal(t, filter.Bytes(), x.Body, row[0])
	}
}

func vectorOf(t *testing.T, name, text string) (column.Type, column.Value) {
	t.Helper()
	types := map[string]column.Type{
		"bool": column.Of(column.Bool), "int": column.Of(column.Int), "long": long, "float": column.Of(column.Float), "double": double, "string": str,
		"binary": column.Of(column.Binary), "decimal(20, 2)": column.DecimalOf(20, 2),
	}
	typ, ok := types[name]
	require.True(t, ok, name)
	switch typ.Kind {
	case column.Bool:
		return typ, it.Lit(typ, text == "true")
	case column.Float, column.Double:
		f, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		return typ, it.Lit(typ, f)
	case column.String:
		return typ, it.Lit(typ, text)
	case column.Binary:
		return typ, it.Lit(typ, strings.Repeat("x", 40))
	default:
		n, err := strconv.Atoi(strings.ReplaceAll(text, ".", ""))
		require.NoError(t, err)
		return typ, it.Lit(typ, n)
	}
}

// TestU58FiltersOfOtherWriters: the filters that parquet-cpp, parquet-mr, Impala and DuckDB wrote over strings, whose key-v1 bytes are what Parquet
// hashes, answer through this reader: every value that is in them may be there, and of values that are not hardly any.
func TestU58FiltersOfOtherWriters(t *testing.T) {
	raw, err := os.ReadFile(realdata.Path(t, "parquet-testing/data/bloom_filter.xxhash.bin"))
	require.NoError(t, err)
	words := []string{"hello", "parquet", "bloom", "filter"}
	bitset := raw[len(raw)-1024:]
	requireHolds(t, "parquet-cpp", bitset, words)
	own := make(sbbf.SplitBlockFilter, len(bitset)/blockSize)
	for _, w := range words {
		own.Insert(xxh64([]byte(w)))
	}
	require.True(t, bytes.Equal(own.Bytes(), bitset), "both writers set the same bits")

	checked := 0
	for _, path := range []string{
		"parquet-testing/data/data_index_bloom_encoding_stats.parquet", "impala/parquet/parquet-bloom-filtering.parquet", "duckdb/multi_bloom_a.parquet",
		"hyparquet/bloom_filter.parquet",
	} {
		file, err := os.Open(realdata.Path(t, path))
		require.NoError(t, err)
		info, err := file.Stat()
		require.NoError(t, err)
		f, err := parquet.OpenFile(file, info.Size())
		require.NoError(t, err, path)
		for g, group := range f.RowGroups() {
			for c, chunk := range group.ColumnChunks() {
				filter := chunk.BloomFilter()
				if filter == nil || chunk.Type().Kind() != parquet.ByteArray {
					continue
				}
				bitset := make([]byte, filter.Size())
				_, err := filter.ReadAt(bitset, 0)
				require.NoError(t, err)
				requireHolds(t, fmt.Sprintf("%s, group %d, column %d", path, g, c), bitset, stringsOf(t, chunk))
				checked++
			}
		}
		require.NoError(t, file.Close())
	}
	require.Greater(t, checked, 2)
	t.Logf("%d filters of Parquet files", checked)
}

func stringsOf(t *testing.T, chunk parquet.ColumnChunk) (out []string) {
	t.Helper()
	pages := chunk.Pages()
	defer pages.Close()
	for page, err := pages.ReadPage(); err == nil; page, err = pages.ReadPage() {
		values := make([]parquet.Value, page.NumValues())
		n, _ := page.Values().ReadValues(values)
		for _, v := range values[:n] {
			if !v.IsNull() {
				out = append(out, string(v.ByteArray()))
			}
		}
	}
	require.NotEmpty(t, out)
	return out
}

// requireHolds asks a filter for values that are in it and for others.
func requireHolds(t *testing.T, what string, bitset []byte, values []string) {
	t.Helper()
	g := built{rows: 1, state: stateFilter, distinct: len(values), blocks: len(bitset) / blockSize}
	g.fill = packFill(share(sbbf.MakeSplitBlockFilter(bitset)))
	require.False(t, tooFull(g.fill), what)
	for off := 0; off < len(bitset); off += unitSize {
		g.crcs = append(g.crcs, bytescan.CRC32C(bitset[off:min(off+unitSize, len(bitset))]))
	}
	x, err := Kind{}.Open(rootOf(index.Encoding{Kind: column.String}, int64(len(bitset)), []built{g}), 1)
	require.NoError(t, err, what)
	ask := func(value string) bool {
		v, _, err := it.Run(x.Probe(it.Test(str, predicate.Equal, value)), bitset)
		require.NoError(t, err, what)
		return !v.May.Empty()
	}
	for _, v := range values {
		require.True(t, ask(v), "%s: %q", what, v)
	}
	wrong := 0
	for i := range 1000 {
		if ask(fmt.Sprintf("\u0001 nobody wrote this %d", i)) {
			wrong++
		}
	}
	require.Less(t, wrong, 300, what)
}
