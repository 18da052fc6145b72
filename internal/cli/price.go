package cli

import (
	"bytes"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/fault"
)

// priceFlag adds --price-profile to a command that can tell what its figures cost.
func priceFlag(cmd *cobra.Command, name *string, byDefault string) {
	cmd.Flags().StringVar(name, "price-profile", byDefault, "prices for requests, bytes and time: "+strings.Join(priceNames(), ", ")+", or a YAML file with get, put, transfer-gb, storage-gb-month and core-hour")
}

func priceNames() (out []string) {
	for _, p := range skomer.Prices {
		out = append(out, p.Name)
	}
	return out
}

// price is the profile of a name or a file.
func price(name string) (skomer.Price, error) {
	for _, p := range skomer.Prices {
		if p.Name == name {
			return p, nil
		}
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return skomer.Price{}, fault.New(fault.NotFound, "--price-profile", "%s is no profile and no file that can be read", name).
			WithFix("name one of %s, or a file", strings.Join(priceNames(), ", ")).WithCause(err)
	}
	p := skomer.Price{Name: name}
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(&p); err != nil {
		return p, fault.New(fault.Invalid, name, "is no price profile").WithFix("keys: name, get, put, transfer-gb, storage-gb-month, core-hour").WithCause(err)
	}
	for _, x := range []float64{p.Get, p.Put, p.Transfer, p.Storage, p.Core} {
		if !(x >= 0) {
			return p, fault.New(fault.Invalid, name, "has a price that is negative or no number")
		}
	}
	return p, nil
}
