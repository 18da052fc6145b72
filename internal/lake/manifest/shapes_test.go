package manifest

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/facts"
)

// shaped is one entry as it is meant: counts and bounds by map (its field id) and schema field.
type shaped struct {
	deleted       bool
	path, tuple   string
	records, size int64
	counts        map[int]map[int]int64
	bounds        map[int]map[int][]byte
	equality      []int
}

// part is a field of a record: its schema, and how an entry's value of it is written.
type part struct {
	name string
	id   int
	typ  any
	put  func(b []byte, e *shaped) []byte
}

// shaper draws a schema that says the same as the specification's in another way, and writes entries by it.
type shaper struct {
	*rand.Rand
	ids     bool // fields have ids, and names of their own
	names   int
	swapped map[int]bool // maps whose items have the value before the key
}

func zigzag(b []byte, n int64) []byte {
	return binary.AppendUvarint(b, uint64(n<<1)^uint64(n>>63))
}

func prefixed(b, v []byte) []byte { return append(zigzag(b, int64(len(v))), v...) }

// optional is a schema, at random in a union with null in which it is branch 0 or 1; wrap puts the number of the branch before a value.
func (s *shaper) optional(typ any) (out any, wrap func(b []byte) []byte) {
	switch s.IntN(3) {
	case 0:
		return []any{"null", typ}, func(b []byte) []byte { return append(b, 2) }
	case 1:
		return []any{typ, "null"}, func(b []byte) []byte { return append(b, 0) }
	default:
		return typ, func(b []byte) []byte { return b }
	}
}

func (s *shaper) record(fields []part) any {
	s.names++
	var out []any
	for _, f := range fields {
		o := object{"name": f.name, "type": f.typ}
		if s.ids && f.id > 0 || s.ids && f.name == "status" {
			o["field-id"] = f.id
			if f.name != "key" && f.name != "value" {
				o["name"] = "x_" + f.name
			}
		}
		out = append(out, o)
	}
	return object{"type": "record", "name": fmt.Sprintf("r%d", s.names), "fields": out}
}

func put(fields []part, b []byte, e *shaped) []byte {
	for _, f := range fields {
		b = f.put(b, e)
	}
	return b
}

// array writes n items, in blocks some of which tell their size in bytes.
func (s *shaper) array(b []byte, items [][]byte) []byte {
	for len(items) > 0 {
		n := 1 + s.IntN(len(items))
		body := bytes.Join(items[:n], nil)
		if s.IntN(3) == 0 {
			b = zigzag(zigzag(b, int64(-n)), int64(len(body)))
		} else {
			b = zigzag(b, int64(n))
		}
		b, items = append(b, body...), items[n:]
	}
	return append(b, 0)
}

// pairs is a map by field id as an array of records, most often as the specification has it.
func (s *shaper) pairs(name string, id int, value any, of func(e *shaped) map[int][]byte) part {
	key, wrapKey, wrapValue, wrapItem := any("int"), plainly, plainly, plainly
	if s.IntN(2) == 0 {
		key = []any{"int", "long"}[s.IntN(2)]
		if s.IntN(4) == 0 {
			key, wrapKey = s.optional(key)
		}
		if s.IntN(2) == 0 {
			value, wrapValue = s.optional(value)
		}
		s.swapped[id] = s.IntN(4) == 0
	}
	fields := []part{{name: "key", id: id * 10, typ: key}, {name: "value", id: id*10 + 1, typ: value}}
	if s.swapped[id] {
		fields[0], fields[1] = fields[1], fields[0]
	}
	item := s.record(fields)
	if s.IntN(4) == 0 {
		item, wrapItem = s.optional(item)
	}
	typ, wrap := s.optional(object{"type": "array", "items": item})
	return part{name, id, typ, func(b []byte, e *shaped) []byte {
		var items [][]byte
		values := of(e)
		for _, field := range slices.Sorted(maps.Keys(values)) {
			k, v := zigzag(wrapKey(nil), int64(field)), append(wrapValue(nil), values[field]...)
			if s.swapped[id] {
				k, v = v, k
			}
			items = append(items, bytes.Join([][]byte{wrapItem(nil), k, v}, nil))
		}
		return s.array(wrap(b), items)
	}}
}

func plainly(b []byte) []byte { return b }

func (s *shaper) plain(name string, id int, typ any, value func(b []byte, e *shaped) []byte) part {
	typ, wrap := s.optional(typ)
	return part{name, id, typ, func(b []byte, e *shaped) []byte { return value(wrap(b), e) }}
}

