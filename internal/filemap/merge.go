package filemap

import (
	"slices"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
)

// Source is a run to be merged.
type Source struct {
	Run *Run
	// Fetch reads the leaves from one to another, in order, without the empty ones. The value map is the one behind the last.
	Fetch func(from, to int) ([][]byte, error)
	// Keep tells which slots to take over; nil: all. What the source says of the others is left out.
	Keep func(slot int) bool
}

// SourceError is the failure of one source of a merge.
type SourceError struct {
	Source int
	Err    error
}

// Error is that of the failure.
func (e *SourceError) Error() string { return e.Err.Error() }

// Unwrap is the failure.
func (e *SourceError) Unwrap() error { return e.Err }

// fetched is how many leaves a merge reads at a time from one source.
const fetched = 64

// Merge writes one run of several, all of one encoding. The result says of every file what its source said: no hit is lost, and
// "too many" stays. It holds the leaves of one read of each source. A source that cannot be read is a *SourceError.
func Merge(sources []Source, out Sink) (root []byte, keys uint64, err error) {
	var n uint64
	width := maxBits
	var runs [][]File
	for i := range sources {
		s := &sources[i]
		if s.Run.Encoding != sources[0].Run.Encoding {
			return nil, 0, fault.New(fault.Invalid, "file map", "runs of two encodings")
		}
		n += s.Run.Keys
		width = min(width, s.Run.Bits())
		files := slices.Clone(s.Run.Files)
		for k := range files {
			if s.Keep != nil && !s.Keep(k) {
				files[k].Stride = 0
			}
		}
		runs = append(runs, files)
	}
	files, slots := arrange(runs)
	values, err := sourceValues(sources, runs, slots)
	if err != nil {
		return nil, 0, err
	}
	var in []stream
	for i := range sources {
		in = append(in, &renumbered{&stored{Source: &sources[i], no: i}, slots[i]})
	}
	return write(sources[0].Run.Encoding, files, n, width, in, values, out)
}

// sourceValues is the value map of the sources; nil where one has none.
func sourceValues(sources []Source, files [][]File, slots [][]uint32) (*valueMap, error) {
	maps, left := make([]*valueMap, len(sources)), make([]bool, len(sources))
	for i := range sources {
		s := &sources[i]
		if !s.Run.HasValues {
			return nil, nil
		}
		raw, err := s.Fetch(s.Run.valuesNo(), s.Run.valuesNo()+1)
		if err != nil {
			return nil, &SourceError{i, err}
		}
		if len(raw) != 1 {
			return nil, fault.New(fault.Invalid, "file map", "value map was not read")
		}
		if err = s.Run.check(s.Run.valuesNo(), raw[0]); err == nil {
			maps[i], err = s.Run.whole(raw[0])
		}
		if err != nil {
			return nil, &SourceError{i, err}
		}
		left[i] = slices.ContainsFunc(files[i], func(f File) bool { return f.Stride == 0 })
	}
	return mergeValues(maps, slots, left), nil
}

// stored streams the entries of a run.
type stored struct {
	*Source
	no      int
	leaf    int
	raw     [][]byte // leaves that were read, from leaf on, without the empty ones
	entries []entry
	at      int
	last    uint64
}

func (s *stored) next() (e entry, ok bool, err error) {
	for s.at == len(s.entries) {
		if s.leaf == s.Run.Leaves() {
			return e, false, nil
		}
		if err := s.load(); err != nil {
			return e, false, &SourceError{s.no, err}
		}
	}
	if e.hash = s.entries[s.at].hash; e.hash < s.last {
		return e, false, &SourceError{s.no, index.Broken("leaf of a file map", "entries are out of order")}
	}
	e, s.last = s.entries[s.at], e.hash
	s.at++
	return e, true, nil
}

// load decodes the next leaf.
func (s *stored) load() (err error) {
	if s.leaf%fetched == 0 {
		if s.raw, err = s.Fetch(s.leaf, min(s.leaf+fetched, s.Run.Leaves())); err != nil {
			return err
		}
	}
	no := s.leaf
	s.leaf++
	s.entries, s.at = s.entries[:0], 0
	if s.Run.PlaceOf(no).Len == 0 {
		return nil
	}
	if len(s.raw) == 0 {
		return fault.New(fault.Invalid, "file map", "leaf %d was not read", no)
	}
	raw := s.raw[0]
	s.raw = s.raw[1:]
	x, err := s.Run.open(no, raw)
	if err != nil {
		return err
	}
	s.entries, err = x.all(s.entries, no)
	return err
}
