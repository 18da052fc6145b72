package index

// Send replaces rows of a source by their new ordinals, or Gone.
func (m *OrdinalMap) Send(source int, rows []uint32) {
	pieces := m.sources[source].pieces
	if len(pieces) == 1 && pieces[0].kept == nil && pieces[0].scattered == nil {
		at, base := pieces[0].at, pieces[0].base
		for i, row := range rows {
			to := uint32(Gone)
			if row-at.Start < at.Len() {
				to = base + row - at.Start
			}
			rows[i] = to
		}
		return
	}
	for i, row := range rows {
		rows[i] = m.To(source, row)
	}
}

// join makes one piece of whole ones that touch and stay together.
func (s *sourceMap) join() {
	joined := s.pieces[:0]
	for _, p := range s.pieces {
		if n := len(joined); n > 0 && p.follows(&joined[n-1]) {
			joined[n-1].at.End = p.at.End
		} else {
			joined = append(joined, p)
		}
	}
	s.pieces = joined
}

func (p *piece) follows(q *piece) bool {
	whole := p.kept == nil && p.scattered == nil && q.kept == nil && q.scattered == nil
	return whole && q.at.End == p.at.Start && q.base+q.at.Len() == p.base
}
