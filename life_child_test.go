package skomer_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/faulty"
	"github.com/skomerdb/skomer/internal/store/mem"
	"github.com/skomerdb/skomer/internal/store/s3"
)

// lifeChild is the setting that makes this test binary a process of TestLifeOfAnOverlay, as JSON.
const lifeChild = "SKOMER_TEST_LIFE_CHILD"

// lifeSetting is where a process works.
type lifeSetting struct {
	Table, Overlay string
	S3             *lifeServer // of an overlay that is not local
	Memory         bool
	Seed           uint64
}

// lifeMemory holds the overlays of processes that are goroutines of this one.
var lifeMemory = mem.New()

// overlays finds the store of the overlay.
func (s *lifeSetting) overlays() lake.Resolver {
	var st store.Store
	switch x := s.S3; {
	case x != nil:
		st = s3.New(s3.Options{Endpoint: x.Endpoint, Region: x.Region, AccessKey: x.AccessKey, Secret: x.Secret})
	case s.Memory:
		st = lifeMemory
	default:
		return lake.LocalFiles()
	}
	return func(location string) (store.Store, string, error) { return st, location, nil }
}

// lifeServer is an object store that speaks S3.
type lifeServer struct{ Endpoint, Region, AccessKey, Secret string }

// lifeCommand is one operation that a process is told to do.
type lifeCommand struct {
	Op, Arg string
	At      string // of a query
	Faults  bool
	// Stop is "pause" or "kill": the process stops itself at its nth write to the overlay, before or after it is done.
	Stop  string
	Nth   int64
	After bool
}

// lifeResult is what became of it.
type lifeResult struct {
	Err, Class string
	Answer     string
	Count      int64            // files, objects or artifacts that the operation changed
	Faults     map[string]int64 // injected so far, by name
}

// lifeProcess is the state of such a process.
type lifeProcess struct {
	setting lifeSetting
	table   *skomer.Table
	calm    atomic.Bool
	stop    *stopping
	faults  []func() map[string]int64
}

// serveLife does what it is told on standard input, a command a line, until that ends.
func serveLife(setting string, in io.Reader, out io.Writer) error {
	p := &lifeProcess{}
	if err := json.Unmarshal([]byte(setting), &p.setting); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c lifeCommand
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return err
		}
		r, err := p.do(c)
		if err != nil {
			r.Err, r.Class = err.Error(), fault.ClassOf(err).String()
		}
		r.Faults = p.injected()
		line, err := json.Marshal(r)
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", line)
		}
		if err != nil {
			return err
		}
	}
	return lines.Err()
}

func (p *lifeProcess) injected() map[string]int64 {
	out := map[string]int64{}
	for _, f := range p.faults {
		for name, n := range f() {
			out[name] += n
		}
	}
	return out
}

// open makes a client whose stores fail now and then, and stop the process where they are told to.
func (p *lifeProcess) open(ctx context.Context) error {
	data := p.resolver("data", lake.LocalFiles(),
		faulty.Rule{Rate: 0.01, Err: faulty.Throttled},
		faulty.Rule{Op: faulty.Fetch, Rate: 0.005, Err: faulty.CutShort})
	files := p.setting.overlays()
	written := func(key string) bool { return !strings.HasSuffix(key, "detached_catalog.json") }
	overlays := p.resolver("overlay", files,
		faulty.Rule{Rate: 0.01, Err: faulty.Throttled},
		faulty.Rule{Op: faulty.PutNew, Rate: 0.02, Err: faulty.TimedOut, After: true},
		faulty.Rule{Op: faulty.PutNew, Rate: 0.01, Err: faulty.CutShort, Key: written},
		faulty.Rule{Op: faulty.Fetch, Rate: 0.01, Flip: true},
		faulty.Rule{Op: faulty.PutIf, Rate: 0.2, Err: faulty.Class(fault.Denied)}, // the head stays stale
	)
	c, err := skomer.New(skomer.Config{
		OverlayRoot: "unused", MaxStaleness: time.Nanosecond, MinPlannedFiles: -1, MinPlannedScanBytes: -1, CacheBytes: 8 << 20, Workers: 2,
	}.WithStores(data, overlays))
	if err != nil {
		return err
	}
	p.table, err = c.Open(ctx, p.setting.Table, skomer.TableOptions{Overlay: p.setting.Overlay})
	return err
}

// faultNames are the rules of open, in order.
var faultNames = map[string][]string{
	"data":    {"data throttled", "data cut short"},
	"overlay": {"overlay throttled", "overlay timed out after success", "overlay upload torn", "overlay bits flipped", "overlay head stale"},
}

// resolver decorates the store of a resolver. Rules strike only while the process is not calm.
func (p *lifeProcess) resolver(name string, plain lake.Resolver, rules ...faulty.Rule) lake.Resolver {
	for i := range rules {
		key := rules[i].Key
		rules[i].Key = func(k string) bool { return !p.calm.Load() && (key == nil || key(k)) }
	}
	var made *stopping
	return func(location string) (store.Store, string, error) {
		s, key, err := plain(location)
		if err != nil {
			return nil, "", err
		}
		if made == nil {
			f := faulty.New(s, p.setting.Seed, rules...)
			made = &stopping{Store: f}
			p.faults = append(p.faults, func() map[string]int64 {
				out := map[string]int64{}
				for i, n := range f.Injected() {
					out[faultNames[name][i]] = int64(n)
				}
				return out
			})
			if name == "overlay" {
				p.stop = made
			}
		}
		return made, key, nil
	}
}

