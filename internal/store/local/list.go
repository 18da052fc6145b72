package local

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// List implements store.Store. It reads the names of the directory that prefix ends in, and only those directories
// below it whose objects are among the first `most` after `after`; it describes only the objects that it returns.
func (s *Store) List(ctx context.Context, prefix, after string, most int) ([]store.Info, error) {
	if !strings.HasPrefix(prefix, "/") {
		return nil, fault.New(fault.Invalid, prefix, "not an absolute path")
	}
	if s.under != "" && !confined(prefix, s.under) {
		return nil, fault.New(fault.Refused, prefix, "outside of %s, to which this store is confined", s.under)
	}
	if err := ctx.Err(); err != nil {
		return nil, fault.About(prefix, err)
	}
	store.Count(ctx, store.Usage{Lists: 1})
	l := lister{ctx: ctx, prefix: prefix, after: after, most: most}
	if err := l.walk(prefix[:strings.LastIndexByte(prefix, '/')+1]); err != nil {
		return nil, err
	}
	return l.out, nil
}

type lister struct {
	ctx           context.Context
	prefix, after string
	most          int
	out           []store.Info
}

// walk appends the objects below dir, which ends in a slash, in ascending order of their keys.
func (l *lister) walk(dir string) error {
	names, err := l.names(dir)
	if err != nil {
		return err
	}
	for len(names) > 0 && len(l.out) < l.most {
		if err := l.ctx.Err(); err != nil {
			return fault.About(l.prefix, err)
		}
		key := heap.Pop(&names).(string)
		if strings.HasSuffix(key, "/") {
			err = l.walk(key)
		} else {
			err = l.add(key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// names are the entries of dir that can lead to wanted keys, as a heap; directories end in a slash, because that is
// where they sort among the keys.
func (l *lister) names(dir string) (keyHeap, error) {
	entries, err := readDir(dir)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, classify(dir, err)
	}
	var out keyHeap
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), reserved) {
			continue
		}
		key := dir + e.Name()
		if e.IsDir() {
			key += "/"
		}
		if l.wants(key) {
			out = append(out, key)
		}
	}
	heap.Init(&out)
	return out, nil
}

// wants reports whether key, or for a directory a key below it, has the prefix and is greater than after.
func (l *lister) wants(key string) bool {
	if !strings.HasPrefix(key, l.prefix) {
		return false
	}
	return key > l.after || strings.HasSuffix(key, "/") && strings.HasPrefix(l.after, key)
}

// add describes one file; one that vanished or is no file is left out.
func (l *lister) add(key string) error {
	info, err := statPath(key)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	l.out = append(l.out, info)
	return nil
}

// readDir reads all entries of a directory in the order the file system has them.
func readDir(dir string) ([]fs.DirEntry, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

// keyHeap is a heap of strings, the least on top: the first few keys of a large directory cost no full sort.
type keyHeap []string

func (h keyHeap) Len() int           { return len(h) }
func (h keyHeap) Less(i, j int) bool { return cmp.Less(h[i], h[j]) }
func (h keyHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *keyHeap) Push(x any)        { *h = append(*h, x.(string)) }
func (h *keyHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
