package catalog

import (
	"encoding/json"
	"strings"

	"github.com/skomerdb/skomer/internal/fault"
)

// restrictions are the words by which catalogs name rules about rows and columns, beside the protocol's own
// "read-restrictions" (required-projection, required-row-filter).
var restrictions = []string{
	"read-restriction", "row-filter", "column-mask", "masking", "row-access", "required-projection", "required-column-projection",
}

// allowed refuses a table that Skomer must not plan by itself: nobody sees more through an index than through the table.
func allowed(subject string, catalog Properties, reply map[string]json.RawMessage) error {
	var config map[string]any
	if err := json.Unmarshal(orNull(reply["config"]), &config); err != nil {
		return fault.New(fault.Corrupt, subject, "bad config in the catalog's reply").WithCause(err)
	}
	table := Properties{}
	flatten(table, "", config)
	for key, value := range reply {
		if key != "metadata" && key != "config" && restricts(key) && !empty(value) {
			return restricted(subject, key)
		}
	}
	for key, value := range table {
		if restricts(key) && value != "" && value != "false" && value != "[]" && value != "{}" {
			return restricted(subject, key)
		}
	}
	mode, stated := table["scan-planning-mode"]
	if !stated {
		mode = catalog["scan-planning-mode"]
	}
	if strings.EqualFold(mode, "server") {
		return fault.New(fault.Refused, subject, "the catalog demands to plan its scans itself (scan-planning-mode: server)").
			WithFix("ask the catalog's owner for scan-planning-mode: client")
	}
	if strings.EqualFold(table["s3.remote-signing-enabled"], "true") && empty(reply["storage-credentials"]) && table["s3.access-key-id"] == "" {
		return fault.New(fault.Refused, subject, "the catalog withholds storage credentials and wants to sign every request itself").
			WithFix("ask the catalog's owner for vended credentials")
	}
	return nil
}

func restricted(subject, key string) error {
	return fault.New(fault.Refused, subject, "the catalog restricts which rows or columns you may read (%s)", key).
		WithFix("query it through an engine that the catalog trusts to apply the restriction")
}

func restricts(key string) bool {
	key = strings.ReplaceAll(strings.ToLower(key), "_", "-")
	for _, word := range restrictions {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

// empty reports whether a JSON value holds nothing: null, false, "", or a list or object of nothing but empty values.
func empty(b json.RawMessage) bool {
	var v any
	if json.Unmarshal(orNull(b), &v) != nil {
		return false
	}
	return hollow(v)
}

func hollow(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case bool:
		return !x
	case string:
		return x == ""
	case []any:
		for _, e := range x {
			if !hollow(e) {
				return false
			}
		}
		return true
	case map[string]any:
		for _, e := range x {
			if !hollow(e) {
				return false
			}
		}
		return true
	}
	return false
}
