package puffin

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
)

// file builds a Puffin file around a payload as stored.
func file(body string, payload []byte, flags uint32) []byte {
	b := append([]byte(magic+body+magic), payload...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, flags)
	return append(b, magic...)
}

func parse(b []byte) (*Footer, error) {
	f, need, err := ParseFooter("some/file.puffin", b, int64(len(b)))
	if err == nil && f == nil {
		err = fmt.Errorf("needs %d of %d bytes", need, len(b))
	}
	return f, err
}

func frame(t *testing.T, content []byte, options ...lz4.Option) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := lz4.NewWriter(&buf)
	require.NoError(t, w.Apply(options...))
	_, err := w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return buf.Bytes()
}

const onePayload = `{"blobs":[{"type":"a","fields":[1],"snapshot-id":1,"sequence-number":2,"offset":4,"length":7}],"properties":{"k":"v"}}`

// allocated is the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestO34CompressedFooter(t *testing.T) {
	long := strings.Replace(onePayload, `"v"`, `"`+strings.Repeat("many words ", 50_000)+`"`, 1)
	for _, payload := range []string{onePayload, long} {
		plain, err := parse(file("content", []byte(payload), 0))
		require.NoError(t, err)
		for name, options := range map[string][]lz4.Option{
			"Plain":     nil,
			"Checksums": {lz4.ChecksumOption(true), lz4.BlockChecksumOption(true)},
			"Small":     {lz4.BlockSizeOption(lz4.Block64Kb)},
			"High":      {lz4.CompressionLevelOption(lz4.Level9)},
		} {
			stored := frame(t, []byte(payload), append(options, lz4.SizeOption(uint64(len(payload))))...)
			f, err := parse(file("content", stored, 1))
			require.NoError(t, err, name)
			require.Equal(t, plain.Blobs, f.Blobs)
			require.Equal(t, plain.Properties, f.Properties)
			require.EqualValues(t, 11, f.Start)
		}
	}

	_, err := parse(file("content", frame(t, []byte(onePayload)), 1))
	require.Equal(t, fault.Corrupt, fault.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, "content size")

	for _, claim := range []uint64{4 << 30, 1 << 63, MaxFooter + 1, MaxFooter} {
		stored := frame(t, []byte(onePayload), lz4.SizeOption(uint64(len(onePayload))))
		binary.LittleEndian.PutUint64(stored[6:], claim)
		whole := file("content", stored, 1)
		var err error
		bytes := allocated(func() { _, err = parse(whole) })
		require.Error(t, err)
		require.Contains(t, []fault.Class{fault.Exhausted, fault.Corrupt}, fault.ClassOf(err))
		require.Less(t, bytes, uint64(1<<20), "claimed %d", claim)
	}
}

func TestCompressedFooterDamage(t *testing.T) {
	good := frame(t, []byte(onePayload), lz4.SizeOption(uint64(len(onePayload))), lz4.ChecksumOption(true), lz4.BlockSizeOption(lz4.Block64Kb))
	f, err := parse(file("content", good, 1))
	require.NoError(t, err)
	for i := range good {
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << bit
			got, err := parse(file("content", bad, 1))
			if err == nil {
				require.Equal(t, f.Blobs, got.Blobs, "byte %d bit %d: damage went unnoticed", i, bit)
			}
		}
		_, err := parse(file("content", good[:i], 1))
		require.Error(t, err, "cut at %d", i)
	}
	_, err = parse(file("content", append(bytes.Clone(good), 0), 1))
	require.Error(t, err, "something follows the frame")
	_, err = parse(file("content", []byte(onePayload), 1))
	require.Error(t, err, "flag set, but not compressed")
	_, err = parse(file("content", good, 0))
	require.Error(t, err, "compressed, but flag not set")
}

