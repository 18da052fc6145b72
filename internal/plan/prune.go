package plan

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/predicate"
)

// block is how many files are judged at a time, so that the answers of a tree's nodes stay in the first cache level.
const block = 4096

// blocksPerWorker keeps small tables on one core.
const blocksPerWorker = 8

// Pruning is the answer of a snapshot's manifests to a predicate.
type Pruning struct {
	// Answers holds one answer per data file, in the order of facts.Files.
	Answers []Answer
	files   *facts.Files
	root    *node
	tests   map[*predicate.Leaf]*leafTest
}

// node is a predicate node with its leaf compiled. A Test without a leaf cannot be judged by metadata.
type node struct {
	kind predicate.Kind
	kids []*node
	leaf *leafTest
}

// Prune judges every data file of s by partition values, bounds and counts. Its cost is linear in files × leaves; memory is
// one byte a file. The facts must not change while the Pruning is in use.
func Prune(s *facts.Snapshot, t *predicate.Tree) *Pruning {
	p := &Pruning{Answers: make([]Answer, s.Files.Len()), files: &s.Files, tests: map[*predicate.Leaf]*leafTest{}}
	p.root = p.compile(s, t)
	blocks := (len(p.Answers) + block - 1) / block
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), max(1, blocks/blocksPerWorker)) {
		workers.Go(func() {
			for at := int(next.Add(1)) - 1; at < blocks; at = int(next.Add(1)) - 1 {
				p.judgeBlock(at * block)
			}
		})
	}
	workers.Wait()
	return p
}

func (p *Pruning) judgeBlock(from int) {
	part := p.Answers[from:min(from+block, len(p.Answers))]
	p.root.judge(from, part)
	for i := range part {
		if p.empty(from + i) {
			part[i] = Out
		}
	}
}

// empty reports whether the manifest states that the file has no rows.
func (p *Pruning) empty(i int) bool {
	return len(p.files.Records) == len(p.Answers) && p.files.Records[i] == 0
}

func (p *Pruning) compile(s *facts.Snapshot, t *predicate.Tree) *node {
	n := &node{kind: t.Kind}
	if t.Kind == predicate.Test {
		n.leaf = newLeafTest(s, t.Leaf)
		p.tests[t.Leaf] = n.leaf
	}
	for _, k := range t.Kids {
		n.kids = append(n.kids, p.compile(s, k))
	}
	return n
}

// judge answers for the files from on. AND is the minimum and OR the maximum of its kids: unknown AND false is false,
// unknown OR false is unknown.
func (n *node) judge(from int, out []Answer) {
	switch n.kind {
	case predicate.True:
		fill(out, Whole)
	case predicate.False:
		fill(out, Out)
	case predicate.And:
		fill(out, Whole)
		for _, k := range n.kids {
			k.fold(from, out, Out, func(a, b Answer) Answer { return min(a, b) })
		}
	case predicate.Or:
		fill(out, Out)
		for _, k := range n.kids {
			k.fold(from, out, Whole, func(a, b Answer) Answer { return max(a, b) })
		}
	default:
		n.judgeLeaf(from, out)
	}
}

func (n *node) judgeLeaf(from int, out []Answer) {
	if n.leaf == nil {
		fill(out, Maybe)
		return
	}
	for i := range out {
		out[i] = n.leaf.answer(from + i)
	}
}

// fold joins the kid's answers to those of its elder siblings; files at settled stay as they are.
func (n *node) fold(from int, out []Answer, settled Answer, join func(a, b Answer) Answer) {
	if n.leaf != nil {
		for i, a := range out {
			if a != settled {
				out[i] = join(a, n.leaf.answer(from+i))
			}
		}
		return
	}
	own := make([]Answer, len(out))
	n.judge(from, own)
	for i := range out {
		out[i] = join(out[i], own[i])
	}
}

func fill(out []Answer, a Answer) {
	for i := range out {
		out[i] = a
	}
}
