package azure_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/skomerdb/skomer/internal/store/azure"
	"github.com/skomerdb/skomer/internal/store/azure/azuretest"
	"github.com/skomerdb/skomer/internal/store/storetest"
)

const location = "abfss://container@" + azuretest.Account + ".dfs.core.windows.net/"

// TestInteropAzurite runs the contract on Microsoft's emulator.
func TestInteropAzurite(t *testing.T) {
	server := azuretest.Start(t, nil, "container")
	var subjects atomic.Int64
	storetest.Run(t, func(*testing.T) storetest.Subject {
		return storetest.Subject{
			Store: azure.New(server.Options), Root: fmt.Sprintf("%s%d/", location, subjects.Add(1)),
			Without: map[string]string{"Backslash": "Azurite lists nothing under a prefix that holds a backslash"},
		}
	})
}
