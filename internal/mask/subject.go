package mask

import (
	"strings"

	"github.com/skomerdb/skomer/internal/bytescan"
)

// SubjectBytes is how much of an archived mask Subject wants to see, if the object is as long.
const SubjectBytes = 4 << 10

// Subject is the path of the data file that an archived mask is about, as its manifest states it or as it was read. ok is false where
// the first bytes of the object do not tell.
func Subject(head []byte) (path string, ok bool) {
	r := bytescan.NewReader("mask", head)
	if string(r.Bytes(len(archiveMagic))) != archiveMagic || r.U8() != archiveVersion {
		return "", false
	}
	n := r.Uvarint()
	if r.Err() != nil {
		return "", false
	}
	key := head[r.Offset():]
	key = key[:min(uint64(len(key)), n)]
	kind, rest, _ := strings.Cut(string(key), "\x00")
	path, _, ok = strings.Cut(rest, "\x00")
	return path, ok && (kind == "positions" || kind == "equality")
}
