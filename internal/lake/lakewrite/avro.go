package lakewrite

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/meta"
)

func field(id int, name string, typ any) object {
	return object{"name": name, "type": typ, "field-id": id}
}

func optional(id int, name string, typ any) object {
	return object{"name": name, "type": []any{"null", typ}, "default": nil, "field-id": id}
}

// pairs is how Iceberg writes a map with number keys: an array of records.
func pairs(id, key, value int, name, typ string) object {
	rec := object{
		"type": "record", "name": fmt.Sprintf("k%d_v%d", key, value),
		"fields": []any{field(key, "key", "int"), field(value, "value", typ)},
	}
	return optional(id, name, object{"type": "array", "items": rec, "logicalType": "map"})
}

func array(id, element int, name, typ string) object {
	return optional(id, name, object{"type": "array", "items": typ, "element-id": element})
}

// listSchema is the schema of a manifest list. v1 knows neither content nor sequence numbers, only v3 first row ids.
func listSchema(version int) object {
	fields := []any{
		field(500, "manifest_path", "string"), field(501, "manifest_length", "long"), field(502, "partition_spec_id", "int"),
	}
	if version > 1 {
		fields = append(fields, field(517, "content", "int"), field(515, "sequence_number", "long"), field(516, "min_sequence_number", "long"))
	}
	fields = append(fields, field(503, "added_snapshot_id", "long"))
	for _, f := range []struct {
		id        int
		name, typ string
	}{
		{504, "added_files_count", "int"},
		{505, "existing_files_count", "int"},
		{506, "deleted_files_count", "int"},
		{512, "added_rows_count", "long"},
		{513, "existing_rows_count", "long"},
		{514, "deleted_rows_count", "long"},
	} {
		if version > 1 {
			fields = append(fields, field(f.id, f.name, f.typ))
		} else {
			fields = append(fields, optional(f.id, f.name, f.typ))
		}
	}
	if version > 2 {
		fields = append(fields, optional(520, "first_row_id", "long"))
	}
	return object{"type": "record", "name": "manifest_file", "fields": fields}
}

// entrySchema is the schema of a manifest. plain leaves logical types out, for encoding raw values.
func entrySchema(version int, partition []any) object {
	file := []any{}
	if version > 1 {
		file = append(file, field(134, "content", "int"))
	}
	file = append(file, field(100, "file_path", "string"), field(101, "file_format", "string"),
		field(102, "partition", object{"type": "record", "name": "r102", "fields": partition}),
		field(103, "record_count", "long"), field(104, "file_size_in_bytes", "long"))
	if version == 1 {
		file = append(file, field(105, "block_size_in_bytes", "long"))
	}
	file = append(file,
		pairs(108, 117, 118, "column_sizes", "long"), pairs(109, 119, 120, "value_counts", "long"),
		pairs(110, 121, 122, "null_value_counts", "long"), pairs(137, 138, 139, "nan_value_counts", "long"),
		pairs(125, 126, 127, "lower_bounds", "bytes"), pairs(128, 129, 130, "upper_bounds", "bytes"),
		optional(131, "key_metadata", "bytes"), array(132, 133, "split_offsets", "long"))
	if version > 1 {
		file = append(file, array(135, 136, "equality_ids", "int"))
	}
	file = append(file, optional(140, "sort_order_id", "int"))
	if version > 1 {
		file = append(file, optional(143, "referenced_data_file", "string"))
	}
	if version > 2 {
		file = append(file, optional(142, "first_row_id", "long"), optional(144, "content_offset", "long"), optional(145, "content_size_in_bytes", "long"))
	}
	entry := []any{field(0, "status", "int")}
	if version == 1 {
		entry = append(entry, field(1, "snapshot_id", "long"))
	} else {
		entry = append(entry, optional(1, "snapshot_id", "long"), optional(3, "sequence_number", "long"), optional(4, "file_sequence_number", "long"))
	}
	entry = append(entry, field(2, "data_file", object{"type": "record", "name": "r2", "fields": file}))
	return object{"type": "record", "name": "manifest_entry", "fields": entry}
}

// partitionFields is the schema of the partition tuples of a spec.
func (t *Table) partitionFields(spec *facts.Spec, logical bool) ([]any, error) {
	out := []any{}
	for _, f := range spec.Fields {
		typ, err := t.partitionType(f)
		if err != nil {
			return nil, err
		}
		a := avroType(f.ID, typ)
		if o, ok := a.(object); ok && !logical {
			plain := object{}
			for k, v := range o {
				if k != "logicalType" && k != "precision" && k != "scale" && k != "adjust-to-utc" {
					plain[k] = v
				}
			}
			a = plain
		}
		out = append(out, optional(f.ID, f.Name, a))
	}
	return out, nil
}

