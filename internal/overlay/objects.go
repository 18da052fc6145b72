package overlay

// Held is objects that a version names, and the bytes of them that it needs.
type Held struct {
	Objects int
	Bytes   int64
}

// Objects counts the objects that the version names, by sort: "bundle", "chunk", "list" and the kinds of derived objects. An object that
// holds derived objects of several kinds counts with each; the version itself and its head are not named.
func (v *Version) Objects() map[string]Held {
	out := map[string]Held{}
	named := map[DerivedKey]bool{}
	add := func(sort, key string, bytes int64) {
		h := out[sort]
		if h.Bytes += bytes; !named[DerivedKey{sort, key}] {
			named[DerivedKey{sort, key}] = true
			h.Objects++
		}
		out[sort] = h
	}
	v.Each(func(a ArtifactInfo) bool {
		add("bundle", a.Bundle, a.Body.Len+a.Root.Len+a.Lineage.Len)
		return true
	})
	for i := range v.body.chunks {
		c := &v.body.chunks[i]
		add("chunk", c.name, c.hotLen+c.wideLen)
	}
	for i := range v.body.lists {
		add("list", v.body.lists[i].name, v.body.lists[i].length)
	}
	for _, e := range v.EveryDerived() {
		if e.Len > 0 {
			add(e.Kind, e.Key, e.Len)
		}
	}
	return out
}
