package overlay

import (
	"context"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// readTries is how often bytes that are not what was written are read before they count as lost: they may have been damaged on their way,
// and who takes a list for lost deletes what it alone names.
const readTries = 3

// decode decodes the object of a version: its body or, of one that expired, its stub. broken is why it is neither. Only trouble with the
// store is an error.
func (o *Overlay) decode(ctx context.Context, key string, number uint64, raw []byte) (b *body, s *stub, broken, err error) {
	for try := 1; ; try++ {
		if isStub(raw) {
			s, broken = parseStub(key, raw)
		} else {
			b, broken = o.parse(key, number, raw)
		}
		if !fault.Is(broken, fault.Corrupt) || try == readTries {
			return b, s, broken, nil
		}
		if raw, err = fetchAll(ctx, o.store, key); err != nil {
			return nil, nil, nil, err
		}
	}
}

// open reads the parts in one wave, and those that arrive damaged again in others.
func (p *parts) open(ctx context.Context) error {
	for try := 1; len(p.reads) > 0; try++ {
		reasons, err := p.read(ctx)
		if err != nil {
			return err
		}
		var reads []store.Read
		var opens []func([][]byte) error
		for k, reason := range reasons {
			switch {
			case fault.Is(reason, fault.Corrupt) && try < readTries:
				reads, opens = append(reads, p.reads[k]), append(opens, p.opens[k])
			case reason != nil:
				p.version.warnings = append(p.version.warnings, Warning{p.reads[k].Key, reason})
			}
		}
		p.reads, p.opens = reads, opens
	}
	return nil
}
