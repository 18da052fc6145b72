package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// racers is how many writers race.
const racers = 16

func testPutNewOnce(t *testing.T, k *kit) {
	tag := k.put("a/b/c", []byte("first"))
	_, err := k.PutNew(k.ctx, k.key("a/b/c"), strings.NewReader("second"))
	require.Equal(t, fault.Conflict, fault.ClassOf(err), "%v", err)
	require.Contains(t, err.Error(), k.key("a/b/c"))
	require.Equal(t, "first", k.whole("a/b/c"))
	require.Equal(t, tag, k.stat("a/b/c").Tag, "a lost race changes nothing")
	require.Equal(t, []string{"a/b/c"}, k.list("", "", 10))
}

func testPutNewRewinds(t *testing.T, k *kit) {
	r := strings.NewReader("from the start")
	_, err := r.Seek(5, io.SeekStart)
	require.NoError(t, err)
	_, err = k.PutNew(k.ctx, k.key("o"), r)
	require.NoError(t, err)
	require.Equal(t, "from the start", k.whole("o"))
}

// brokenReader fails in the middle.
type brokenReader struct{ io.ReadSeeker }

var errBroken = errors.New("source broke")

func (b brokenReader) Read(p []byte) (int, error) {
	n, err := b.ReadSeeker.Read(p)
	if errors.Is(err, io.EOF) {
		err = errBroken
	}
	return n, err
}

func testPutNewBrokenReader(t *testing.T, k *kit) {
	_, err := k.PutNew(k.ctx, k.key("d/o"), brokenReader{bytes.NewReader(k.bytesOf(100_000))})
	require.ErrorIs(t, err, errBroken)
	require.Equal(t, fault.NotFound, fault.ClassOf(k.stat("d/o").Err), "nothing half written is visible")
	require.Empty(t, k.list("", "", 10))
	k.put("d/o", []byte("now"))
	require.Equal(t, "now", k.whole("d/o"))
}

// race runs racers of f at once and counts those that won; the others must have met a conflict.
func race(t *testing.T, f func(i int) error) (winner int) {
	t.Helper()
	errs := make([]error, racers)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}
	close(start)
	wg.Wait()
	winner = -1
	for i, err := range errs {
		if err == nil {
			require.Equal(t, -1, winner, "two writers won")
			winner = i
			continue
		}
		require.Equal(t, fault.Conflict, fault.ClassOf(err), "%v", err)
	}
	require.NotEqual(t, -1, winner, "nobody won")
	return winner
}

func testPutNewRace(t *testing.T, k *kit) {
	for round := range 10 {
		name := fmt.Sprintf("r%d/o", round)
		winner := race(t, func(i int) error {
			if i%2 == 0 {
				_, err := k.PutNew(k.ctx, k.key(name), strings.NewReader(strconv.Itoa(i)))
				return err
			}
			_, err := k.PutIf(k.ctx, k.key(name), "", []byte(strconv.Itoa(i)))
			return err
		})
		require.Equal(t, strconv.Itoa(winner), k.whole(name))
		require.Equal(t, []string{name}, k.list(fmt.Sprintf("r%d/", round), "", 10))
	}
}

func testPutIf(t *testing.T, k *kit) {
	tag := k.replace("head", "", []byte("1"))
	_, err := k.PutIf(k.ctx, k.key("head"), "", []byte("x"))
	require.Equal(t, fault.Conflict, fault.ClassOf(err), "empty old: must not exist: %v", err)
	next := k.replace("head", tag, []byte("22"))
	_, err = k.PutIf(k.ctx, k.key("head"), tag, []byte("x"))
	require.Equal(t, fault.Conflict, fault.ClassOf(err), "%v", err)
	require.Equal(t, "22", k.whole("head"))
	require.Equal(t, next, k.stat("head").Tag)
	for _, missing := range []string{"nothing", "no/such/dir/o"} {
		_, err = k.PutIf(k.ctx, k.key(missing), tag, []byte("x"))
		require.Equal(t, fault.Conflict, fault.ClassOf(err), "%v", err)
	}
	require.Equal(t, []string{"head"}, k.list("", "", 10))
}

func testPutIfRace(t *testing.T, k *kit) {
	tag := k.put("head", []byte("start"))
	for round := range 10 {
		tags := make([]store.Tag, racers)
		winner := race(t, func(i int) (err error) {
			tags[i], err = k.PutIf(k.ctx, k.key("head"), tag, fmt.Appendf(nil, "round %d writer %02d", round, i))
			return err
		})
		tag = tags[winner]
		require.Equal(t, fmt.Sprintf("round %d writer %02d", round, winner), k.whole("head"))
		require.Equal(t, tag, k.stat("head").Tag)
	}
	require.Equal(t, []string{"head"}, k.list("", "", 10))
}

// testPutIfCounts lets writers count to a number together: a lost update shows as a smaller one.
func testPutIfCounts(t *testing.T, k *kit) {
	const each = 8
	k.put("counter", []byte("000"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range each {
				k.increment("counter")
			}
		})
	}
	wg.Wait()
	require.Equal(t, fmt.Sprintf("%03d", 8*each), k.whole("counter"))
}

func (k *kit) increment(name string) {
	for {
		out := k.Fetch(k.ctx, []store.Read{{Key: k.key(name)}})[0]
		if fault.Is(out.Err, fault.Stale) && fault.Retryable(out.Err) {
			continue
		}
		if out.Err != nil {
			k.Errorf("read: %v", out.Err)
			return
		}
		n, err := strconv.Atoi(string(out.Data[0]))
		if err != nil {
			k.Errorf("half an object: %q", out.Data[0])
			return
		}
		_, err = k.PutIf(k.ctx, k.key(name), out.Tag, fmt.Appendf(nil, "%03d", n+1))
		if err == nil {
			return
		}
		if !fault.Is(err, fault.Conflict) {
			k.Errorf("write: %v", err)
			return
		}
	}
}

func testDeleteAndRecreate(t *testing.T, k *kit) {
	tag := k.put("a/b/o", []byte("one"))
	k.put("a/keep", []byte("kept"))
	require.NoError(t, k.Delete(k.ctx, []string{k.key("a/b/o"), k.key("a/b/missing"), k.key("no/such/dir/o")}))
	require.Equal(t, fault.NotFound, fault.ClassOf(k.stat("a/b/o").Err))
	require.Equal(t, fault.NotFound, fault.ClassOf(k.read("a/b/o", "").Err))
	require.Equal(t, []string{"a/keep"}, k.list("", "", 10))
	require.NoError(t, k.Delete(k.ctx, []string{k.key("a/b/o")}), "deleting twice is fine")
	require.NoError(t, k.Delete(k.ctx, nil))
	_, err := k.PutIf(k.ctx, k.key("a/b/o"), tag, []byte("x"))
	require.Equal(t, fault.Conflict, fault.ClassOf(err), "an object that is gone is not replaced: %v", err)
	again := k.put("a/b/o", []byte("two"))
	require.NotEqual(t, tag, again)
	require.Equal(t, fault.Stale, fault.ClassOf(k.read("a/b/o", tag).Err))
	require.Equal(t, "two", k.whole("a/b/o"))
}
