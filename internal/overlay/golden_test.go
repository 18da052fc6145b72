package overlay

import (
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/bytescan"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(hex.Dump(got)), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), hex.Dump(got))
}

func TestGoldenChunk(t *testing.T) {
	hot, wide := chunkOf(t)
	golden(t, "chunk-hot.hex", hot)
	golden(t, "chunk-wide.hex", wide)
}

func TestGoldenBody(t *testing.T) {
	def := definition("bloom", 3)
	def.ID, def.CreatedVersion, def.Params = "bloom-1", 2, map[string]string{"fpp": "0.01"}
	b := &body{
		header: header{
			Version: 7, Commit: "00000000-0000-4000-8000-00000000000a", Previous: "00000000-0000-4000-8000-000000000009", CommittedMs: 1700000000000,
			Mounted: true, Table: testTable, Upstream: testUpstream, Indexes: []Definition{def}, Dropped: []Dropped{{ID: "zonemap-0", Version: 5}},
		},
		chunks: []chunkRef{
			{name: "a-1", artifacts: 3, files: 3, hotLen: 4000, wideLen: 300, hotCRC: 1, wideCRC: 2, sha: [32]byte{3}},
			{name: "b-1", artifacts: 300, files: 100, hotLen: 40000, wideLen: 3000, hotCRC: 4, wideCRC: 5, sha: [32]byte{6}, dead: bitset{0b1001, 0, 0, 0, 1}},
		},
		lists:  []listRef{{name: "b-2", entries: 9, length: 900, crc: 7, sha: [32]byte{8}, dead: bitset{0b10}}},
		erased: erasedSet{{1}, {2, 3}},
	}
	raw, err := b.encode(nil)
	require.NoError(t, err)
	golden(t, "body.hex", raw)
	back, err := parseBody("x", raw)
	require.NoError(t, err)
	require.Equal(t, b.header, back.header)
	require.Equal(t, b.chunks[0], back.chunks[0])
	require.True(t, b.chunks[1].dead.equal(back.chunks[1].dead))
	require.Equal(t, b.lists, back.lists)
	require.Equal(t, b.erased, back.erased)
	old, err := parseBody("x", fromHex(t, "body-1.hex"))
	require.NoError(t, err)
	require.Equal(t, b.header, old.header)
	require.Equal(t, back.chunks, old.chunks)
	require.Empty(t, old.lists)
}

// fromHex reads a golden file back.
func fromHex(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	var out []byte
	for line := range strings.Lines(string(text)) {
		for _, b := range strings.Fields(line[10:min(len(line), 58)]) {
			raw, err := hex.DecodeString(b)
			require.NoError(t, err)
			out = append(out, raw...)
		}
	}
	return out
}

func TestGoldenList(t *testing.T) {
	raw, err := encodeList([]Derived{
		{Kind: "facts", Name: "s3://lake/t/metadata/1-m0.avro", Key: "facts/a", Len: 100, CRC: 1, Made: []string{"s3://lake/t/metadata/1-m0.avro"}},
		{Kind: "facts", Name: "s3://lake/t/metadata/2-m0.avro", Key: "facts/b", Off: 300, Len: 200, CRC: 2, Meta: []byte(`{"rows":7}`)},
		{Kind: "run", Name: "00", Index: "bloom-1", Key: "runs/1", Len: 1 << 40, CRC: 3},
	})
	require.NoError(t, err)
	golden(t, "list.hex", raw)
}

func TestGoldenStub(t *testing.T) {
	s := stub{number: 7, oldest: 9, commit: "00000000-0000-4000-8000-00000000000a"}
	raw := s.encode()
	golden(t, "stub.hex", raw)
	back, err := parseStub("x", raw)
	require.NoError(t, err)
	require.Equal(t, &s, back)
	for at := range raw[8:] {
		bad := append([]byte(nil), raw...)
		bad[8+at] ^= 1
		_, err := parseStub("x", bad)
		require.Error(t, err)
	}
}

func TestGoldenMark(t *testing.T) {
	one, two := fileID(1), fileID(2)
	erased := erasedSet{one.eraseKey(), two.eraseKey()}
	slices.SortFunc(erased, compareEraseKeys)
	raw := encodeMark(erased)
	golden(t, "mark.hex", raw)
	back, err := parseMark("x", raw)
	require.NoError(t, err)
	require.Equal(t, erased, back)
	for at := range raw {
		bad := append([]byte(nil), raw...)
		bad[at] ^= 1
		_, err := parseMark("x", bad)
		require.Error(t, err)
		_, err = parseMark("x", raw[:at])
		require.Error(t, err)
	}
}

func TestVersionNamesSortNewestFirst(t *testing.T) {
	require.Equal(t, "18446744073709551614", versionName(1))
	for _, n := range []uint64{1, 2, 9, 10, 99, 1 << 40} {
		require.Equal(t, n, versionNumber(versionName(n)))
		require.Less(t, versionName(n+1), versionName(n))
	}
}

func TestBitsetForms(t *testing.T) {
	r, _ := seeded(t)
	for range 2000 {
		size := 1 + r.IntN(700)
		var b bitset
		for range r.IntN(1 + r.IntN(size)) {
			b = b.with(r.IntN(size))
		}
		var w bytescan.Writer
		b.encode(&w)
		rd := bytescan.NewReader("x", w.Buf)
		back := decodeBits(rd, size)
		require.NoError(t, rd.Done())
		require.True(t, b.equal(back))
		if n := b.count(); n > 0 { // a set cannot be read as one of fewer artifacts than its last member
			last := 0
			for i := range size {
				if b.has(i) {
					last = i
				}
			}
			rd = bytescan.NewReader("x", w.Buf)
			decodeBits(rd, last)
			require.Error(t, rd.Done())
		}
	}
}
