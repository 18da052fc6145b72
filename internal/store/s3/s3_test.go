package s3_test

import (
	"testing"

	"github.com/skomerdb/skomer/internal/store/s3"
	"github.com/skomerdb/skomer/internal/store/s3/s3test"
	"github.com/skomerdb/skomer/internal/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		server := s3test.Start(t, nil, "bucket")
		return storetest.Subject{Store: s3.New(server.Options), Root: "s3://bucket/root/", ContentTags: true}
	})
}
