// Package kinds is the one table of index kinds, and reads index declarations as people write them:
//
//	bloom(user_id) fpp=0.01
//	ordered("Order Date")
//	zonemap(address.city)
//
// It may know every kind by name; a kind knows no other.
package kinds

import (
	"fmt"

	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/bitmap"
	"github.com/skomerdb/skomer/internal/index/bloom"
	"github.com/skomerdb/skomer/internal/index/ngram"
	"github.com/skomerdb/skomer/internal/index/ordered"
	"github.com/skomerdb/skomer/internal/index/sketch"
	"github.com/skomerdb/skomer/internal/index/valueset"
	"github.com/skomerdb/skomer/internal/index/zonemap"
)

// Entry is one kind at the format version that is written now. Older versions are chosen inside the kind by the version byte.
type Entry struct {
	Name     string
	Version  int
	Scope    index.Scope
	Category string // lineage.Record.IndexCategory
	Purpose  string // one clause for people
	Example  string // a declaration
	Kind     index.Kind
}

var table = []Entry{
	{"zonemap", 1, index.PerFile, "scalar", "least and greatest value of every page, null tests", "zonemap(price)", zonemap.Kind{}},
	{"bloom", 1, index.PerFile, "bloom", "= and IN on columns with many values", "bloom(user_id) fpp=0.01", bloom.Kind{}},
	{"valueset", 1, index.PerFile, "scalar", "any test of columns with few values in a row group", "valueset(status)", valueset.Kind{}},
	{"bitmap", 1, index.PerFile, "scalar", "exact rows of columns with few values in a file", "bitmap(state)", bitmap.Kind{}},
	{"ordered", 1, index.Tiered, "scalar", "exact rows of values and ranges", "ordered(order_date)", ordered.Kind{}},
	{"ngram", 1, index.Tiered, "lexical", "pieces of three letters or more in LIKE, ILIKE and regular expressions", "ngram(message)", ngram.Kind{}},
	{"sketch", 1, index.PerFile, "sketch", "distinct values and quantiles, for statistics and planning", "sketch(user_id)", sketch.Kind{}},
}

// All is every kind.
func All() []Entry { return append([]Entry(nil), table...) }

// ByName finds a kind by its exact name.
func ByName(name string) (Entry, bool) {
	for _, e := range table {
		if e.Name == name {
			return e, true
		}
	}
	return Entry{}, false
}

// Algorithm is what a lineage record calls the kind, for example bloom.v1.
func (e Entry) Algorithm() string { return fmt.Sprintf("%s.v%d", e.Name, e.Version) }

// BlobType is the Puffin blob type of the kind's bodies, for example skomer.bloom.v1.
func (e Entry) BlobType() string { return "skomer." + e.Algorithm() }
