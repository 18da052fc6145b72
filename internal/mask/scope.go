package mask

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
)

// scope says which delete files of a snapshot apply to which data file (specification, "Scan Planning"):
//
//	deletion vector   names the data file; its sequence number is the file's or a later one
//	position deletes  the same for sequence numbers; written under the file's spec and partition; names the file or, if it names
//	                  none, may hold rows for it; no deletion vector applies to the file
//	equality deletes  a later sequence number; written under the file's spec and partition, or under an unpartitioned spec
//
// What names a file that the snapshot does not have dangles and is never read.
type scope struct {
	snapshot *facts.Snapshot
	paths    *paths // nil without vectors and position deletes
	vectors  map[int32][]int32
	named    map[int32][]int32  // position deletes that name one file
	scoped   map[string][]int32 // position deletes of a partition
	keyed    map[string][]int32 // equality deletes of a partition
	global   []int32            // equality deletes of unpartitioned specs
	doubtful []int32            // equality deletes of which the metadata does not say whether they are global
}

// applied is the deletes that apply to one data file, as ordinals.
type applied struct {
	vector    int32 // -1: none
	positions []int32
	equality  []int32
}

func (a applied) none() bool { return a.vector < 0 && len(a.positions) == 0 && len(a.equality) == 0 }

// scopeKey keeps the scope of a snapshot. Facts are immutable and shared, so the pointer names them; the mapping is the
// table's, as are the facts.
type scopeKey struct{ snapshot *facts.Snapshot }

func (m *Masker) scope(s *facts.Snapshot) (*scope, error) {
	if sc, ok := get[*scope](m.Cache, scopeKey{s}); ok {
		return sc, nil
	}
	sc, err := newScope(s, m.Map)
	if err == nil {
		m.Cache.put(scopeKey{s}, sc, int64(s.Files.Len())*32+int64(s.Deletes.Len())*64)
	}
	return sc, err
}

func newScope(s *facts.Snapshot, mapping func(string) string) (*scope, error) {
	sc := &scope{
		snapshot: s, vectors: map[int32][]int32{}, named: map[int32][]int32{}, scoped: map[string][]int32{}, keyed: map[string][]int32{},
	}
	d := &s.Deletes
	for i := range d.Len() {
		if d.Kind[i] == facts.EqualityDeletes {
			sc.addEquality(int32(i))
			continue
		}
		if sc.paths == nil {
			sc.paths = newPaths(&s.Files, mapping)
		}
		if err := sc.addPositions(int32(i)); err != nil {
			return nil, err
		}
	}
	return sc, nil
}

func (sc *scope) addPositions(i int32) error {
	d := &sc.snapshot.Deletes
	if d.Referenced[i] == "" {
		if d.Kind[i] == facts.DeletionVector {
			return fault.New(fault.Corrupt, d.Path[i], "is a deletion vector that names no data file")
		}
		key := sc.deleteKey(i)
		sc.scoped[key] = append(sc.scoped[key], i)
		return nil
	}
	file, ok, err := sc.paths.find(d.Referenced[i])
	if err != nil || !ok {
		return fault.About(d.Path[i], err)
	}
	if d.Kind[i] == facts.DeletionVector {
		sc.vectors[file] = append(sc.vectors[file], i)
	} else {
		sc.named[file] = append(sc.named[file], i)
	}
	return nil
}

func (sc *scope) addEquality(i int32) {
	d := &sc.snapshot.Deletes
	switch spec := sc.snapshot.Specs[int(d.SpecID[i])]; {
	case unpartitioned(spec):
		sc.global = append(sc.global, i)
	case len(d.Partition[i]) != len(spec.Fields):
		sc.doubtful = append(sc.doubtful, i)
	default:
		key := sc.deleteKey(i)
		sc.keyed[key] = append(sc.keyed[key], i)
	}
}

// unpartitioned reports whether a spec puts all rows in one partition: it has no fields, or only void ones.
func unpartitioned(s *facts.Spec) bool {
	return s == nil || !slices.ContainsFunc(s.Fields, func(f facts.PartitionField) bool { return f.Transform != "void" })
}

