package rowset

// Bridge is s with the gaps of at most gap rows filled: what to decode where skipping a few rows costs more than reading them.
func Bridge(s *Set, gap uint32) *Set {
	var out []Range
	for _, r := range s.Ranges() {
		if n := len(out); n > 0 && r.Start-out[n-1].End <= gap {
			out[n-1].End = r.End
			continue
		}
		out = append(out, r)
	}
	return (&Set{size: s.size, ranges: out}).compact()
}
