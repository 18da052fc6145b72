package bloom

// hashSet is a set of hashes by open addressing with linear probing, at most half full. The zero value is empty.
type hashSet struct {
	slots []uint64 // 0: free
	n     int
	zero  bool // 0 is in the set
}

func (s *hashSet) len() int {
	if s.zero {
		return s.n + 1
	}
	return s.n
}

func (s *hashSet) add(h uint64) {
	if h == 0 {
		s.zero = true
		return
	}
	if 2*s.n >= len(s.slots) {
		s.grow()
	}
	mask := uint64(len(s.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		switch s.slots[i] {
		case 0:
			s.slots[i] = h
			s.n++
			return
		case h:
			return
		}
	}
}

func (s *hashSet) grow() {
	old := s.slots
	s.slots, s.n = make([]uint64, max(1024, 2*len(old))), 0
	for _, h := range old {
		if h != 0 {
			s.add(h)
		}
	}
}

func (s *hashSet) each(visit func(uint64)) {
	if s.zero {
		visit(0)
	}
	for _, h := range s.slots {
		if h != 0 {
			visit(h)
		}
	}
}

// clear empties the set and keeps its memory.
func (s *hashSet) clear() {
	clear(s.slots)
	s.n, s.zero = 0, false
}