func TestHostileFooters(t *testing.T) {
	good := file("content", []byte(onePayload), 0)
	_, err := parse(good)
	require.NoError(t, err)
	patch := func(from, to string) []byte {
		require.Contains(t, onePayload, from)
		return file("content", []byte(strings.Replace(onePayload, from, to, 1)), 0)
	}
	set := func(fromEnd int, v uint32) []byte {
		b := bytes.Clone(good)
		binary.LittleEndian.PutUint32(b[len(b)-fromEnd:], v)
		return b
	}
	second := func(at, n int) string {
		return fmt.Sprintf(`"length":7},{"type":"b","fields":[],"snapshot-id":1,"sequence-number":1,"offset":%d,"length":%d}]`, at, n)
	}
	for name, c := range map[string]struct {
		b     []byte
		class fault.Class
	}{
		"nothing":                     {nil, fault.Corrupt},
		"only magics":                 {[]byte(magic + magic), fault.Corrupt},
		"no JSON":                     {file("", nil, 0), fault.Corrupt},
		"no magic at the end":         {append(bytes.Clone(good), 0), fault.Corrupt},
		"no magic at the start":       {append([]byte{'p'}, good[1:]...), fault.Corrupt},
		"no magic at the footer":      {set(len(onePayload)+16, 0), fault.Corrupt},
		"unknown flag":                {set(8, 2), fault.Unsupported},
		"unknown high flag":           {set(8, 1<<31), fault.Unsupported},
		"size too small":              {set(12, uint32(len(onePayload)-1)), fault.Corrupt},
		"size too large":              {set(12, uint32(len(good))), fault.Corrupt},
		"size of 2 GB":                {set(12, 1<<31-1), fault.Corrupt},
		"negative size":               {set(12, 1<<31), fault.Corrupt},
		"offset before the magic":     {patch(`"offset":4`, `"offset":3`), fault.Corrupt},
		"negative offset":             {patch(`"offset":4`, `"offset":-4`), fault.Corrupt},
		"length into the footer":      {patch(`"length":7`, `"length":8`), fault.Corrupt},
		"negative length":             {patch(`"length":7`, `"length":-1`), fault.Corrupt},
		"offset and length overflow":  {patch(`"offset":4,"length":7`, `"offset":9223372036854775807,"length":9223372036854775807`), fault.Corrupt},
		"offset beyond int64":         {patch(`"offset":4`, `"offset":18446744073709551620`), fault.Corrupt},
		"fractional offset":           {patch(`"offset":4`, `"offset":4.0`), fault.Corrupt},
		"offset as text":              {patch(`"offset":4`, `"offset":"4"`), fault.Corrupt},
		"offset null":                 {patch(`"offset":4`, `"offset":null`), fault.Corrupt},
		"no offset":                   {patch(`"offset":4,`, ``), fault.Corrupt},
		"no type":                     {patch(`"type":"a",`, ``), fault.Corrupt},
		"empty type":                  {patch(`"type":"a"`, `"type":""`), fault.Corrupt},
		"type in other case":          {patch(`"type"`, `"Type"`), fault.Corrupt},
		"no fields":                   {patch(`"fields":[1],`, ``), fault.Corrupt},
		"null field":                  {patch(`[1]`, `[null]`), fault.Corrupt},
		"field beyond int32":          {patch(`[1]`, `[2147483648]`), fault.Corrupt},
		"fields as number":            {patch(`[1]`, `1`), fault.Corrupt},
		"blobs as object":             {file("content", []byte(`{"blobs":{}}`), 0), fault.Corrupt},
		"blobs null":                  {file("content", []byte(`{"blobs":null}`), 0), fault.Corrupt},
		"no blobs":                    {file("content", []byte(`{}`), 0), fault.Corrupt},
		"blob as number":              {file("content", []byte(`{"blobs":[0]}`), 0), fault.Corrupt},
		"an array":                    {file("content", []byte(`[]`), 0), fault.Corrupt},
		"number as property":          {patch(`"v"`, `1`), fault.Corrupt},
		"null as property":            {patch(`"v"`, `null`), fault.Corrupt},
		"text behind":                 {file("content", []byte(onePayload+" {}"), 0), fault.Corrupt},
		"cut JSON":                    {file("content", []byte(onePayload[:50]), 0), fault.Corrupt},
		"bad UTF-8":                   {patch(`"v"`, "\"\xff\""), fault.Corrupt},
		"same bytes twice":            {patch(`"length":7}]`, second(4, 7)), fault.Corrupt},
		"overlap":                     {patch(`"length":7}]`, second(10, 1)), fault.Corrupt},
		"deep":                        {file("content", []byte(`{"x":`+strings.Repeat("[", 1<<20)), 0), fault.Corrupt},
		"deep and closed":             {file("content", []byte(`{"x":`+strings.Repeat("[", 1<<20)+strings.Repeat("]", 1<<20)+`,"blobs":[]}`), 0), fault.Corrupt},
		"deep properties":             {patch(`"v"`, strings.Repeat(`{"a":`, 1<<16)), fault.Corrupt},
		"many numbers as blobs":       {file("content", []byte(`{"blobs":[`+strings.Repeat("0,", 1<<20)+`0]}`), 0), fault.Corrupt},
		"more field ids than allowed": {patch(`[1]`, `[1`+strings.Repeat(",1", MaxEntries)+`]`), fault.Exhausted},
	} {
		var err error
		bytes := allocated(func() { _, err = parse(c.b) })
		require.Equal(t, c.class, fault.ClassOf(err), "%s: %v", name, err)
		require.ErrorContains(t, err, "some/file.puffin", name)
		require.LessOrEqual(t, bytes, uint64(1<<20+128*len(c.b)), name)
	}
}

