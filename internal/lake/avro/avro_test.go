package avro

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/realdata"
)

const everything = `{"type":"record","name":"all","fields":[
 {"name":"n","type":"null"},{"name":"b","type":"boolean","field-id":7},{"name":"i","type":"int"},{"name":"l","type":"long"},{"name":"f","type":"float"},
 {"name":"d","type":"double"},{"name":"y","type":"bytes"},{"name":"s","type":"string"},{"name":"x","type":{"type":"fixed","name":"fx","size":3}},
 {"name":"e","type":{"type":"enum","name":"en","symbols":["A","B"]}},{"name":"a","type":{"type":"array","items":"long"}},
 {"name":"m","type":{"type":"map","values":"string"}},{"name":"u","type":["null","long","string"]},{"name":"again","type":"fx"},
 {"name":"r","type":{"type":"record","name":"in","fields":[{"name":"q","type":"int"}]}},{"name":"end","type":"long"}]}`

func container(t testing.TB, schema string, opts []ocf.WriterOpt, records ...any) []byte {
	t.Helper()
	s, err := avro.Parse(schema)
	require.NoError(t, err)
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, s, append(opts, ocf.WithSchema(schema))...)
	require.NoError(t, err)
	for _, r := range records {
		require.NoError(t, w.Encode(r))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func record(i int) map[string]any {
	u := []any{nil, int64(5), "text"}[i%3]
	return map[string]any{
		"n": nil, "b": i%2 == 0, "i": -i, "l": int64(i) << 40, "f": float32(1.5), "d": -2.5, "y": []byte{1, 2}, "s": "é", "x": []byte{1, 2, 3},
		"e": "B", "a": []int64{1, 2, 3}, "m": map[string]any{"k": "v"}, "u": u, "again": []byte{4, 5, 6}, "r": map[string]any{"q": 9}, "end": int64(i),
	}
}

// TestSkip: passing over every field lands on the last one, whatever the types, codecs and blocks.
func TestSkip(t *testing.T) {
	zstd := ocf.MustZstdCodec(nil, nil)
	for _, codec := range []ocf.Codec{nil, ocf.DeflateCodec(-1), ocf.SnappyCodec(), zstd} {
		opts := []ocf.WriterOpt{ocf.WithBlockCount(7)}
		if codec != nil {
			opts = append(opts, ocf.WithCodec(codec))
		}
		var records []any
		for i := range 20 {
			records = append(records, record(i))
		}
		f, err := Open("x", container(t, everything, opts, records...))
		require.NoError(t, err)
		require.Equal(t, 7, f.Schema.Fields[1].ID)
		require.Equal(t, -1, f.Schema.Fields[0].ID)
		var ends []int64
		require.NoError(t, f.Each(func(c *Cursor) error {
			fields := f.Schema.Fields
			for _, fd := range fields[:len(fields)-1] {
				c.Skip(fd.Schema)
			}
			ends = append(ends, c.Long())
			return nil
		}))
		require.Len(t, ends, 20)
		for i, v := range ends {
			require.Equal(t, int64(i), v)
		}
	}
}

func TestValues(t *testing.T) {
	f, err := Open("x", container(t, everything, nil, record(1)))
	require.NoError(t, err)
	require.NoError(t, f.Each(func(c *Cursor) error {
		s := func(i int) *Schema { return f.Schema.Fields[i].Schema }
		require.False(t, c.Bool())
		require.Equal(t, int64(-1), c.Long())
		require.Equal(t, int64(1)<<40, c.Long())
		require.Equal(t, float32(1.5), c.Float())
		require.Equal(t, -2.5, c.Double())
		require.Equal(t, []byte{1, 2}, c.Bytes())
		require.Equal(t, "é", c.String())
		require.Equal(t, []byte{1, 2, 3}, c.Fixed(3))
		require.Equal(t, int64(1), c.Long())
		var items []int64
		c.Blocks(func() { items = append(items, c.Long()) })
		require.Equal(t, []int64{1, 2, 3}, items)
		c.Skip(s(11))
		require.Equal(t, Long, c.Branch(s(12)).Kind)
		require.Equal(t, int64(5), c.Long())
		require.Equal(t, []byte{4, 5, 6}, c.Fixed(s(13).Size))
		c.Skip(s(14))
		require.Equal(t, int64(1), c.Long())
		return nil
	}))
}

// raw is a container with one block of hand-made bytes.
func raw(schema, codec string, count int64, data []byte) []byte {
	var b bytes.Buffer
	put := func(n int64) { b.Write(binary.AppendUvarint(nil, uint64(n<<1^n>>63))) }
	text := func(s string) { put(int64(len(s))); b.WriteString(s) }
	b.WriteString("Obj\x01")
	put(2)
	text("avro.schema")
	text(schema)
	text("avro.codec")
	text(codec)
	put(0)
	sync := strings.Repeat("s", syncLen)
	b.WriteString(sync)
	put(count)
	put(int64(len(data)))
	b.Write(data)
	b.WriteString(sync)
	return b.Bytes()
}

func skipAll(b []byte) error {
	f, err := Open("hostile", b)
	if err != nil {
		return err
	}
	return f.Each(func(c *Cursor) error {
		c.Skip(f.Schema)
		return nil
	})
}

// TestHostile: bytes that ask for much get an error soon, and little memory.
func TestHostile(t *testing.T) {
	huge := binary.AppendUvarint(nil, 1<<62)
	nested := `{"type":"record","name":"z","fields":[]}`
	for i := range 40 {
		nested = fmt.Sprintf(`{"type":"record","name":"r%d","fields":[{"name":"a","type":%s},{"name":"b","type":"%s"}]}`, i, nested, []string{"z", fmt.Sprint("r", i-1)}[min(i, 1)])
	}
	for name, c := range map[string]struct {
		b     []byte
		class fault.Class
	}{
		"empty":              {nil, fault.Corrupt},
		"huge string":        {raw(`"string"`, "null", 1, huge), fault.Corrupt},
		"negative string":    {raw(`"string"`, "null", 1, []byte{1}), fault.Corrupt},
		"huge array":         {raw(`{"type":"array","items":"long"}`, "null", 1, huge), fault.Corrupt},
		"array of nothing":   {raw(`{"type":"array","items":"null"}`, "null", 1, append(huge, 0)), fault.Corrupt},
		"impossible count":   {raw(`{"type":"array","items":"long"}`, "null", 1, binary.AppendUvarint(nil, 1<<64-1)), fault.Corrupt},
		"records of nothing": {raw(`"null"`, "null", 1<<40, nil), fault.Corrupt},
		"negative records":   {raw(`"long"`, "null", -1, []byte{1}), fault.Corrupt},
		"endless recursion":  {raw(`{"type":"record","name":"r","fields":[{"name":"next","type":"r"}]}`, "null", 1, []byte{1}), fault.Corrupt},
		"deep recursion":     {raw(`{"type":"record","name":"r","fields":[{"name":"next","type":["null","r"]}]}`, "null", 1, bytes.Repeat([]byte{2}, 100000)), fault.Corrupt},
		"exponential":        {raw(nested, "null", 1, []byte{1}), fault.Corrupt},
		"deep schema":        {raw(strings.Repeat(`{"type":"array","items":`, 200)+`"int"`+strings.Repeat("}", 200), "null", 1, []byte{0}), fault.Corrupt},
		"bad branch":         {raw(`["null","long"]`, "null", 1, []byte{6}), fault.Corrupt},
		"union in union":     {raw(`[["null"],"long"]`, "null", 1, []byte{0}), fault.Corrupt},
		"unknown type":       {raw(`"money"`, "null", 1, []byte{0}), fault.Corrupt},
		"bad schema":         {raw(`{`, "null", 1, []byte{0}), fault.Corrupt},
		"left over":          {raw(`"long"`, "null", 1, []byte{0, 0}), fault.Corrupt},
		"bad deflate":        {raw(`"long"`, "deflate", 1, []byte{255}), fault.Corrupt},
		"bad snappy":         {raw(`"long"`, "snappy", 1, append(binary.AppendUvarint(nil, 1<<31), 0, 0, 0, 0, 0)), fault.Corrupt},
		"short snappy":       {raw(`"long"`, "snappy", 1, []byte{0}), fault.Corrupt},
		"bad zstd":           {raw(`"long"`, "zstandard", 1, []byte{1, 2, 3}), fault.Corrupt},
		"codec":              {raw(`"long"`, "xz", 1, []byte{0}), fault.Unsupported},
		"long number":        {raw(`"long"`, "null", 1, bytes.Repeat([]byte{255}, 11)), fault.Corrupt},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := skipAll(c.b)
			runtime.ReadMemStats(&after)
			require.Equal(t, c.class, fault.ClassOf(err), "%v", err)
			require.ErrorContains(t, err, "hostile")
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
		})
	}
}

