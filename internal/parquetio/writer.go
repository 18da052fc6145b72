package parquetio

import (
	"strconv"
	"strings"
)

// writer is who wrote a file, from the footer's created_by: "<application> version <major>.<minor>.<patch>… (build …)".
type writer struct {
	app     string // lower case; "" if unknown
	version [3]int
	suffix  string // what follows the patch number, as "-cdh5.5.0" or "rc1"
	known   bool   // the version was understood
}

func parseWriter(createdBy string) writer {
	app, rest, found := strings.Cut(strings.ToLower(createdBy), " version ")
	w := writer{app: strings.TrimSpace(app)}
	if !found {
		return w
	}
	version, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	for i := range w.version {
		digits := version
		if end := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
			digits = version[:end]
		}
		n, err := strconv.Atoi(digits)
		if err != nil {
			return w
		}
		w.version[i] = n
		version = version[len(digits):]
		if i < 2 {
			if !strings.HasPrefix(version, ".") {
				w.known = i > 0
				return w
			}
			version = version[1:]
		}
	}
	w.suffix, w.known = version, true
	return w
}

// before reports whether the writer is app at a version below major.minor.patch; an unknown version of app is.
func (w writer) before(app string, major, minor, patch int) bool {
	if w.app != app {
		return false
	}
	if !w.known {
		return true
	}
	want := [3]int{major, minor, patch}
	for i := range want {
		if w.version[i] != want[i] {
			return w.version[i] < want[i]
		}
	}
	return false
}

// distrusted reports whether bounds of leaf are known to be wrong for files of this writer. The list, with sources, is in
// docs/format/parquet.md.
func (w writer) distrusted(n *node, current bool) bool {
	binary := n.phys == byteArray || n.phys == fixedLen
	switch {
	case strings.HasPrefix(w.app, "arrow2"):
		return true // polars issue 7842: bounds of some pages only
	case w.app == "polars":
		return n.logical == decimalType // polars issue 29347: merged in unsigned order
	case w.app == "parquet.net":
		return n.timed() // parquet-dotnet issue 769 and before: local time, other units
	case w.app == "parquet-go":
		return n.phys == byteArray // xitongsys: values with their length prefix
	case w.before("parquet-rs", 5, 2, 0):
		return binary // arrow-rs pull request 643
	default:
		return binary && w.badBinaryStatistics() && !current
	}
}

func (n *node) timed() bool {
	return n.phys == int96s || n.logical >= dateType && n.logical <= timestampNanos
}

// badBinaryStatistics: PARQUET-251, parquet-mr before 1.8.0 kept a reference to a reused buffer as min and max of
// binary columns (both bounds may be the last value). CDH's 1.5.0 has the fix from cdh5.5.0 on. A file without created_by may be
// of such a writer.
func (w writer) badBinaryStatistics() bool {
	if w.app == "" {
		return true
	}
	if w.app == "parquet-mr" && w.known && strings.HasPrefix(w.suffix, "-cdh5.") && w.version == [3]int{1, 5, 0} {
		minor, _, _ := strings.Cut(strings.TrimPrefix(w.suffix, "-cdh5."), ".")
		n, err := strconv.Atoi(minor)
		return err != nil || n < 5
	}
	return w.before("parquet-mr", 1, 8, 0)
}

// signedOrderOnly: parquet-mr before 1.10.0 and parquet-cpp before 1.3.0 compared every type in signed order (PARQUET-686).
func (w writer) signedOrderOnly() bool {
	return w.before("parquet-mr", 1, 10, 0) || w.before("parquet-cpp", 1, 3, 0)
}

// shortChunks: PARQUET-816, parquet-mr before 1.2.9 left the dictionary page's header out of the chunk's size.
func (w writer) shortChunks() bool { return w.before("parquet-mr", 1, 2, 9) }

// lostNaNBounds: parquet-go computes the bounds of a dictionary-encoded float page with comparisons that a NaN ends, so that
// values beside it fall outside of them (seen with v0.32.0, which states no version in created_by).
func (w writer) lostNaNBounds() bool { return strings.HasSuffix(w.app, "/parquet-go") }

// alwaysCompressed: ARROW-10353, parquet-cpp before Arrow 3.0.0 compressed the values of V2 pages and said that it had not.
func (w writer) alwaysCompressed() bool { return w.before("parquet-cpp", 3, 0, 0) }
