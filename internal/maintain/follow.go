package maintain

import (
	"context"
	"time"
)

// slowest is how many intervals lie between tries when nothing but errors comes back.
const slowest = 16

// Follow calls once again and again, an interval after the end of the call before, give or take a half so that many followers do not
// ask together, until ctx ends, which is no error, or once
// says that going on is of no use. After errors it waits longer and longer.
func Follow(ctx context.Context, every time.Duration, once func(context.Context) (goOn bool, err error)) error {
	for wait := every; ; {
		goOn, err := once(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // following ends with its context
		case !goOn:
			return err
		case err != nil:
			wait = min(2*wait, slowest*every)
		default:
			wait = every
		}
		if !pause(ctx, wait) {
			return nil
		}
	}
}