// future is a field that no reader knows.
func (s *shaper) future() part {
	typ, wrap := s.optional(object{"type": "map", "values": "long"})
	s.names++
	return part{fmt.Sprintf("future%d", s.names), 9000 + s.names, typ, func(b []byte, _ *shaped) []byte {
		b = wrap(b)
		for range s.IntN(3) {
			b = zigzag(prefixed(zigzag(b, 1), []byte("key")), s.Int64())
		}
		return append(b, 0)
	}}
}

var (
	mapNames  = map[int]string{109: "value_counts", 110: "null_value_counts", 137: "nan_value_counts", 125: "lower_bounds", 128: "upper_bounds"}
	countMaps = []int{109, 110, 137}
	boundMaps = []int{125, 128}
)

func (s *shaper) dataFile() []part {
	tuple := []part{s.plain("p", 1000, "string", func(b []byte, e *shaped) []byte { return prefixed(b, []byte(e.tuple)) })}
	fields := []part{
		s.plain("file_path", 100, "string", func(b []byte, e *shaped) []byte { return prefixed(b, []byte(e.path)) }),
		s.plain("file_format", 101, "string", func(b []byte, _ *shaped) []byte { return prefixed(b, []byte("PARQUET")) }),
		{"partition", 102, s.record(tuple), func(b []byte, e *shaped) []byte { return put(tuple, b, e) }},
		s.plain("record_count", 103, "long", func(b []byte, e *shaped) []byte { return zigzag(b, e.records) }),
		s.plain("file_size_in_bytes", 104, "long", func(b []byte, e *shaped) []byte { return zigzag(b, e.size) }),
		s.plain("equality_ids", 135, object{"type": "array", "items": "int"}, func(b []byte, e *shaped) []byte {
			var items [][]byte
			for _, id := range e.equality {
				items = append(items, zigzag(nil, int64(id)))
			}
			return s.array(b, items)
		}),
	}
	for _, id := range countMaps {
		fields = append(fields, s.pairs(mapNames[id], id, []any{"long", "long", "int"}[s.IntN(3)], func(e *shaped) map[int][]byte {
			out := map[int][]byte{}
			for field, n := range e.counts[id] {
				out[field] = zigzag(nil, n)
			}
			return out
		}))
	}
	for _, id := range boundMaps {
		fields = append(fields, s.pairs(mapNames[id], id, "bytes", func(e *shaped) map[int][]byte {
			out := map[int][]byte{}
			for field, v := range e.bounds[id] {
				out[field] = prefixed(nil, v)
			}
			return out
		}))
	}
	for range s.IntN(3) {
		fields = append(fields, s.future())
	}
	return s.mixed(fields)
}

// mixed shuffles the fields of half of the schemas.
func (s *shaper) mixed(fields []part) []part {
	if s.IntN(2) == 0 {
		s.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	}
	return fields
}

// manifest writes entries as a file of several blocks.
func (s *shaper) manifest(entries []*shaped) []byte {
	file := s.dataFile()
	entry := s.mixed([]part{
		s.plain("status", 0, "int", func(b []byte, e *shaped) []byte {
			if e.deleted {
				return zigzag(b, statusDeleted)
			}
			return zigzag(b, 1)
		}),
		s.plain("snapshot_id", 1, "long", func(b []byte, _ *shaped) []byte { return zigzag(b, 77) }),
		s.plain("data_file", 2, s.record(file), func(b []byte, e *shaped) []byte { return put(file, b, e) }),
		s.future(),
	})
	schema, _ := json.Marshal(s.record(entry))
	codec := []string{"null", "deflate", "snappy", "zstandard"}[s.IntN(4)]
	sync := make([]byte, 16)
	for i := range sync {
		sync[i] = byte(s.Uint32())
	}
	meta := [][]byte{
		prefixed(prefixed(nil, []byte("avro.schema")), schema), prefixed(prefixed(nil, []byte("avro.codec")), []byte(codec)),
		prefixed(prefixed(nil, []byte("format-version")), []byte("2")),
	}
	out := append(s.array([]byte("Obj\x01"), meta), sync...)
	for len(entries) > 0 {
		n := 1 + s.IntN(len(entries))
		var block []byte
		for _, e := range entries[:n] {
			block = put(entry, block, e)
		}
		out, entries = append(prefixed(zigzag(out, int64(n)), compressed(codec, block)), sync...), entries[n:]
		if s.IntN(4) == 0 { // none in a block
			out = append(prefixed(zigzag(out, 0), compressed(codec, nil)), sync...)
		}
	}
	return out
}