// of is the deletes that apply to a data file.
func (sc *scope) of(file int) (applied, error) {
	a := applied{vector: -1}
	d := &sc.snapshot.Deletes
	sequence := sc.snapshot.Files.Sequence[file]
	key := sc.fileKey(file)
	if sc.paths != nil {
		first, _, err := sc.paths.find(sc.snapshot.Files.Stated[file])
		if err != nil {
			return a, err
		}
		for _, i := range sc.vectors[first] {
			if d.Sequence[i] < sequence {
				continue
			}
			if a.vector >= 0 {
				return a, fault.New(fault.Corrupt, sc.snapshot.Files.Path[file],
					"has two deletion vectors: %s at %d and %s at %d", d.Path[a.vector], d.Offset[a.vector], d.Path[i], d.Offset[i])
			}
			a.vector = i
		}
		if a.vector < 0 {
			for _, i := range sc.named[first] {
				if d.Sequence[i] >= sequence && sc.deleteKey(i) == key {
					a.positions = append(a.positions, i)
				}
			}
			for _, i := range sc.scoped[key] {
				if d.Sequence[i] >= sequence {
					a.positions = append(a.positions, i)
				}
			}
		}
	}
	for _, list := range [][]int32{sc.global, sc.keyed[key]} {
		for _, i := range list {
			if d.Sequence[i] > sequence {
				a.equality = append(a.equality, i)
			}
		}
	}
	for _, i := range sc.doubtful {
		if d.Sequence[i] > sequence {
			return a, sc.doubt(i)
		}
	}
	return a, nil
}

func (sc *scope) doubt(i int32) error {
	d := &sc.snapshot.Deletes
	return fault.New(fault.Corrupt, d.Path[i],
		"equality deletes of partition spec %d, which has fields, state no partition: whether they are global cannot be told", d.SpecID[i]).
		WithFix("rewrite the table's deletes with the engine that wrote them, or query an earlier snapshot with --at")
}

// deleteKey and fileKey are equal where spec and partition values are.
func (sc *scope) deleteKey(i int32) string {
	d := &sc.snapshot.Deletes
	b := binary.AppendVarint(nil, int64(d.SpecID[i]))
	for _, v := range d.Partition[i] {
		b = appendValue(b, v.Value, v.Null)
	}
	return string(b)
}

func (sc *scope) fileKey(file int) string {
	f := &sc.snapshot.Files
	b := binary.AppendVarint(nil, int64(f.SpecID[file]))
	if spec := sc.snapshot.Specs[int(f.SpecID[file])]; spec != nil {
		for _, field := range spec.Fields {
			col := f.Partition[field.ID]
			if col == nil || !col.Known[file] {
				b = appendValue(b, column.Value{}, true)
				continue
			}
			b = appendValue(b, col.Value[file], col.Null[file])
		}
	}
	return string(b)
}

// appendValue appends a value as equality deletes compare it: null equals null, NaN equals NaN, zeros of either sign differ.
func appendValue(b []byte, v column.Value, null bool) []byte {
	if null {
		return append(b, 0)
	}
	b = append(b, 1)
	switch v.Kind {
	case column.Float, column.Double:
		return binary.LittleEndian.AppendUint64(b, floatBits(v.Float64()))
	case column.Decimal:
		b = binary.LittleEndian.AppendUint64(b, v.Lo)
		return binary.LittleEndian.AppendUint64(b, uint64(v.Hi))
	case column.String, column.UUID, column.Fixed, column.Binary, column.Variant, column.Geometry, column.Geography:
		b = binary.AppendUvarint(b, uint64(len(v.S)))
		return append(b, v.S...)
	default:
		return binary.LittleEndian.AppendUint64(b, v.Lo)
	}
}

// floatBits is the bits of a float with one NaN.
func floatBits(f float64) uint64 {
	if math.IsNaN(f) {
		return math.Float64bits(math.NaN())
	}
	return math.Float64bits(f)
}