func (t *Table) partitionType(f facts.PartitionField) (column.Type, error) {
	switch f.Transform {
	case "year", "month", "hour":
		return column.Of(column.Int), nil
	case "day":
		return column.Of(column.Date), nil
	}
	if len(f.Transform) > 6 && f.Transform[:6] == "bucket" {
		return column.Of(column.Int), nil
	}
	for _, s := range slices.Backward(t.Schemas) {
		if p := s.ByID(f.SourceID); p != nil {
			return p.Leaf().Type, nil
		}
	}
	return column.Type{}, fault.New(fault.Invalid, f.Name, "no schema has its source column %d", f.SourceID)
}

func avroType(id int, t column.Type) any {
	switch t.Kind {
	case column.Bool:
		return "boolean"
	case column.Int:
		return "int"
	case column.Date:
		return object{"type": "int", "logicalType": "date"}
	case column.Time:
		return object{"type": "long", "logicalType": "time-micros"}
	case column.Timestamp, column.TimestampTZ:
		return object{"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": t.Kind == column.TimestampTZ}
	case column.TimestampNS, column.TimestampNZ:
		return object{"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": t.Kind == column.TimestampNZ}
	case column.Long:
		return "long"
	case column.Float:
		return "float"
	case column.Double:
		return "double"
	case column.Decimal:
		return object{
			"type": "fixed", "name": fmt.Sprintf("decimal_%d", id), "size": decimalBytes(t.Width),
			"logicalType": "decimal", "precision": t.Width, "scale": t.Scale,
		}
	case column.UUID:
		return object{"type": "fixed", "name": fmt.Sprintf("uuid_%d", id), "size": 16, "logicalType": "uuid"}
	case column.Fixed:
		return object{"type": "fixed", "name": fmt.Sprintf("fixed_%d", id), "size": t.Width}
	case column.Binary:
		return "bytes"
	default:
		return "string"
	}
}

// decimalBytes is the least number of bytes that hold every unscaled value of a precision.
func decimalBytes(precision int) int {
	most := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
	return (most.Sub(most, big.NewInt(1)).BitLen() + 8) / 8
}

func avroValue(t column.Type, v facts.PartitionValue) any {
	if v.Null {
		return nil
	}
	switch x := v.Value; t.Kind {
	case column.Bool:
		return x.Lo != 0
	case column.Int, column.Date:
		return int32(x.Int64())
	case column.Float:
		return float32(x.Float64())
	case column.Double:
		return x.Float64()
	case column.Decimal:
		n := meta.DecimalToBig(x)
		size := decimalBytes(t.Width)
		if n.Sign() < 0 {
			n.Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
		}
		return n.FillBytes(make([]byte, size))
	case column.UUID, column.Fixed, column.Binary:
		return []byte(x.S)
	case column.String:
		return x.S
	default:
		return x.Int64()
	}
}

func (t *Table) writeManifest(ctx context.Context, m *Manifest) error {
	i := slices.IndexFunc(t.Specs, func(s *facts.Spec) bool { return s.ID == m.SpecID })
	if i < 0 {
		return fault.New(fault.Invalid, t.location, "no partition spec %d", m.SpecID)
	}
	spec := t.Specs[i]
	text, err := t.partitionFields(spec, true)
	if err != nil {
		return err
	}
	plain, err := t.partitionFields(spec, false)
	if err != nil {
		return err
	}
	content := "data"
	if m.Deletes {
		content = "deletes"
	}
	header := map[string][]byte{
		"schema": t.schemaJSON(), "schema-id": []byte(strconv.Itoa(t.CurrentSchema)), "partition-spec": meta.SpecFieldsJSON(spec),
		"partition-spec-id": []byte(strconv.Itoa(spec.ID)), "format-version": []byte(strconv.Itoa(m.FormatVersion)), "content": []byte(content),
	}
	records := make([]object, len(m.Entries))
	for i := range m.Entries {
		if records[i], err = t.entry(spec, &m.Entries[i]); err != nil {
			return err
		}
	}
	b, err := container(entrySchema(m.FormatVersion, text), entrySchema(m.FormatVersion, plain), header, records)
	if err != nil {
		return err
	}
	t.files++
	m.Path, m.Length = fmt.Sprintf("%s/metadata/%d-m%d.avro", t.location, m.SnapshotID, t.files), int64(len(b))
	return t.put(ctx, m.Path, b)
}

func (t *Table) schemaJSON() []byte {
	for _, s := range t.Schemas {
		if s.ID == t.CurrentSchema {
			return meta.SchemaJSON(s)
		}
	}
	return nil
}

