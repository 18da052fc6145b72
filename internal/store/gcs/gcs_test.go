package gcs_test

import (
	"testing"

	"github.com/skomerdb/skomer/internal/store/gcs"
	"github.com/skomerdb/skomer/internal/store/gcs/gcstest"
	"github.com/skomerdb/skomer/internal/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		server := gcstest.Start(t, nil, "bucket")
		return storetest.Subject{Store: gcs.New(server.Options), Root: "gs://bucket/root/"}
	})
}
