package overlay

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"

	"github.com/google/uuid"

	"github.com/skomerdb/skomer/internal/fault"
)

// A key makes an overlay that somebody else may write to safe to read: the body of each version is signed with HMAC-SHA-256, and
// holds the SHA-256 of its chunks and lists, which hold the SHA-256 of roots and of derived objects. A version that is not
// signed with the reader's key is no index as a whole.

func macOf(key, b []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(b)
	return h.Sum(nil)
}

// Keyed reports whether versions are signed: then derived objects whose entry has no SHA-256 are not listed, and not worth making.
func (o *Overlay) Keyed() bool { return len(o.opts.Key) > 0 }

// verify refuses a body that is not signed with the overlay's key, if it has one.
func (o *Overlay) verify(key string, b *body) error {
	switch {
	case !o.Keyed():
		return nil
	case b.mac == nil:
		return fault.New(fault.Refused, key, "is not signed, and an overlay key is configured").
			WithFix("if you trust what is there: skomer overlay sign TABLE")
	case !hmac.Equal(b.mac, macOf(o.opts.Key, b.signed)):
		return fault.New(fault.Refused, key, "is not signed with the configured overlay key").
			WithFix("configure the key that it was signed with; if you trust what is there: skomer overlay sign TABLE")
	}
	return nil
}

// mayFollow refuses to put an unsigned version on top of a signed one: who has the key would not believe it.
func (o *Overlay) mayFollow(base *Version) error {
	if base.body.mac != nil && !o.Keyed() {
		return fault.New(fault.Refused, o.prefix, "the overlay is signed, and no overlay key is configured").
			WithFix("set overlay-key in skomer.yaml or SKOMER_OVERLAY_KEY")
	}
	return nil
}

// checkSum compares bytes with the SHA-256 that a signed body, or what it vouches for, holds.
func checkSum(what string, want [32]byte, parts ...[]byte) error {
	h := sha256.New()
	for _, b := range parts {
		h.Write(b)
	}
	if [32]byte(h.Sum(nil)) != want {
		return fault.New(fault.Corrupt, what, "SHA-256 mismatch")
	}
	return nil
}

// Sign makes the newest version, signed with the overlay's key, the newest one, whoever wrote it and signed it with whatever key.
func (o *Overlay) Sign(ctx context.Context) (*Version, error) {
	if !o.Keyed() {
		return nil, fault.New(fault.Invalid, "overlay-key", "is not configured").WithFix("set overlay-key in skomer.yaml or SKOMER_OVERLAY_KEY")
	}
	trusting := Open(o.store, o.prefix, Options{Now: o.opts.Now})
	v, err := trusting.Latest(ctx)
	if err != nil {
		return nil, err
	}
	if err := usable(v); err != nil {
		return nil, err
	}
	for _, w := range v.warnings {
		return nil, fault.About(w.Part, w.Reason)
	}
	d := o.newDraft(v, v, uuid.NewString())
	b := &body{header: d.header, chunks: v.body.chunks, lists: v.body.lists, erased: d.erased}
	raw, err := b.encode(o.opts.Key)
	if err != nil {
		return nil, err
	}
	if err := o.putVersion(ctx, b, raw); err != nil {
		return nil, err
	}
	o.forget(nil)
	return o.Latest(ctx)
}