func TestTolerated(t *testing.T) {
	for name, payload := range map[string]string{
		"unknown keys":         strings.Replace(onePayload, `{"blobs"`, `{"future":{"blobs":[1,{"x":[]}]},"blobs"`, 1),
		"unknown keys in blob": strings.Replace(onePayload, `"type"`, `"future":[{}],"type"`, 1),
		"null properties":      strings.Replace(onePayload, `"offset"`, `"properties":null,"offset"`, 1),
		"null codec":           strings.Replace(onePayload, `"offset"`, `"compression-codec":null,"offset"`, 1),
		"last of equal keys":   strings.Replace(onePayload, `"offset":4`, `"offset":99,"offset":4`, 1),
		"white space":          strings.ReplaceAll(onePayload, `,`, " ,\n\t"),
		"empty blob within":    strings.Replace(onePayload, `{"type"`, `{"type":"a","fields":[1],"snapshot-id":1,"sequence-number":2,"offset":4,"length":0},{"type"`, 1),
	} {
		f, err := parse(file("content", []byte(payload), 0))
		require.NoError(t, err, name)
		b := f.Blobs[len(f.Blobs)-1]
		require.Equal(t, Blob{Type: "a", Fields: []int32{1}, SnapshotID: 1, SequenceNumber: 2, Offset: 4, Length: 7}, b, name)
	}
}

func TestFooterTooLargeIsNotAskedFor(t *testing.T) {
	end := binary.LittleEndian.AppendUint32(nil, MaxFooter+1)
	end = append(end, 0, 0, 0, 0)
	end = append(end, magic...)
	_, need, err := ParseFooter("o", end, 1<<40)
	require.Equal(t, fault.Exhausted, fault.ClassOf(err))
	require.Zero(t, need)
	_, _, err = ParseFooter("o", end, 3)
	require.Equal(t, fault.Corrupt, fault.ClassOf(err))
	_, _, err = ParseFooter("o", bytes.Repeat(end, 9), 100)
	require.Equal(t, fault.Invalid, fault.ClassOf(err), "more bytes than the object has")
	_, need, err = ParseFooter("o", nil, 100)
	require.NoError(t, err)
	require.EqualValues(t, 16, need)
}