// stopping is a store that stops its process at a write.
type stopping struct {
	store.Store
	left   atomic.Int64 // writes until then; 0: never
	signal atomic.Int64
	after  atomic.Bool
}

func (s *stopping) arm(c lifeCommand) {
	s.left.Store(0)
	s.after.Store(c.After)
	switch c.Stop {
	case "pause":
		s.signal.Store(int64(syscall.SIGSTOP))
	case "kill":
		s.signal.Store(int64(syscall.SIGKILL))
	default:
		return
	}
	s.left.Store(c.Nth)
}

// around does a write and stops the process before or after it, if it is the one.
func (s *stopping) around(write func()) {
	strikes := s.left.Load() > 0 && s.left.Add(-1) == 0
	stop := func() {
		_ = syscall.Kill(os.Getpid(), syscall.Signal(s.signal.Load())) // of itself
		time.Sleep(time.Millisecond)                                   // a signal to oneself may arrive a little later
	}
	if strikes && !s.after.Load() {
		stop()
	}
	write()
	if strikes && s.after.Load() {
		stop()
	}
}

func (s *stopping) PutNew(ctx context.Context, key string, r io.ReadSeeker) (tag store.Tag, err error) {
	s.around(func() { tag, err = s.Store.PutNew(ctx, key, r) })
	return tag, err
}

func (s *stopping) PutIf(ctx context.Context, key string, old store.Tag, b []byte) (tag store.Tag, err error) {
	s.around(func() { tag, err = s.Store.PutIf(ctx, key, old, b) })
	return tag, err
}

func (s *stopping) Delete(ctx context.Context, keys []string) (err error) {
	s.around(func() { err = s.Store.Delete(ctx, keys) })
	return err
}

// do does one command.
func (p *lifeProcess) do(c lifeCommand) (r lifeResult, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // it may be paused, and the machine busy
	defer cancel()
	p.calm.Store(!c.Faults)
	if p.table == nil {
		if err := p.open(ctx); err != nil {
			return r, err
		}
	}
	p.stop.arm(c)
	defer func() {
		if p.table != nil {
			p.table.Close() // what is written in the background counts too
		}
		p.stop.left.Store(0)
	}()
	switch c.Op {
	case "sync":
		report, err := p.table.Sync(ctx, skomer.SyncOptions{})
		if report != nil {
			r.Count = int64(report.Artifacts)
		}
		return r, err
	case "sweep":
		_, err = p.table.Sync(ctx, skomer.SyncOptions{Sweep: true})
	case "vacuum":
		report, err := p.table.Vacuum(ctx, skomer.VacuumOptions{Retain: 3, Grace: time.Millisecond, AllowEmpty: true})
		if err != nil {
			return r, err
		}
		for _, n := range report.Deleted {
			r.Count += int64(n.Objects)
		}
	case "erase":
		_, err = p.table.Erase(ctx, skomer.EraseOptions{GoneOnly: true, Deadline: time.Second})
	case "rollback":
		versions, err := p.table.Versions(ctx, 8)
		if err != nil || len(versions) < 2 {
			return r, err
		}
		_, err = p.table.Rollback(ctx, versions[len(versions)-1].Version)
		return r, err
	case "purge":
		_, _, err = p.table.PurgeIndex(ctx, c.Arg)
	case "silence":
		_, err = p.table.PauseIndex(ctx, c.Arg, "a test")
	case "resume":
		_, err = p.table.ResumeIndex(ctx, c.Arg)
	case "consolidate":
		_, err = p.table.Consolidate(ctx, false)
	case "repair":
		_, err = p.table.Repair(ctx, false)
	case "scrub":
		_, err = p.table.Scrub(ctx, skomer.ScrubOptions{})
	case "reindex":
		_, err = p.table.Reindex(ctx, c.Arg, false, skomer.SyncOptions{})
	case "add":
		_, err = p.table.AddIndex(ctx, c.Arg)
	case "drop":
		_, err = p.table.DropIndex(ctx, c.Arg)
	case "unmount":
		if err = p.table.Unmount(ctx); err == nil {
			err = p.table.Mount(ctx)
		}
	case "query":
		return p.query(ctx, c)
	case "reopen":
		p.table.Close()
		p.table, p.faults = nil, nil
	default:
		err = fmt.Errorf("no such operation: %s", c.Op)
	}
	return r, err
}

func (p *lifeProcess) query(ctx context.Context, c lifeCommand) (r lifeResult, err error) {
	rows, err := p.table.Query(ctx, skomer.Query{Where: c.Arg, At: c.At, Select: []string{"_file", "_pos"}, Limit: -1})
	if err != nil {
		return r, err
	}
	got := map[string][]int{}
	err = rows.Each(ctx, func(b *skomer.Batch) error {
		for i := range b.Rows {
			file, _ := b.Cols[0].Value(i)
			pos, _ := b.Cols[1].Value(i)
			got[file.S] = append(got[file.S], int(pos.Int64()))
		}
		return nil
	})
	r.Answer, r.Count = describe(got), int64(total(got))
	return r, err
}
