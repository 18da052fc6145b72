package lake

import (
	"context"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/skomerdb/skomer/internal/fault"
)

const (
	hintName    = "version-hint.text"
	maxHint     = 1 << 10 // bytes of a version hint
	listPage    = 1000
	maxListed   = 1_000_000
	hintMissing = -1
)

var (
	// Hadoop tables number their versions: vN.metadata.json, vN.gz.metadata.json or vN.metadata.json.gz.
	numbered = regexp.MustCompile(`^v(\d{1,18})(\.gz)?\.metadata\.json(\.gz)?$`)
	// Catalogs name them NNNNN-<uuid>.metadata.json, zero-padded, compressed ones as above.
	catalogued = regexp.MustCompile(`^(\d{1,18})-.+\.metadata\.json(\.gz)?$`)
)

// newestMetadata finds the current metadata.json of a table folder: by its version hint (which may lag, so newer numbered
// versions win), else the highest vN, else the one newest NNNNN-<uuid>, else the only file. The hint is read only where there is one
// that can make a difference.
func (l *Lake) newestMetadata(ctx context.Context, table string) (string, error) {
	dir := table + "/metadata/"
	names, hintSize, err := l.list(ctx, dir)
	if err != nil {
		return "", err
	}
	hint := ""
	if hintSize >= 0 && !decided(names, hintSize) {
		if hint, err = l.hint(ctx, dir); err != nil {
			return "", err
		}
		if !listed(hint, names) { // it may have been written since
			if names, _, err = l.list(ctx, dir); err != nil {
				return "", err
			}
		}
	}
	return choose(table, dir, hint, names)
}

// hintOfNumber is more bytes than a hint has that holds the number of a version, and fewer than the name of a metadata file has.
const hintOfNumber = 12

// decided reports whether every hint of the size leads to the same file: all are plain vN.metadata.json without a gap.
func decided(names []string, hintSize int64) bool {
	lowest, highest, n := math.MaxInt, -1, 0
	for _, name := range names {
		m := numbered.FindStringSubmatch(name)
		switch {
		case m == nil && isMetadataFile(name), m != nil && (m[2] != "" || m[3] != ""):
			return false
		case m != nil:
			version, _ := strconv.Atoi(m[1])
			lowest, highest, n = min(lowest, version), max(highest, version), n+1
		}
	}
	return n > 0 && n == highest-lowest+1 && hintSize < hintOfNumber
}

// listed reports whether the file that a hint leads to is among the names.
func listed(hint string, names []string) bool {
	n, err := strconv.Atoi(strings.TrimPrefix(hint, "v"))
	if err != nil {
		_, ok := hinted(hint, names)
		return ok
	}
	return slices.ContainsFunc(names, func(name string) bool {
		m := numbered.FindStringSubmatch(name)
		if m == nil {
			return false
		}
		version, _ := strconv.Atoi(m[1])
		return version == n
	})
}

// hint reads the version hint; "" if the table has none.
func (l *Lake) hint(ctx context.Context, dir string) (string, error) {
	b, err := l.readAll(ctx, dir+hintName)
	switch {
	case fault.Is(err, fault.NotFound):
		return "", nil
	case err != nil:
		return "", err
	case len(b) > maxHint:
		return "", fault.New(fault.Corrupt, dir+hintName, "%d bytes are no version hint", len(b))
	}
	return strings.TrimSpace(string(b)), nil
}

// list returns the names of the files in dir, and the bytes of the version hint among them, -1 if there is none.
func (l *Lake) list(ctx context.Context, dir string) (names []string, hint int64, err error) {
	s, key, err := l.resolve(dir)
	if err != nil {
		return nil, 0, err
	}
	key = strings.TrimSuffix(key, "/") + "/"
	hint = -1
	for after := ""; len(names) < maxListed; {
		page, err := s.List(ctx, key, after, listPage)
		if fault.Is(err, fault.NotFound) {
			return names, hint, nil
		}
		if err != nil {
			return nil, 0, fault.About(dir, err)
		}
		for _, info := range page {
			name := strings.TrimPrefix(info.Key, key)
			if name == hintName {
				hint = info.Size
			}
			names = append(names, name)
		}
		if len(page) < listPage {
			return names, hint, nil
		}
		after = page[len(page)-1].Key
	}
	return nil, 0, fault.New(fault.Exhausted, dir, "more than %d files in the metadata folder", maxListed).
		WithFix("give the metadata.json itself")
}

func choose(table, dir, hint string, names []string) (string, error) {
	version := hintMissing
	if hint != "" {
		if n, err := strconv.Atoi(strings.TrimPrefix(hint, "v")); err == nil && n >= 0 {
			version = n
		} else if name, ok := hinted(hint, names); ok {
			return dir + name, nil
		}
	}
	if name := newestNumbered(names, version); name != "" {
		return dir + name, nil
	}
	rivals := newestCatalogued(names)
	switch {
	case len(rivals) > 1:
		return "", fault.New(fault.Invalid, table, "its metadata files do not say which is the newest: %s or %s", rivals[0], rivals[1]).
			WithFix("give the metadata.json itself")
	case len(rivals) == 1:
		return dir + rivals[0], nil
	case hint != "":
		return "", fault.New(fault.NotFound, table, "its version hint says %q, but no such metadata file is there", hint)
	}
	return "", fault.New(fault.NotFound, table, "no metadata file in %s", dir).
		WithFix("give the folder of an Iceberg table, a metadata.json, or catalog.namespace.table")
}

// hinted finds the file of a hint that holds a name rather than a number.
func hinted(hint string, names []string) (string, bool) {
	for _, want := range []string{hint, hint + ".metadata.json", hint + ".gz.metadata.json", hint + ".metadata.json.gz"} {
		for _, name := range names {
			if name == want {
				return name, true
			}
		}
	}
	return "", false
}

// newestNumbered is the highest vN that can be reached from the hint without a gap, as Hadoop tables advance; the highest
// of all without a hint or if the hint's own version is gone.
func newestNumbered(names []string, hint int) string {
	byVersion := map[int]string{}
	highest := -1
	for _, name := range names {
		if m := numbered.FindStringSubmatch(name); m != nil {
			n, _ := strconv.Atoi(m[1])
			byVersion[n] = name
			highest = max(highest, n)
		}
	}
	if byVersion[hint] == "" {
		return byVersion[highest]
	}
	for byVersion[hint+1] != "" {
		hint++
	}
	return byVersion[hint]
}

// newestCatalogued is the files that may be the newest: those of the highest number, and all whose names follow no rule.
func newestCatalogued(names []string) []string {
	highest := -1
	var numbered, others []string
	for _, name := range names {
		m := catalogued.FindStringSubmatch(name)
		if m == nil {
			if isMetadataFile(name) && !strings.Contains(name, "/") {
				others = append(others, name)
			}
			continue
		}
		switch n, _ := strconv.Atoi(m[1]); {
		case n > highest:
			highest, numbered = n, []string{name}
		case n == highest:
			numbered = append(numbered, name)
		}
	}
	return append(numbered, others...)
}