func TestDecode(t *testing.T) {
	content := []byte(strings.Repeat("some content ", 1000))
	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	decode := func(codec string, stored []byte, limit int) ([]byte, error) {
		return Decode("some/file.puffin", Blob{Type: "x", Codec: codec, Length: int64(len(stored))}, stored, int64(limit))
	}
	for codec, stored := range map[string][]byte{
		"":   content,
		LZ4:  frame(t, content, lz4.SizeOption(uint64(len(content)))),
		Zstd: enc.EncodeAll(content, nil),
	} {
		got, err := decode(codec, stored, len(content))
		require.NoError(t, err, codec)
		require.Equal(t, content, got)
		_, err = decode(codec, stored, len(content)-1)
		require.Equal(t, fault.Exhausted, fault.ClassOf(err), "%s: %v", codec, err)
		_, err = Decode("o", Blob{Codec: codec, Length: 1}, stored, 1<<30)
		require.Equal(t, fault.Invalid, fault.ClassOf(err), "the bytes are not the blob's")
		if codec == "" {
			continue
		}
		for i := range stored {
			_, err = decode(codec, stored[:i], 1<<20)
			require.Equal(t, fault.Corrupt, fault.ClassOf(err), "%s cut at %d: %v", codec, i, err)
			bad := bytes.Clone(stored)
			bad[i] ^= 0x55
			_, _ = decode(codec, bad, 1<<20) // must return
		}
		_, err = decode(codec, append(bytes.Clone(stored), stored...), 1<<20)
		require.Equal(t, fault.Corrupt, fault.ClassOf(err), "two %s frames: %v", codec, err)
	}
	for _, codec := range []string{"none", "gzip", "LZ4"} {
		_, err := decode(codec, content, 1<<20)
		require.Equal(t, fault.Unsupported, fault.ClassOf(err))
	}
	var buf bytes.Buffer
	w, err := zstd.NewWriter(&buf)
	require.NoError(t, err)
	for range 3 { // flushed in pieces: a frame that does not know its size
		_, err = w.Write(content)
		require.NoError(t, err)
		require.NoError(t, w.Flush())
	}
	require.NoError(t, w.Close())
	_, err = decode(Zstd, buf.Bytes(), 1<<20)
	require.Equal(t, fault.Corrupt, fault.ClassOf(err))
	require.ErrorContains(t, err, "content size")
	bomb := enc.EncodeAll(make([]byte, 16<<20), nil)
	used := allocated(func() { _, err = decode(Zstd, bomb, 1<<20) })
	require.Equal(t, fault.Exhausted, fault.ClassOf(err))
	require.Less(t, used, uint64(1<<20))
	_, err = decode(Zstd, []byte("\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"), 1<<20)
	require.Equal(t, fault.Corrupt, fault.ClassOf(err), "a skippable frame has no content")
}

// FuzzParseFooter: no input panics, reads beyond its bytes, or gives blobs that do not fit in the file.
func FuzzParseFooter(f *testing.F) {
	f.Add(file("content", []byte(onePayload), 0), int64(0))
	f.Add(file("", []byte(`{"blobs":[],"properties":{}}`), 0), int64(100))
	f.Add(file("content", []byte(`{"blobs":[`), 0), int64(0))
	var buf bytes.Buffer
	w := lz4.NewWriter(&buf)
	if err := w.Apply(lz4.SizeOption(uint64(len(onePayload)))); err != nil {
		f.Fatal(err)
	}
	if _, err := w.Write([]byte(onePayload)); err != nil {
		f.Fatal(err)
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(file("content", buf.Bytes(), 1), int64(0))
	f.Fuzz(func(t *testing.T, tail []byte, before int64) {
		size := int64(len(tail)) + max(0, min(before, 1<<40))
		foot, need, err := ParseFooter("o", tail, size)
		switch {
		case err != nil:
			require.NotEqual(t, fault.Unclassified, fault.ClassOf(err), "%v", err)
			require.Nil(t, foot)
		case foot == nil:
			require.Greater(t, need, int64(len(tail)))
			require.LessOrEqual(t, need, size)
		default:
			require.Zero(t, need)
			for _, b := range foot.Blobs {
				require.NotEmpty(t, b.Type)
				require.True(t, b.Offset >= 4 && b.Length >= 0 && b.Offset+b.Length <= foot.Start && foot.Start < size)
			}
		}
	})
}
