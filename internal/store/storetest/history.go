package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// model is the contract as a map.
type model map[string]entry

type entry struct {
	content string
	tag     store.Tag
}

// testHistory runs a random history on the store and on a map and compares every answer.
func testHistory(t *testing.T, k *kit) {
	m := model{}
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("d%d/o%d", i%3, i))
	}
	var old []store.Tag // tags of the past
	for step := range 400 {
		name := names[k.rnd.IntN(len(names))]
		content := fmt.Sprintf("%04d", step)
		e, exists := m[name]
		switch k.rnd.IntN(6) {
		case 0:
			tag, err := k.PutNew(k.ctx, k.key(name), strings.NewReader(content))
			require.Equal(t, exists, fault.Is(err, fault.Conflict), "step %d: %v", step, err)
			if err == nil {
				m[name] = entry{content, tag}
			}
		case 1:
			tag, err := k.PutIf(k.ctx, k.key(name), e.tag, []byte(content))
			require.NoError(t, err, "step %d", step)
			old, m[name] = append(old, e.tag), entry{content, tag}
		case 2:
			if len(old) == 0 || old[len(old)/2] == e.tag {
				continue
			}
			_, err := k.PutIf(k.ctx, k.key(name), old[len(old)/2], []byte(content))
			if old[len(old)/2] != "" || exists {
				require.Equal(t, fault.Conflict, fault.ClassOf(err), "step %d: %v", step, err)
			}
		case 3:
			require.NoError(t, k.Delete(k.ctx, []string{k.key(name)}))
			delete(m, name)
		case 4:
			k.compareRead(m, name)
		case 5:
			prefix := []string{"", "d", "d1", "d1/", "d2/o"}[k.rnd.IntN(5)]
			after, most := names[k.rnd.IntN(len(names))], k.rnd.IntN(8)
			require.Equal(t, m.list(prefix, after, most), k.list(prefix, after, most), "step %d", step)
		}
	}
	require.Equal(t, m.list("", "", 100), k.list("", "", 100))
}

func (k *kit) compareRead(m model, name string) {
	k.Helper()
	e, exists := m[name]
	r := k.read(name, e.tag, store.Span{Off: 1, Len: 2}, store.Suffix(1))
	if !exists {
		require.Equal(k, fault.NotFound, fault.ClassOf(r.Err), "%v", r.Err)
		return
	}
	require.NoError(k, r.Err)
	require.Equal(k, []string{e.content[1:3], e.content[3:]}, texts(r.Data))
	require.Equal(k, e.tag, r.Tag)
}

func (m model) list(prefix, after string, most int) []string {
	out := []string{}
	for name := range m {
		if strings.HasPrefix(name, prefix) && name > after {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out[:min(len(out), most)]
}
