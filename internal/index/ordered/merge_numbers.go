package ordered

import (
	"encoding/binary"

	"github.com/skomerdb/skomer/internal/index"
)

// bytesLeft is what of a key is its own where so many bytes are shared.
var bytesLeft = [8]uint64{1<<64 - 1, 1<<56 - 1, 1<<48 - 1, 1<<40 - 1, 1<<32 - 1, 1<<24 - 1, 1<<16 - 1, 1<<8 - 1}

// unshare reads keys of eight bytes from b on, at least eight bytes behind its start. It returns how many it read and where they end: all that
// words has room for, unless one does not fit or is not above the one before. Bytes in front of a key's own lie where the shared ones belong.
func unshare(words []uint64, b []byte, from int, last uint64) (n, end int) {
	at := from
	for n < len(words) && at < len(b) {
		shared := uint(b[at])
		if shared > 7 {
			break
		}
		next := at + 9 - int(shared)
		if next > len(b) {
			break
		}
		key := last ^ (last^binary.BigEndian.Uint64(b[next-8:]))&bytesLeft[shared]
		if key <= last {
			break
		}
		words[n] = key
		n, at, last = n+1, next, key
	}
	return n, at
}

// unpackRows reads packed numbers of at most 32 bits and returns the largest.
func unpackRows(rows []uint32, packed []byte, width uint) (most uint32) {
	i, mask := 0, uint64(1)<<width-1
	if len(packed) >= 8 {
		last, bit := uint(len(packed)-8), uint(0)
		for ; i < len(rows) && bit/8 <= last; i++ {
			at := bit / 8
			row := uint32(binary.LittleEndian.Uint64(packed[at:at+8]) >> (bit & 7) & mask)
			rows[i], most, bit = row, max(most, row), bit+width
		}
	}
	for ; i < len(rows); i++ {
		rows[i] = uint32(unpack(packed, i, width))
		most = max(most, rows[i])
	}
	return most
}

// zipAlone puts numbers and their only rows together and reports how many rows stay, those of a stretch. Which do is as random as the keys, so it
// has no branches on that.
func zipAlone(out []pair, words []uint64, rows []uint32, along *index.Stretch) (kept int) {
	start, length, to := along.Old.Start, along.Old.Len(), along.To
	rows = rows[:len(words)]
	for i, word := range words {
		row := rows[i] - start
		out[kept] = pair{word, uint64(to + row)}
		stays := 0
		if row < length {
			stays = 1
		}
		kept += stays
	}
	return kept
}

// mergeNumbers merges two runs of numbers from both ends at once: two chains of dependent steps instead of one, neither with a branch that
// depends on which number is less. Pairs of equal numbers come out next to each other.
func mergeNumbers(out, a, b []pair) {
	n := len(a) + len(b)
	i, j, k, l := 0, 0, len(a)-1, len(b)-1
	front, back := 0, n-1
	for k-i > 0 && l-j > 0 {
		p, q := a[i], b[j]
		later := 0
		if q.word < p.word {
			later = 1
		}
		mask := -uint64(later)
		out[front] = pair{p.word ^ (p.word^q.word)&mask, p.from ^ (p.from^q.from)&mask}
		i, j, front = i+1-later, j+later, front+1

		p, q = a[k], b[l]
		later = 0
		if q.word < p.word {
			later = 1
		}
		mask = -uint64(later)
		out[back] = pair{q.word ^ (p.word^q.word)&mask, q.from ^ (p.from^q.from)&mask}
		k, l, back = k-later, l-1+later, back-1
	}
	for out, a, b = out[front:back+1], a[i:k+1], b[j:l+1]; len(a) > 0 && len(b) > 0; out = out[1:] {
		if a[0].word <= b[0].word {
			out[0], a = a[0], a[1:]
		} else {
			out[0], b = b[0], b[1:]
		}
	}
	copy(out[copy(out, a):], b)
}