// TestBombs: blocks that decompress to more than the limit are refused once it is reached, with every codec.
func TestBombs(t *testing.T) {
	for _, codec := range []ocf.Codec{ocf.DeflateCodec(-1), ocf.SnappyCodec(), ocf.MustZstdCodec(nil, nil)} {
		b := container(t, `"bytes"`, []ocf.WriterOpt{ocf.WithCodec(codec)}, make([]byte, 600_000), make([]byte, 600_000))
		require.NoError(t, skipAll(b))
		f, err := Open("bomb", b)
		require.NoError(t, err)
		f.limit = 1 << 20
		err = f.Each(func(c *Cursor) error {
			c.Skip(f.Schema)
			return nil
		})
		require.Equal(t, fault.Exhausted, fault.ClassOf(err), codec.Name())
	}
}

// TestBlockSizes: array blocks with a negative count state their size in bytes.
func TestBlockSizes(t *testing.T) {
	f, err := Open("x", raw(`{"type":"array","items":"long"}`, "null", 1, []byte{3, 4, 2, 4, 2, 6, 0}))
	require.NoError(t, err)
	var got []int64
	require.NoError(t, f.Each(func(c *Cursor) error {
		c.Blocks(func() { got = append(got, c.Long()) })
		return nil
	}))
	require.Equal(t, []int64{1, 2, 3}, got)
}

// TestOverlongNumbers: bits past the 64th are dropped.
func TestOverlongNumbers(t *testing.T) {
	f, err := Open("x", raw(`"long"`, "null", 1, append(bytes.Repeat([]byte{0x80}, 9), 0x7e)))
	require.NoError(t, err)
	require.NoError(t, f.Each(func(c *Cursor) error {
		require.Equal(t, int64(0), c.Long())
		return nil
	}))
}

// TestRealAvro: every real Avro file is passed over whole, or refused for its codec or its bytes.
func TestRealAvro(t *testing.T) {
	read, skipped := 0, 0
	for _, pattern := range []string{
		"arrow-testing/avro/*.avro", "iceberg-rust/manifests_lists/manifest-list-v[12]*.avro", "icebird/*.avro", "impala/iceberg/*/*/data/*.avro",
		"impala/iceberg/*/metadata/*.avro", "duckdb-iceberg/*/metadata/*.avro",
	} {
		for _, path := range realdata.Glob(t, pattern) {
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			if err = skipAll(b); fault.Is(err, fault.Unsupported) {
				skipped++
				continue
			}
			require.NoError(t, err, path)
			read++
		}
	}
	require.Greater(t, read, 50)
	t.Logf("%d read, %d of other codecs", read, skipped)
}
