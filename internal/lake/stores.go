package lake

import (
	"sync"

	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/retry"
	"github.com/skomerdb/skomer/internal/store/s3"
)

// Stores resolves locations by their scheme: those of S3 with the identity that properties describe by PyIceberg's keys, all
// others by files. Properties are asked for when the first location of S3 is met, so that local tables need none and pay
// nothing. Requests to object stores are retried.
func Stores(files Resolver, properties func() (map[string]string, error)) Resolver {
	connect := sync.OnceValues(func() (store.Store, error) {
		p, err := properties()
		if err != nil {
			return nil, err
		}
		o, err := s3.FromProperties(p)
		if err != nil {
			return nil, err
		}
		return retry.New(s3.New(o), retry.Options{}), nil
	})
	return func(location string) (store.Store, string, error) {
		if !s3.Serves(location) {
			return files(location)
		}
		s, err := connect()
		return s, location, err
	}
}
