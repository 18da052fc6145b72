package lake

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/azure"
	"github.com/skomerdb/skomer/internal/store/gcs"
	"github.com/skomerdb/skomer/internal/store/hedge"
	"github.com/skomerdb/skomer/internal/store/retry"
	"github.com/skomerdb/skomer/internal/store/s3"
)

// Access is how object stores are reached.
type Access struct {
	// Properties are PyIceberg's keys, and store.max-requests and store.hedge-percent. They are asked for once, when the first location
	// of an object store is met, so that local tables need none and pay nothing.
	Properties func() (map[string]string, error)
	// Renew gives properties anew, with credentials that last longer; nil: those of Properties last.
	Renew func(context.Context) (map[string]string, error)
}

// backend is a store that counts what waits for its turn.
type backend interface {
	store.Store
	Crowded() bool
}

// protocol is one kind of object storage.
type protocol struct {
	serves  func(location string) bool
	connect func(properties map[string]string, most int, renew func(context.Context) (map[string]string, error)) (backend, error)
}

var protocols = []protocol{{s3.Serves, connectS3}, {gcs.Serves, connectGCS}, {azure.Serves, connectAzure}}

// Stores resolves locations by their scheme: those of object storage with the identity that access describes, all others by files.
// Requests to object stores are bounded in number, the slowest reads are sent twice, and what passes is tried again, in this order
// from the inside out: a try that waits is not slow, and a read that was sent twice failed only if both did.
func Stores(files Resolver, access Access) Resolver {
	properties := sync.OnceValues(access.Properties)
	var connect []func() (store.Store, error)
	for _, p := range protocols {
		connect = append(connect, sync.OnceValues(func() (store.Store, error) {
			keys, err := properties()
			if err != nil {
				return nil, err
			}
			return p.open(keys, access.Renew)
		}))
	}
	return func(location string) (store.Store, string, error) {
		for i, p := range protocols {
			if p.serves(location) {
				s, err := connect[i]()
				return s, location, err
			}
		}
		return files(location)
	}
}

// Remote reports whether a location is one of object storage.
func Remote(location string) bool {
	for _, p := range protocols {
		if p.serves(location) {
			return true
		}
	}
	return false
}

func (p protocol) open(keys map[string]string, renew func(context.Context) (map[string]string, error)) (store.Store, error) {
	most, err := number(keys, "store.max-requests", 0)
	if err != nil {
		return nil, err
	}
	percent, err := number(keys, "store.hedge-percent", hedge.DefaultPercent)
	if err != nil {
		return nil, err
	}
	b, err := p.connect(keys, int(most), renew)
	if err != nil {
		return nil, err
	}
	var s store.Store = b
	if percent > 0 {
		s = hedge.New(b, hedge.Options{Percent: percent, Busy: b.Crowded})
	}
	return retry.New(s, retry.Options{}), nil
}

// number is a property that is a number from 0 to 1000.
func number(keys map[string]string, key string, otherwise float64) (float64, error) {
	if keys[key] == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseFloat(keys[key], 64)
	if err != nil || !(n >= 0 && n <= 1000) {
		return 0, fault.New(fault.Invalid, key, "%q is no number from 0 to 1000", keys[key])
	}
	return n, nil
}

func connectS3(keys map[string]string, most int, renew func(context.Context) (map[string]string, error)) (backend, error) {
	o, err := s3.FromProperties(keys)
	if err != nil {
		return nil, err
	}
	o.Concurrency = most
	if renew != nil && o.AccessKey != "" {
		o.Renew = func(ctx context.Context) (s3.Keys, error) {
			now, err := fresh(ctx, renew, s3.FromProperties)
			return s3.Keys{AccessKey: now.AccessKey, Secret: now.Secret, Session: now.Session, Expires: now.Expires}, err
		}
	}
	return s3.New(o), nil
}

func connectGCS(keys map[string]string, most int, renew func(context.Context) (map[string]string, error)) (backend, error) {
	o, err := gcs.FromProperties(keys)
	if err != nil {
		return nil, err
	}
	o.Concurrency = most
	if renew != nil && o.Token != "" {
		o.Renew = func(ctx context.Context) (string, time.Time, error) {
			now, err := fresh(ctx, renew, gcs.FromProperties)
			return now.Token, now.Expires, err
		}
	}
	return gcs.New(o), nil
}

func connectAzure(keys map[string]string, most int, renew func(context.Context) (map[string]string, error)) (backend, error) {
	o, err := azure.FromProperties(keys)
	if err != nil {
		return nil, err
	}
	o.Concurrency = most
	if renew != nil && len(o.SAS) > 0 {
		o.Renew = func(ctx context.Context, account string) (string, time.Time, error) {
			now, err := fresh(ctx, renew, azure.FromProperties)
			sas := now.SAS[account]
			if sas == "" {
				sas = now.SAS[""]
			}
			return sas, now.Expires[account], err
		}
	}
	return azure.New(o), nil
}

// fresh is options from properties that were asked for anew.
func fresh[O any](ctx context.Context, renew func(context.Context) (map[string]string, error), read func(map[string]string) (O, error)) (O, error) {
	p, err := renew(ctx)
	if err != nil {
		var none O
		return none, err
	}
	return read(p)
}
