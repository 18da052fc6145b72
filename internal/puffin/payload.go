package puffin

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/fault"
)

// payloadReader walks the JSON of a footer token by token, so that what it allocates is bounded by what it has checked.
// Keys are case-sensitive, the last of equal keys counts, unknown keys are skipped. encoding/json bounds the depth.
type payloadReader struct {
	name    string
	dec     *json.Decoder
	entries int // field ids and properties so far
}

func parsePayload(name string, payload []byte) (*Footer, error) {
	if !utf8.Valid(payload) {
		return nil, fault.New(fault.Corrupt, name, "footer is not UTF-8")
	}
	r := payloadReader{name: name, dec: json.NewDecoder(bytes.NewReader(payload))}
	r.dec.UseNumber()
	f := &Footer{}
	listed := false
	err := r.object(func(key string) (err error) {
		switch key {
		case "blobs":
			listed = true
			f.Blobs, err = r.blobs()
		case "properties":
			f.Properties, err = r.properties()
		default:
			err = r.skip()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := r.dec.Token(); err != io.EOF {
		return nil, r.corrupt("something follows the JSON object")
	}
	if !listed {
		return nil, r.corrupt("no list of blobs")
	}
	return f, nil
}

func (r *payloadReader) corrupt(reason string, args ...any) error {
	return fault.New(fault.Corrupt, r.name, "footer: "+reason, args...)
}

// open reads the delimiter that must come next; null reads as absent where the caller allows it.
func (r *payloadReader) open(want json.Delim, nullable bool) (present bool, err error) {
	t, err := r.dec.Token()
	if err != nil {
		return false, r.corrupt("%v", err)
	}
	if t == nil && nullable {
		return false, nil
	}
	if t != want {
		return false, r.corrupt("%v where %v must be", t, want)
	}
	return true, nil
}

// object calls member for each key of the object that comes next; member reads the value.
func (r *payloadReader) object(member func(key string) error) error {
	if _, err := r.open('{', false); err != nil {
		return err
	}
	return r.members(member)
}

func (r *payloadReader) members(member func(key string) error) error {
	for r.dec.More() {
		t, err := r.dec.Token()
		if err != nil {
			return r.corrupt("%v", err)
		}
		key, ok := t.(string)
		if !ok {
			return r.corrupt("key %v is no string", t)
		}
		if err := member(key); err != nil {
			return err
		}
	}
	return r.closed()
}

func (r *payloadReader) closed() error {
	if _, err := r.dec.Token(); err != nil {
		return r.corrupt("%v", err)
	}
	return nil
}

func (r *payloadReader) skip() error {
	var v json.RawMessage
	return r.value(&v)
}

func (r *payloadReader) value(to any) error {
	if err := r.dec.Decode(to); err != nil {
		return r.corrupt("%v", err)
	}
	return nil
}

func (r *payloadReader) blobs() ([]Blob, error) {
	if _, err := r.open('[', false); err != nil {
		return nil, err
	}
	var out []Blob
	for r.dec.More() {
		if len(out) == MaxBlobs {
			return nil, fault.New(fault.Exhausted, r.name, "more than %d blobs", MaxBlobs)
		}
		b, err := r.blob(len(out))
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, r.closed()
}

func (r *payloadReader) blob(at int) (b Blob, err error) {
	var typ, codec *string
	var snapshot, sequence, offset, length *int64
	fields := false
	err = r.object(func(key string) (err error) {
		switch key {
		case "type":
			err = r.value(&typ)
		case "fields":
			fields = true
			b.Fields, err = r.fields()
		case "snapshot-id":
			err = r.value(&snapshot)
		case "sequence-number":
			err = r.value(&sequence)
		case "offset":
			err = r.value(&offset)
		case "length":
			err = r.value(&length)
		case "compression-codec":
			err = r.value(&codec)
		case "properties":
			b.Properties, err = r.properties()
		default:
			err = r.skip()
		}
		return err
	})
	if err != nil {
		return Blob{}, err
	}
	if typ == nil || *typ == "" || !fields || snapshot == nil || sequence == nil || offset == nil || length == nil {
		return Blob{}, r.corrupt("blob %d lacks one of type, fields, snapshot-id, sequence-number, offset, length", at)
	}
	b.Type, b.SnapshotID, b.SequenceNumber, b.Offset, b.Length = *typ, *snapshot, *sequence, *offset, *length
	if codec != nil {
		b.Codec = *codec
	}
	return b, nil
}

func (r *payloadReader) fields() ([]int32, error) {
	if _, err := r.open('[', false); err != nil {
		return nil, err
	}
	out := []int32{}
	for r.dec.More() {
		if err := r.entry(); err != nil {
			return nil, err
		}
		t, err := r.dec.Token()
		if err != nil {
			return nil, r.corrupt("%v", err)
		}
		n, ok := t.(json.Number)
		if !ok {
			return nil, r.corrupt("field id %v is no number", t)
		}
		id, err := strconv.ParseInt(n.String(), 10, 32)
		if err != nil {
			return nil, r.corrupt("field id: %v", err)
		}
		out = append(out, int32(id))
	}
	return out, r.closed()
}

func (r *payloadReader) properties() (map[string]string, error) {
	present, err := r.open('{', true)
	if err != nil || !present {
		return nil, err
	}
	out := map[string]string{}
	err = r.members(func(key string) error {
		var v *string
		if err := r.value(&v); err != nil {
			return err
		}
		if v == nil {
			return r.corrupt("property %q is null", key)
		}
		out[key] = *v
		return r.entry()
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// entry counts a field id or property against MaxEntries.
func (r *payloadReader) entry() error {
	if r.entries++; r.entries > MaxEntries {
		return fault.New(fault.Exhausted, r.name, "more than %d field ids and properties", MaxEntries)
	}
	return nil
}
