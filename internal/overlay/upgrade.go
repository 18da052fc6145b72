package overlay

import "context"

// Format is the oldest format of what a version is made of, from 1 on, and that which this build writes.
func (v *Version) Format() (oldest, now int) {
	oldest = v.body.format
	if v.behind(-1) {
		oldest = min(oldest, bodyVersion-1)
	}
	return oldest, bodyVersion
}

// behind reports whether a chunk, -1: any, has an older format.
func (v *Version) behind(chunk int) bool {
	for i := range v.views {
		if c := v.views[i].chunk; (chunk < 0 || i == chunk) && c != nil && c.version < chunkVersion {
			return true
		}
	}
	return false
}

type upgrade struct{}

// Upgrade writes everything anew that a version is made of and that has an older format. Earlier versions stay as they are until they expire.
func Upgrade() Change { return upgrade{} }

func (upgrade) apply(_ context.Context, d *draft) error {
	if err := d.mounted(); err != nil {
		return err
	}
	if oldest, now := d.base.Format(); oldest == now || d.base.number == 0 {
		return nil
	}
	d.stale = func(chunk, _ int) bool { return chunk >= 0 && d.base.behind(chunk) }
	d.changed = true
	return nil
}