func (t *Table) entry(spec *facts.Spec, e *Entry) (object, error) {
	f := &e.File
	if len(f.Partition) != len(spec.Fields) {
		return nil, fault.New(fault.Invalid, f.Path, "%d partition values for the %d fields of spec %d", len(f.Partition), len(spec.Fields), spec.ID)
	}
	tuple := object{}
	for i, pf := range spec.Fields {
		typ, err := t.partitionType(pf)
		if err != nil {
			return nil, err
		}
		tuple[pf.Name] = avroValue(typ, f.Partition[i])
	}
	file := object{
		"content": int(f.Content), "file_path": f.Path, "file_format": formatNames[f.Format], "partition": tuple,
		"record_count": f.Records, "file_size_in_bytes": f.Size, "block_size_in_bytes": int64(64 << 20),
		"key_metadata": orNull(f.Key), "referenced_data_file": nil, "first_row_id": number(f.FirstRowID),
		"content_offset": number(f.Offset), "content_size_in_bytes": number(f.Length), "split_offsets": nil, "sort_order_id": nil,
		"equality_ids": nil,
	}
	if f.Referenced != "" {
		file["referenced_data_file"] = f.Referenced
	}
	if f.EqualityID != nil {
		file["equality_ids"] = f.EqualityID
	}
	if e.Status == Existing && f.FirstRowID == nil {
		file["first_row_id"] = number(e.assigned)
	}
	metrics(file, f.Metrics)
	out := object{"status": int(e.Status), "snapshot_id": e.SnapshotID, "data_file": file, "sequence_number": nil, "file_sequence_number": nil}
	if e.Explicit {
		out["sequence_number"], out["file_sequence_number"] = e.Sequence, e.Sequence
	}
	return out, nil
}

var formatNames = map[facts.Format]string{facts.Parquet: "PARQUET", facts.Avro: "AVRO", facts.ORC: "ORC", facts.Puffin: "PUFFIN"}

func number(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}

func orNull(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

func metrics(file object, all map[int]Metric) {
	ids := make([]int, 0, len(all))
	for id := range all {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	put := func(name string, of func(Metric) any) {
		var list []any
		for _, id := range ids {
			if v := of(all[id]); v != nil {
				list = append(list, object{"key": id, "value": v})
			}
		}
		file[name] = nil
		if list != nil {
			file[name] = list
		}
	}
	put("column_sizes", func(m Metric) any { return number(m.Size) })
	put("value_counts", func(m Metric) any { return number(m.Values) })
	put("null_value_counts", func(m Metric) any { return number(m.Nulls) })
	put("nan_value_counts", func(m Metric) any { return number(m.NaNs) })
	put("lower_bounds", func(m Metric) any { return orNull(m.Lower) })
	put("upper_bounds", func(m Metric) any { return orNull(m.Upper) })
}

func (t *Table) writeList(ctx context.Context, s *Snapshot) error {
	var records []object
	for _, m := range s.Manifests {
		content := 0
		if m.Deletes {
			content = 1
		}
		o := object{
			"manifest_path": m.Path, "manifest_length": m.Length, "partition_spec_id": m.SpecID, "content": content,
			"sequence_number": m.Sequence, "min_sequence_number": m.minSequence(), "added_snapshot_id": m.SnapshotID,
			"first_row_id": nil,
		}
		for status, name := range map[Status]string{Added: "added", Existing: "existing", Deleted: "deleted"} {
			files, rows := m.Count(status)
			o[name+"_files_count"], o[name+"_rows_count"] = files, rows
		}
		if m.FirstRowID != facts.Unknown {
			o["first_row_id"] = m.FirstRowID
		}
		records = append(records, o)
	}
	header := map[string][]byte{
		"snapshot-id": []byte(strconv.FormatInt(s.ID, 10)), "format-version": []byte(strconv.Itoa(t.FormatVersion)),
		"parent-snapshot-id": []byte("null"), "sequence-number": []byte(strconv.FormatInt(s.Sequence, 10)),
	}
	if s.Parent != meta.None {
		header["parent-snapshot-id"] = []byte(strconv.FormatInt(s.Parent, 10))
	}
	if t.FormatVersion > 2 {
		header["first-row-id"] = []byte(strconv.FormatInt(s.FirstRowID, 10))
	}
	schema := listSchema(t.FormatVersion)
	b, err := container(schema, schema, header, records)
	if err != nil {
		return err
	}
	t.files++
	s.List = fmt.Sprintf("%s/metadata/snap-%d-%d.avro", t.location, s.ID, t.files)
	return t.put(ctx, s.List, b)
}

// container is an Avro object container file: text is the schema in its header, plain the same without logical types.
func container(text, plain object, header map[string][]byte, records []object) ([]byte, error) {
	shown, err := json.Marshal(text)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(plain)
	if err != nil {
		return nil, err
	}
	schema, err := avro.Parse(string(raw))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, schema, ocf.WithSchema(string(shown)), ocf.WithMetadata(header), ocf.WithCodec(ocf.DeflateCodec(-1)))
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if err := w.Encode(r); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
