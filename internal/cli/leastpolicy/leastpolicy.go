// Package leastpolicy answers: which permissions does an identity need, and no more, to read a table and to write its overlay?
//
// It knows how the three object stores write policies, and nothing of how they are reached.
package leastpolicy

import (
	"encoding/json"
	"slices"
	"strings"
)

// Policy is what one identity needs in one kind of storage.
type Policy struct {
	For      string          `json:"for"`      // table, read only, or overlay, read and write
	Kind     string          `json:"kind"`     // as the storage's own tools call it
	Document json.RawMessage `json:"document"` // to be pasted
}

const (
	reads  = "table, read only"
	writes = "overlay, read and write"
)

// place is a bucket or container, with the account it is in, and prefixes below it.
type place struct {
	scheme, account, bucket string
	prefixes                []string
}

// Of gives the policies for the places that a table's files lie in and for its overlay. Local places need none.
func Of(table []string, overlay string) ([]Policy, error) {
	var out []Policy
	for _, part := range []struct {
		who   string
		where []string
		write bool
	}{{reads, table, false}, {writes, []string{overlay}, true}} {
		for _, p := range places(part.where) {
			policy, err := p.policy(part.who, part.write)
			if err != nil {
				return nil, err
			}
			out = append(out, policy)
		}
	}
	return out, nil
}

// places groups locations by bucket.
func places(locations []string) []place {
	var out []place
	for _, location := range locations {
		scheme, rest, ok := strings.Cut(location, "://")
		kind := kinds[strings.ToLower(scheme)]
		if !ok || kind == "" {
			continue
		}
		p := place{scheme: kind}
		var prefix string
		p.bucket, prefix, _ = strings.Cut(rest, "/")
		p.bucket, p.account, _ = strings.Cut(p.bucket, "@")
		p.account, _, _ = strings.Cut(p.account, ".")
		at := slices.IndexFunc(out, func(o place) bool { return o.scheme == p.scheme && o.account == p.account && o.bucket == p.bucket })
		if at < 0 {
			at = len(out)
			out = append(out, p)
		}
		out[at].prefixes = append(out[at].prefixes, strings.Trim(prefix, "/"))
	}
	return out
}

var kinds = map[string]string{
	"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "gcs": "gs", "abfss": "azure", "abfs": "azure", "wasbs": "azure", "wasb": "azure", "az": "azure",
}

type object = map[string]any

func (p place) policy(who string, write bool) (Policy, error) {
	kind, document := "", object(nil)
	switch p.scheme {
	case "s3":
		kind, document = "IAM policy", p.iam(write)
	case "gs":
		kind, document = "custom role and binding of Google Cloud", p.google(write)
	default:
		kind, document = "custom role and condition of Azure", p.azure(write)
	}
	text, err := json.Marshal(document)
	return Policy{For: who, Kind: kind, Document: text}, err
}

// below is a prefix with a pattern for everything under it.
func below(prefix string) string {
	if prefix == "" {
		return "*"
	}
	return prefix + "/*"
}

// iam is a policy of AWS (https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html).
func (p place) iam(write bool) object {
	bucket := "arn:aws:s3:::" + p.bucket
	var objects, prefixes []string
	for _, prefix := range p.prefixes {
		objects, prefixes = append(objects, bucket+"/"+below(prefix)), append(prefixes, below(prefix))
	}
	name, actions := "ReadTable", []string{"s3:GetObject"}
	if write {
		name, actions = "WriteOverlay", []string{"s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"}
	}
	return object{"Version": "2012-10-17", "Statement": []object{
		{"Sid": name, "Effect": "Allow", "Action": actions, "Resource": objects},
		{
			"Sid": name + "List", "Effect": "Allow", "Action": []string{"s3:ListBucket"}, "Resource": []string{bucket},
			"Condition": object{"StringLike": object{"s3:prefix": prefixes}},
		},
	}}
}

// google is a custom role and where it is bound (https://cloud.google.com/storage/docs/access-control/iam-permissions). Listings are
// judged on the bucket, so that no condition on names holds for them.
func (p place) google(write bool) object {
	name, permissions := "skomerTableReader", []string{"storage.objects.get"}
	if write {
		name, permissions = "skomerOverlayWriter", []string{"storage.objects.get", "storage.objects.create", "storage.objects.delete"}
	}
	var conditions []string
	for _, prefix := range p.prefixes {
		conditions = append(conditions, `resource.name.startsWith("projects/_/buckets/`+p.bucket+`/objects/`+strings.TrimSuffix(below(prefix), "*")+`")`)
	}
	return object{"bucket": "gs://" + p.bucket, "roles": []object{
		{
			"name": name, "includedPermissions": permissions,
			"condition": object{"title": name, "expression": strings.Join(conditions, " || ")},
		},
		{"name": name + "List", "includedPermissions": []string{"storage.objects.list"}},
	}}
}

const blobs = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"

// azure is a custom role and the condition under which it is assigned
// (https://learn.microsoft.com/azure/role-based-access-control/permissions/storage).
func (p place) azure(write bool) object {
	name, actions := "Skomer Table Reader", []string{blobs + "/read"}
	if write {
		name, actions = "Skomer Overlay Writer", []string{blobs + "/read", blobs + "/write", blobs + "/add/action", blobs + "/delete"}
	}
	account := p.account
	if account == "" {
		account = "ACCOUNT"
	}
	var conditions []string
	for _, prefix := range p.prefixes {
		if prefix != "" {
			conditions = append(conditions, "@Resource["+blobs+":path] StringStartsWith '"+prefix+"/'", "@Request["+blobs+":prefix] StringStartsWith '"+prefix+"'")
		}
	}
	scope := "/subscriptions/SUBSCRIPTION/resourceGroups/GROUP/providers/Microsoft.Storage/storageAccounts/" + account + "/blobServices/default/containers/" + p.bucket
	out := object{"role": object{"Name": name, "IsCustom": true, "Actions": []string{}, "DataActions": actions, "AssignableScopes": []string{scope}}}
	if len(conditions) > 0 {
		out["condition"] = "(" + strings.Join(conditions, " OR ") + ")"
	}
	return out
}