func compressed(codec string, b []byte) []byte {
	var out bytes.Buffer
	switch codec {
	case "deflate":
		w, _ := flate.NewWriter(&out, flate.BestSpeed)
		_, _ = w.Write(b)
		_ = w.Close()
	case "snappy":
		return binary.BigEndian.AppendUint32(s2.EncodeSnappy(nil, b), crc32.ChecksumIEEE(b))
	case "zstandard":
		w, _ := zstd.NewWriter(&out)
		_, _ = w.Write(b)
		_ = w.Close()
	default:
		return b
	}
	return out.Bytes()
}

func randomShaped(r *rand.Rand, i int) *shaped {
	e := &shaped{
		deleted: r.IntN(6) == 0, path: fmt.Sprintf("p/%d%s", i, strings.Repeat("x", r.IntN(30))), tuple: fmt.Sprint("day ", r.IntN(5)),
		records: r.Int64N(1 << 30), size: r.Int64N(1 << 40), counts: map[int]map[int]int64{}, bounds: map[int]map[int][]byte{},
	}
	for range r.IntN(4) {
		e.equality = append(e.equality, r.IntN(9))
	}
	for _, id := range countMaps {
		e.counts[id] = map[int]int64{}
		for range r.IntN(5) {
			e.counts[id][1+r.IntN(6)] = r.Int64N([]int64{7, 1 << 31}[r.IntN(2)])
		}
	}
	for _, id := range boundMaps {
		e.bounds[id] = map[int][]byte{}
		for range r.IntN(5) {
			v := make([]byte, []int{0, 4, 8, 13}[r.IntN(4)])
			for k := range v {
				v[k] = byte(r.Uint32())
			}
			e.bounds[id][1+r.IntN(6)] = v
		}
	}
	return e
}

// TestManifestsOfEveryShape: whatever schema says it, in whatever order, unions, array blocks, file blocks and codec, an entry is what was
// meant, and stays so while other manifests are read into the same memory, side by side. Maps with the value before the key are as good as
// not there.
func TestManifestsOfEveryShape(t *testing.T) {
	r := random(t)
	for i := range 3 {
		seed := r.Uint64()
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			everyShape(t, rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

func everyShape(t *testing.T, r *rand.Rand) {
	var checks []func()
	for range 60 {
		var entries, live []*shaped
		for i := range 1 + r.IntN(40) {
			e := randomShaped(r, i)
			if entries = append(entries, e); !e.deleted {
				live = append(live, e)
			}
		}
		s := &shaper{Rand: r, ids: r.IntN(2) == 0, swapped: map[int]bool{}}
		var want func(id int) bool
		if r.IntN(3) == 0 {
			want = func(id int) bool { return id%2 == 0 }
		}
		m, err := Read("m", s.manifest(entries), want)
		require.NoError(t, err)
		check := func() {
			require.Equal(t, len(live), m.N)
			for i, e := range live {
				checkShaped(t, m, i, e, s.swapped, want)
			}
		}
		check()
		checks = append(checks, check)
	}
	for _, check := range checks {
		check()
	}
}

func checkShaped(t *testing.T, m *Manifest, i int, e *shaped, swapped map[int]bool, want func(id int) bool) {
	t.Helper()
	f := m.File(i)
	require.Equal(t, []any{e.path, e.records, e.size, int64(77), []Raw{{Bytes: e.tuple}}}, []any{f.Path, f.Records, f.Size, f.SnapshotID, f.Partition})
	require.Equal(t, e.equality, f.EqualityID)
	for id := 1; id <= 6; id++ {
		counts, bounds := map[int]int64{109: facts.Unknown, 110: facts.Unknown, 137: facts.Unknown}, map[int][]byte{}
		if col := m.Columns[id]; col != nil {
			require.True(t, want == nil || want(id))
			counts = map[int]int64{109: col.Values.At(i), 110: col.Nulls.At(i), 137: col.NaNs.At(i)}
			bounds = map[int][]byte{125: col.LowerAt(i), 128: col.UpperAt(i)}
		}
		for of, got := range counts {
			n, stated := e.counts[of][id]
			if !stated || swapped[of] || want != nil && !want(id) {
				n = facts.Unknown
			}
			require.Equal(t, n, got, "map %d of field %d of file %d", of, id, i)
		}
		for _, of := range boundMaps {
			v := e.bounds[of][id]
			if swapped[of] || want != nil && !want(id) {
				v = nil
			}
			require.Equal(t, v == nil, bounds[of] == nil, "map %d of field %d of file %d", of, id, i)
			require.True(t, bytes.Equal(v, bounds[of]))
		}
	}
}
