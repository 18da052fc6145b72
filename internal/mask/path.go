package mask

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
)

// Writers name one file in several ways: with and without the authority of a file system, as s3://, s3a:// or s3n://. So two
// locations meet when they are equal, or when
//
//   - their paths behind the authority are equal byte for byte (nothing is decoded or cleaned), and
//   - either has no scheme or no authority, or the families of their schemes and their authorities are equal.
//
// s3, s3a and s3n are one family, as are abfs, abfss, wasb and wasbs, gs and gcs; file: is no scheme. A location that equals a data
// file's is that file and no other. One that meets several data files without being equal to any is an error.
type location struct{ family, authority, path string }

var families = map[string]string{
	"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasb": "abfs", "wasbs": "abfs", "gcs": "gs", "file": "",
}

func parseLocation(s string) location {
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || !isScheme(scheme) || !strings.HasPrefix(rest, "/") {
		return location{path: s}
	}
	l := location{family: strings.ToLower(scheme), path: rest}
	if f, known := families[l.family]; known {
		l.family = f
	}
	if after, has := strings.CutPrefix(rest, "//"); has {
		at := strings.IndexByte(after, '/')
		if at < 0 {
			at = len(after)
		}
		l.authority, l.path = after[:at], after[at:]
	}
	if l.family == "" {
		if l.authority == "localhost" {
			l.authority = ""
		}
		l.path = "/" + strings.TrimLeft(l.path, "/")
	}
	return l
}

func isScheme(s string) bool {
	return s != "" && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

func (l location) meets(o location) bool {
	if l.path != o.path {
		return false
	}
	bare := func(x location) bool { return x.family == "" || x.authority == "" }
	return bare(l) || bare(o) || l.family == o.family && l.authority == o.authority
}

// paths finds data files of a snapshot by the locations that delete files name them by. It takes 16 bytes a file and form.
type paths struct {
	files   *facts.Files
	mapping func(string) string
	seed    maphash.Seed
	entries []pathEntry // by hash of the path behind the authority, then ordinal
}

type pathEntry struct {
	hash    uint64
	ordinal int32
}

func newPaths(f *facts.Files, mapping func(string) string) *paths {
	p := &paths{files: f, mapping: mapping, seed: maphash.MakeSeed(), entries: make([]pathEntry, 0, f.Len())}
	for i := range f.Len() {
		stated := parseLocation(f.Stated[i]).path
		p.entries = append(p.entries, pathEntry{maphash.String(p.seed, stated), int32(i)})
		if mapped := parseLocation(f.Path[i]).path; mapped != stated {
			p.entries = append(p.entries, pathEntry{maphash.String(p.seed, mapped), int32(i)})
		}
	}
	slices.SortFunc(p.entries, func(a, b pathEntry) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.ordinal, b.ordinal))
	})
	return p
}

// find is the data file that a location names: the ordinal of its first listing. Not ok: none, the location dangles.
func (p *paths) find(stated string) (ordinal int32, ok bool, err error) {
	mapped := stated
	if p.mapping != nil {
		mapped = p.mapping(stated)
	}
	one, two := parseLocation(stated), parseLocation(mapped)
	candidates := p.among(nil, one.path)
	if two.path != one.path {
		candidates = p.among(candidates, two.path)
		slices.Sort(candidates)
	}
	best := int32(-1)
	for _, c := range candidates {
		if p.files.Stated[c] == stated || p.files.Path[c] == mapped {
			return c, true, nil
		}
		if !one.meets(parseLocation(p.files.Stated[c])) && !two.meets(parseLocation(p.files.Path[c])) {
			continue
		}
		if best >= 0 && p.files.Stated[best] != p.files.Stated[c] {
			return 0, false, fault.New(fault.Corrupt, stated, "deletes name a file that may be %s or %s",
				p.files.Stated[best], p.files.Stated[c])
		}
		if best < 0 {
			best = c
		}
	}
	return best, best >= 0, nil
}

// among appends the files whose path has the hash of path.
func (p *paths) among(dst []int32, path string) []int32 {
	h := maphash.String(p.seed, path)
	i, _ := slices.BinarySearchFunc(p.entries, h, func(e pathEntry, h uint64) int { return cmp.Compare(e.hash, h) })
	for ; i < len(p.entries) && p.entries[i].hash == h; i++ {
		dst = append(dst, p.entries[i].ordinal)
	}
	return dst
}
