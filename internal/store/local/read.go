package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// chunk is how much one call reads at most, so that a cancelled wave ends soon.
const chunk = 8 << 20

// Fetch implements store.Store.
func (s *Store) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	out := make([]store.Result, len(reads))
	var used store.Counter
	s.pool.each(len(reads), func(i int) { out[i] = s.fetch(ctx, reads[i], &used) })
	sum := used.Usage()
	if sum.Gets > 0 {
		sum.Waves = 1
	}
	store.Count(ctx, sum)
	return out
}

func (s *Store) fetch(ctx context.Context, r store.Read, used *store.Counter) store.Result {
	res := store.Result{Size: -1}
	if err := ctx.Err(); err != nil {
		res.Err = fault.About(r.Key, err)
		return res
	}
	f, info, err := s.open(r.Key)
	if err == nil {
		defer f.Close()
		err = store.CheckTag(r.Key, r.Tag, info.Tag)
	}
	if err != nil {
		used.Add(store.Usage{Gets: 1})
		res.Err = err
		return res
	}
	res.Tag, res.Size = info.Tag, info.Size
	res.Data, res.Err = s.readSpans(ctx, f, r, info, used)
	return res
}

// open opens a regular file and describes it.
func (s *Store) open(key string) (*os.File, store.Info, error) {
	if err := s.check(key); err != nil {
		return nil, store.Info{}, err
	}
	// Without O_NONBLOCK a named pipe would block until somebody writes to it.
	f, err := os.OpenFile(key, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, store.Info{}, classify(key, err)
	}
	info, _, err := describe(key, f)
	if err != nil {
		f.Close()
		return nil, store.Info{}, err
	}
	return f, info, nil
}

// describe gives the facts of an open file, and how many names it has.
func describe(key string, f *os.File) (info store.Info, names uint64, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return store.Info{}, 0, classify(key, err)
	}
	info, err = infoOf(key, &st)
	return info, uint64(st.Nlink), err //nolint:unconvert // 16 bits on darwin
}

func infoOf(key string, st *unix.Stat_t) (store.Info, error) {
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		var mode os.FileMode
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			mode = os.ModeDir
		}
		return store.Info{}, notFile(key, mode)
	}
	tag := fmt.Sprintf("%x-%x-%x-%x", st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
	return store.Info{Key: key, Size: st.Size, Tag: store.Tag(tag), Modified: time.Unix(st.Mtim.Unix())}, nil
}

// readSpans reads the planned ranges of an open file and makes sure that it stayed the same meanwhile.
func (s *Store) readSpans(ctx context.Context, f *os.File, r store.Read, info store.Info, used *store.Counter) ([][]byte, error) {
	plan, err := store.PlanRead(r, info.Size, s.gap)
	if err != nil {
		used.Add(store.Usage{Gets: 1})
		return nil, err
	}
	used.Add(store.Usage{Gets: int64(max(1, len(plan.Requests)))})
	bodies := make([]store.Body, len(plan.Requests))
	errs := make([]error, len(plan.Requests))
	s.pool.each(len(plan.Requests), func(i int) {
		q := plan.Requests[i]
		bodies[i] = store.Body{Off: q.Off, Data: make([]byte, q.Len)}
		errs[i] = readFull(ctx, f, bodies[i].Data, q.Off)
		used.Add(store.Usage{BytesRead: q.Len})
	})
	if err := errors.Join(errs...); err != nil && !errors.Is(err, io.EOF) {
		return nil, classify(r.Key, err)
	}
	if err := unchanged(f, info); err != nil {
		return nil, err
	}
	if err := errors.Join(errs...); err != nil {
		return nil, classify(r.Key, err)
	}
	return plan.Cut(bodies)
}

// unchanged gives a Stale fault if the content of an open file may have changed since it was described. A file that lost
// its last name has another ctime, but was replaced or deleted as a whole: what is read from it is its content.
func unchanged(f *os.File, before store.Info) error {
	after, names, err := describe(before.Key, f)
	if err != nil {
		return err
	}
	replaced := names == 0 && after.Size == before.Size && after.Modified.Equal(before.Modified)
	if after.Tag != before.Tag && !replaced {
		return fault.New(fault.Stale, before.Key, "changed while it was read").WithRetry()
	}
	return nil
}

func readFull(ctx context.Context, f *os.File, b []byte, off int64) error {
	for len(b) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.ReadAt(b[:min(len(b), chunk)], off)
		if err != nil {
			return err
		}
		b, off = b[n:], off+int64(n)
	}
	return nil
}

// Stat implements store.Store.
func (s *Store) Stat(ctx context.Context, keys []string) []store.Info {
	out := make([]store.Info, len(keys))
	s.pool.each(len(keys), func(i int) {
		err := ctx.Err()
		if err != nil {
			err = fault.About(keys[i], err)
		} else {
			out[i], err = s.stat(keys[i])
		}
		out[i].Key, out[i].Err = keys[i], err
	})
	store.Count(ctx, store.Usage{Heads: int64(len(keys))})
	return out
}

func (s *Store) stat(key string) (store.Info, error) {
	if err := s.check(key); err != nil {
		return store.Info{}, err
	}
	return statPath(key)
}

func statPath(path string) (store.Info, error) {
	var st unix.Stat_t
	for {
		err := unix.Stat(path, &st)
		if err == nil {
			return infoOf(path, &st)
		}
		if !errors.Is(err, unix.EINTR) {
			return store.Info{}, classify(path, err)
		}
	}
}
