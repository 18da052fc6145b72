// Command skomer is the command line of Skomer. The commands live in internal/cli.
package main

import (
	"os"

	"github.com/skomerdb/skomer/internal/cli"
)

func main() { os.Exit(cli.Main()) }
