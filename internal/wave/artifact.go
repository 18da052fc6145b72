package wave

import (
	"crypto/sha256"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
)

// Artifact is where an artifact lies in its bundle and how to open it.
type Artifact struct {
	Kind     index.Kind
	Rows     uint32
	Root     store.Span
	RootCRC  uint32
	RootSum  *[32]byte // SHA-256 of the root where a checksum that can be forged is not enough; nil: it is
	Body     store.Span
	RootData []byte // the root, if it is already in memory; verified all the same
}

// Readers keeps opened artifacts between queries. It is safe for concurrent use.
type Readers interface {
	Get(bundle string, root int64) index.Reader
	Put(bundle string, root int64, r index.Reader, bytes int)
}

// Probe is one leaf, or leaves of one conjunction, asked of one artifact: the root is fetched, verified and opened if no reader is kept, then the
// reader's own probe runs. Every failure leaves the verdict at "maybe".
type Probe struct {
	bundle  string
	art     Artifact
	leaves  []*predicate.Leaf
	readers Readers
	inner   index.Probe
	failed  bool
	waves   int
	stopped int64
	// Most is how many rows may be read one by one; a probe that tells that it would read more is stopped. 0: any number.
	Most int64
}

// maxWaves bounds the rounds of one probe: a body that sends its reader in circles ends as "maybe".
const maxWaves = 16

// NewProbe starts a probe of the artifact in bundle.
func NewProbe(bundle string, art Artifact, leaf *predicate.Leaf, readers Readers) *Probe {
	return NewJointProbe(bundle, art, []*predicate.Leaf{leaf}, readers)
}

// NewJointProbe is NewProbe for the conjunction of leaves, which the kind must answer (index.Joint).
func NewJointProbe(bundle string, art Artifact, leaves []*predicate.Leaf, readers Readers) *Probe {
	p := &Probe{bundle: bundle, art: art, leaves: leaves, readers: readers}
	if r := readers.Get(bundle, art.Root.Off); r != nil {
		p.inner = p.ask(r)
	}
	return p
}

// Prepare opens the root if it is in memory, without a read. An error means that the artifact is damaged.
func (p *Probe) Prepare() error {
	if p.inner != nil || p.art.RootData == nil {
		return nil
	}
	return p.open(p.art.RootData)
}

// Need is the root, or what the reader's probe needs, as offsets in the bundle. A reader that asks for bytes outside its
// body fails the probe.
func (p *Probe) Need() []store.Span {
	if p.failed {
		return nil
	}
	if p.inner == nil {
		return []store.Span{p.art.Root}
	}
	if c, ok := p.inner.(index.Counted); ok && p.Most > 0 && c.Entries() > p.Most {
		p.failed, p.stopped = true, c.Entries()
		return nil
	}
	need := p.inner.Need()
	out := make([]store.Span, len(need))
	for i, s := range need {
		if s.Off < 0 || s.Len < 0 || s.Off > p.art.Body.Len-s.Len || p.waves == maxWaves {
			p.failed = true
			return nil
		}
		out[i] = store.Span{Off: p.art.Body.Off + s.Off, Len: s.Len}
	}
	p.waves++
	return out
}

// Feed takes the bytes of Need.
func (p *Probe) Feed(data [][]byte) error {
	if p.inner == nil {
		return p.open(data[0])
	}
	if err := p.inner.Feed(data); err != nil {
		p.failed = true
		return err
	}
	return nil
}

func (p *Probe) open(root []byte) error {
	p.failed = true
	if err := bytescan.CheckCRC("root of "+p.bundle, root, p.art.RootCRC); err != nil {
		return err
	}
	if p.art.RootSum != nil && sha256.Sum256(root) != *p.art.RootSum {
		return fault.New(fault.Corrupt, p.bundle, "the root of an artifact is not the one that the signed overlay names")
	}
	r, err := p.art.Kind.Open(root, p.art.Rows)
	if err != nil {
		return fault.About(p.bundle, err)
	}
	p.failed = false
	p.readers.Put(p.bundle, p.art.Root.Off, r, len(root))
	p.inner = p.ask(r)
	return nil
}

func (p *Probe) ask(r index.Reader) index.Probe {
	if len(p.leaves) == 1 {
		return r.Probe(p.leaves[0])
	}
	if all, ok := r.(index.JointReader); ok {
		return all.ProbeAll(p.leaves)
	}
	return index.Settled(rowset.Maybe(p.art.Rows))
}

// Stopped is how many rows the probe would have read one by one, more than Most; 0: it was not stopped.
func (p *Probe) Stopped() int64 { return p.stopped }

// Verdict is the answer over the artifact's rows; rowset.Maybe until it is known.
func (p *Probe) Verdict() rowset.Verdict {
	if p.failed || p.inner == nil {
		return rowset.Maybe(p.art.Rows)
	}
	return p.inner.Verdict()
}
