package ranges

import (
	"sync"

	"github.com/skomerdb/skomer/internal/store"
)

// maxSizes is how many sizes are remembered.
const maxSizes = 1 << 16

// sizes remembers the sizes of objects by their tags, under which they cannot change.
type sizes struct {
	mu    sync.Mutex
	known map[tagged]int64
}

type tagged struct {
	key string
	tag store.Tag
}

// of is the size of an object under a tag, or -1.
func (s *sizes) of(key string, tag store.Tag) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := s.known[tagged{key, tag}]; ok && tag != "" {
		return n
	}
	return -1
}

func (s *sizes) saw(key string, tag store.Tag, size int64) {
	if tag == "" || size < 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxSizes {
		s.known = map[tagged]int64{}
	}
	s.known[tagged{key, tag}] = size
}

// Saw remembers the size of an object that was listed, described or written.
func (r *Reader) Saw(key string, tag store.Tag, size int64) {
	if r.NoSuffix {
		r.sizes.saw(key, tag, size)
	}
}
