package overlay

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/skomerdb/skomer/internal/fault"
)

// Recover makes an overlay writable again whose newest version is damaged, or frees it of chunks and lists that are, as Verify finds them: the newest
// readable version, without the chunks that are lost for good, becomes a new version. It refuses when the trouble may
// pass or a newer Skomer wrote it. What was lost is unindexed until the next sync.
//
// It never brings back what was erased: where an erasure came after the newest readable version, the new one declares the same indexes, knows
// what was erased, has no artifact and no derived object, and ends all versions before it, as ErasedIn tells.
func (o *Overlay) Recover(ctx context.Context) (*Version, error) {
	number, err := o.newestNumber(ctx)
	if err != nil {
		return nil, err
	}
	if number == 0 {
		return nil, o.notMounted()
	}
	good, err := o.newestReadable(ctx, number)
	if err != nil {
		return nil, err
	}
	erased, behind, err := o.erasedSince(ctx, good)
	if err != nil {
		return nil, err
	}
	if good.number == number && len(good.warnings) == 0 && !behind {
		return good, nil
	}
	if err := o.mayFollow(good); err != nil {
		return nil, err
	}
	d := o.newDraft(good, good, uuid.NewString())
	d.header.Version = number + 1
	d.header.Lowered = number + 1
	b := &body{header: d.header, erased: d.erased}
	if behind {
		b.erased, b.header.ErasedIn, b.header.Expired = erased, number+1, number
	} else {
		b.keep(good)
	}
	raw, err := b.encode(o.opts.Key)
	if err != nil {
		return nil, err
	}
	if err := o.putVersion(ctx, b, raw); err != nil {
		return nil, err
	}
	v := o.successor(good, b, nil, nil)
	v.warnings = nil
	o.remember(v)
	o.head.write(o, v)
	return v, nil
}

// keep takes over the chunks and lists of a version that could be read.
func (b *body) keep(good *Version) {
	for i, c := range good.body.chunks {
		if good.views[i].chunk != nil {
			b.chunks = append(b.chunks, c)
		}
	}
	for i, c := range good.body.lists {
		if good.lists[i] != nil {
			b.lists = append(b.lists, c)
		}
	}
}

// newestReadable walks back from version number.
func (o *Overlay) newestReadable(ctx context.Context, number uint64) (*Version, error) {
	after, prefix := "", o.key("versions")+"/"
	for {
		page, err := o.store.List(ctx, prefix, after, listPage)
		if err != nil {
			return nil, fault.About(prefix, err)
		}
		for _, in := range page {
			n := versionNumber(strings.TrimPrefix(in.Key, prefix))
			if n == 0 || n > number {
				continue
			}
			v, err := o.loadWhole(ctx, n)
			if fault.Is(err, fault.NotFound) {
				continue // expired
			}
			if err != nil {
				return nil, err
			}
			if v.broken == nil {
				_, err := lostParts(v.warnings)
				return v, err
			}
			if !fault.Is(v.broken, fault.Corrupt) {
				return nil, v.broken
			}
		}
		if len(page) < listPage {
			return nil, fault.New(fault.Corrupt, o.prefix, "no readable version").WithFix("mount the table to a new overlay")
		}
		after = page[len(page)-1].Key
	}
}
