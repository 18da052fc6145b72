package overlay

import (
	"encoding/binary"

	"github.com/skomerdb/skomer/internal/bytescan"
)

// widePart is the part of a chunk that no query needs: checksums of bodies and the paths of files.
type widePart struct {
	sums  []byte
	roots []byte   // nil: not known
	paths []string // by file number
}

// openWide reads the wide part of a chunk, whose checksum the caller has verified.
func openWide(name string, c *chunk, raw []byte) (*widePart, error) {
	r := bytescan.NewReader("paths of artifact list "+name, raw)
	w := &widePart{sums: r.Bytes(sha256Size * c.artifacts.n)}
	if c.version > 1 {
		w.roots = r.Bytes(sha256Size * c.artifacts.n)
	}
	ranks := r.Bytes(rankSize * c.files.n)
	restarts := r.Bytes(4 * ((c.files.n + pathsPerBlock - 1) / pathsPerBlock))
	if r.Err() != nil {
		return nil, r.Err()
	}
	start := r.Offset()
	sorted := make([]string, c.files.n)
	last, total := "", 0
	for i := range sorted {
		if i%pathsPerBlock == 0 {
			last = ""
			if got := binary.LittleEndian.Uint32(restarts[i/pathsPerBlock*4:]); int(got) != r.Offset()-start {
				r.Fail("path %d begins at %d, expected %d", i, r.Offset()-start, got)
			}
		}
		shared := r.Count(len(last), 0)
		rest := r.Blob(maxPath - shared)
		if r.Err() != nil {
			return nil, r.Err()
		}
		if total += shared + len(rest); total > maxPathBytes {
			r.Fail("paths of more than %d bytes", maxPathBytes)
			return nil, r.Err()
		}
		sorted[i] = last[:shared] + string(rest)
		last = sorted[i]
	}
	w.paths = make([]string, c.files.n)
	for i := range w.paths {
		rank := int(binary.LittleEndian.Uint32(ranks[i*rankSize:]))
		if rank >= len(sorted) {
			r.Fail("file %d of %d has rank %d", i, len(sorted), rank)
			break
		}
		if keyOf(sorted[rank]) != pathKey(c.files.at(i)[:16]) {
			r.Fail("path of file %d does not have its key", i)
			break
		}
		w.paths[i] = sorted[rank]
	}
	return w, r.Done()
}

// root is the SHA-256 of an artifact's root; zero where it is not known.
func (w *widePart) root(artifact int) (sum [32]byte) {
	if w.roots != nil {
		copy(sum[:], w.roots[artifact*sha256Size:])
	}
	return sum
}

func (w *widePart) sum(artifact int) [32]byte { return [32]byte(w.sums[artifact*sha256Size:]) }
