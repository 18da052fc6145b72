import java.io.IOException;
import java.io.PrintWriter;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.PartitionKey;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.data.GenericAppenderFactory;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.InternalRecordWrapper;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.deletes.EqualityDeleteWriter;
import org.apache.iceberg.deletes.PositionDelete;
import org.apache.iceberg.deletes.PositionDeleteWriter;
import org.apache.iceberg.encryption.EncryptedOutputFile;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.expressions.Literal;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.types.Types;

/**
 * Writes tables with equality deletes into the folder that is its argument, and what Iceberg's own generic reader reads in each of
 * their snapshots into cases.jsonl.
 */
public class EqualityDeletes {
  static final Schema EVENTS = new Schema(
      Types.NestedField.required(1, "id", Types.IntegerType.get()),
      Types.NestedField.optional(2, "name", Types.StringType.get()),
      Types.NestedField.optional(3, "score", Types.DoubleType.get()),
      Types.NestedField.optional(4, "ratio", Types.FloatType.get()),
      Types.NestedField.optional(5, "day", Types.DateType.get()),
      Types.NestedField.optional(6, "price", Types.DecimalType.of(9, 2)),
      Types.NestedField.optional(7, "code", Types.BinaryType.get()),
      Types.NestedField.optional(8, "key", Types.UUIDType.get()),
      Types.NestedField.optional(9, "at", Types.TimestampType.withZone()),
      Types.NestedField.optional(10, "flag", Types.BooleanType.get()),
      Types.NestedField.optional(11, "place", Types.StructType.of(
          Types.NestedField.optional(12, "city", Types.StringType.get()),
          Types.NestedField.optional(13, "zip", Types.IntegerType.get()))));

  static String out;
  static PrintWriter cases;
  static int files;

  final String name;
  final Table table;
  FileFormat deleteFormat = FileFormat.PARQUET;

  EqualityDeletes(String name, int version, Schema schema, PartitionSpec spec) {
    this.name = name;
    this.table = new HadoopTables(new Configuration())
        .create(schema, spec, Map.of("format-version", "" + version, "write.parquet.page-row-limit", "20"), out + "/" + name);
  }

  public static void main(String[] args) throws IOException {
    out = args[0];
    cases = new PrintWriter(Files.newBufferedWriter(Path.of(out, "cases.jsonl")));
    keys("keys_v2", 2, FileFormat.PARQUET);
    keys("keys_v3", 3, FileFormat.AVRO);
    floats();
    partitions();
    evolved();
    dropped();
    defaults();
    mixed();
    cases.close();
  }

  /** Every type as a key, null among the values, key sets of two columns, and sequence numbers: rows come back after their delete. */
  static void keys(String name, int version, FileFormat deletes) throws IOException {
    EqualityDeletes t = new EqualityDeletes(name, version, EVENTS, PartitionSpec.unpartitioned());
    t.deleteFormat = deletes;
    t.commit(t.rows(0, 60), null);
    t.commit(t.rows(60, 90), null);
    t.commit(null, t.equal(keys("id", 3), keys("id", 61), keys("id", 1000)));
    t.commit(t.rows(3, 5), null); // 3 is back
    t.commit(t.rows(90, 100), t.equal(keys("name", null), keys("name", "name-1"))); // rows of the same commit stay
    t.commit(null, t.equal(keys("day", LocalDate.of(2024, 1, 31), "name", "name-2"), keys("day", null, "name", "name-3"), keys("day", null, "name", null)));
    t.commit(null, t.equal(keys("price", new BigDecimal("12.50")), keys("price", null)));
    t.commit(null, t.equal(keys("code", ByteBuffer.wrap(new byte[] {7, (byte) 0xff}))));
    t.commit(null, t.equal(keys("key", new UUID(8, 8))));
    t.commit(null, t.equal(keys("at", OffsetDateTime.of(2024, 1, 1, 9, 0, 0, 9000, ZoneOffset.UTC))));
    t.commit(null, t.equal(keys("flag", true, "id", 10), keys("flag", null, "id", 11), keys("flag", false, "id", 15)));
    t.commit(t.rows(200, 202), t.equal(keys("place.zip", 20), keys("place.zip", 71)));
    t.answers(EVENT_FILTERS, "id", "score");
  }

  /** NaN equals NaN, null equals null, and the two zeros are apart: each key is deleted in a partition that holds all of them. */
  static void floats() throws IOException {
    Schema schema = new Schema(
        Types.NestedField.required(1, "part", Types.IntegerType.get()),
        Types.NestedField.required(2, "id", Types.IntegerType.get()),
        Types.NestedField.optional(3, "d", Types.DoubleType.get()),
        Types.NestedField.optional(4, "f", Types.FloatType.get()));
    EqualityDeletes t = new EqualityDeletes("floats", 2, schema, PartitionSpec.builderFor(schema).identity("part").build());
    Double[] values = {0.0, -0.0, Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, Double.MIN_VALUE, 1.5, Double.longBitsToDouble(0x7ff8000000000001L), null};
    List<Record> rows = new ArrayList<>();
    for (int i = 0; i < 2 * values.length * values.length; i++) {
      Record r = GenericRecord.create(schema);
      Double v = values[i % values.length];
      r.setField("part", i / values.length);
      r.setField("id", i);
      r.setField("d", v);
      r.setField("f", v == null ? null : v.floatValue());
      rows.add(r);
    }
    t.commit(rows, null);
    List<DeleteFile> deletes = new ArrayList<>();
    for (int i = 0; i < values.length; i++) {
      deletes.addAll(t.equalIn(rows.get(2 * i * values.length), keys("d", values[i])));
      deletes.addAll(t.equalIn(rows.get((2 * i + 1) * values.length), keys("f", values[i] == null ? null : values[i].floatValue())));
    }
    t.commit(null, deletes);
    t.answers(Map.of("d IS NULL", Expressions.isNull("d"), "id > 20", Expressions.greaterThan("id", 20), "part = 4", Expressions.equal("part", 4)), "id");
  }

  /** Deletes belong to a partition, unless they were written under an unpartitioned spec: then they are global. */
  static void partitions() throws IOException {
    EqualityDeletes t = new EqualityDeletes("partitions", 2, EVENTS, PartitionSpec.builderFor(EVENTS).identity("name").bucket("id", 2).build());
    t.commit(t.rows(0, 60), null);
    t.commit(null, t.equalIn(t.row(7), keys("day", LocalDate.of(2024, 1, 8)), keys("day", null)));
    t.commit(null, t.equalIn(t.row(6), keys("price", null), keys("price", new BigDecimal("6.25")))); // name is null
    PartitionSpec old = t.table.spec();
    t.table.updateSpec().removeField("name").removeField("id_bucket").commit();
    t.table.refresh();
    t.commit(null, t.equal(keys("id", 20), keys("id", 21), keys("id", 22))); // global: rows of all specs
    t.commit(t.rows(60, 80), null);
    t.commit(null, t.equalUnder(old, t.row(32), keys("id", 32), keys("id", 62))); // partitioned: not the rows of the new spec
    t.commit(null, t.equal(keys("name", "name-3"), keys("name", null)));
    t.table.updateSpec().addField(Expressions.day("at")).commit();
    t.table.refresh();
    t.commit(t.rows(80, 110), null);
    t.commit(null, t.equalIn(t.row(83), keys("flag", true), keys("flag", null)));
    t.answers(EVENT_FILTERS, "day");
  }

  /** Keys that were renamed, promoted and dropped after the delete was written. */
  static void evolved() throws IOException {
    EqualityDeletes t = new EqualityDeletes("evolved", 2, EVENTS, PartitionSpec.unpartitioned());
    t.commit(t.rows(0, 40), null);
    t.commit(null, t.equal(keys("id", 4), keys("id", 5)));
    t.commit(null, t.equal(keys("ratio", 1.5f)));
    t.commit(null, t.equal(keys("name", "name-1"), keys("name", null)));
    t.table.updateSchema().updateColumn("id", Types.LongType.get()).updateColumn("ratio", Types.DoubleType.get())
        .updateColumn("price", Types.DecimalType.of(12, 2)).renameColumn("name", "title").deleteColumn("at").commit();
    t.table.refresh();
    t.commit(t.rows(40, 60), null);
    t.commit(null, t.equal(keys("id", 6L), keys("id", 41L)));
    t.commit(null, t.equal(keys("ratio", 2.25, "title", "name-4"), keys("price", null, "title", "name-2")));
    t.table.updateSchema().addColumn("at", Types.StringType.get()).addColumn("note", Types.StringType.get()).renameColumn("title", "label").commit();
    t.table.refresh();
    t.commit(null, t.equal(keys("note", "x"), keys("note", "y")));
    t.commit(t.rows(60, 70), null);
    t.commit(null, t.equal(keys("note", null, "label", "name-2"))); // the column is absent from the old files
    t.answers(Map.of(
        "id > 30", Expressions.greaterThan("id", 30), "ratio = 2.5", Expressions.equal("ratio", 2.5), "at IS NULL", Expressions.isNull("at"),
        "title = 'name-4'", Expressions.equal("title", "name-4"), "label = 'name-4'", Expressions.equal("label", "name-4"),
        "name = 'name-4'", Expressions.equal("name", "name-4")), "day");
  }

  /** A key that is dropped later still deletes. Iceberg's reader fails on such a table, so that it is asked before. */
  static void dropped() throws IOException {
    EqualityDeletes t = new EqualityDeletes("dropped", 2, EVENTS, PartitionSpec.unpartitioned());
    t.commit(t.rows(0, 40), null);
    t.commit(null, t.equal(keys("flag", null), keys("name", "name-3", "flag", true)));
    t.answer(IcebergGenerics.read(t.table), "", "", t.table.currentSnapshot(), r -> true, List.of("id", "name", "day"));
    t.answer(IcebergGenerics.read(t.table).where(Expressions.lessThan("id", 20)), "", "id < 20", t.table.currentSnapshot(), r -> true, List.of("id", "name"));
    t.table.updateSchema().deleteColumn("flag").commit();
  }

  /** Columns that are absent from older data files, with an initial default, which Iceberg's filters and equality deletes overlook. */
  static void defaults() throws IOException {
    Schema schema = new Schema(Types.NestedField.required(1, "id", Types.IntegerType.get()), Types.NestedField.optional(2, "v", Types.StringType.get()));
    EqualityDeletes t = new EqualityDeletes("defaults", 3, schema, PartitionSpec.unpartitioned());
    t.commit(t.rows(0, 20), null);
    t.table.updateSchema().addColumn("n", Types.IntegerType.get(), "", Literal.of(7)).addColumn("s", Types.StringType.get(), "", Literal.of("none")).commit();
    t.table.refresh();
    t.commit(t.rows(20, 40), t.equal(keys("id", 3), keys("id", 30)));
    t.answers(Map.of("id < 10", Expressions.lessThan("id", 10), "v = 'v2'", Expressions.equal("v", "v2")), "n", "s");
    t.answer(IcebergGenerics.read(t.table), "", "n = 7", t.table.currentSnapshot(), r -> Integer.valueOf(7).equals(r.getField("n")), List.of("id", "n"));
    t.answer(IcebergGenerics.read(t.table), "", "s IS NULL", t.table.currentSnapshot(), r -> r.getField("s") == null, List.of("id", "s"));
    t.answer(IcebergGenerics.read(t.table), "", "s = 'none' AND n > 6", t.table.currentSnapshot(), r -> "none".equals(r.getField("s")), List.of("id"));
  }

  /** Position deletes beside equality deletes. */
  static void mixed() throws IOException {
    EqualityDeletes t = new EqualityDeletes("mixed", 2, EVENTS, PartitionSpec.builderFor(EVENTS).truncate("name", 6).build());
    List<DataFile> first = t.commit(t.rows(0, 50), null);
    t.commit(null, t.equalIn(t.row(8), keys("id", 8), keys("id", 9), keys("id", 13)));
    t.commit(null, List.of(t.positions(first.get(0), 0, 2, 3)));
    List<DataFile> second = t.commit(t.rows(50, 80), t.equalIn(t.row(11), keys("price", new BigDecimal("13.75"))));
    t.commit(null, List.of(t.positions(second.get(1), 1), t.positions(first.get(1), 0)));
    t.answers(EVENT_FILTERS, "code");
  }

  static final Map<String, Expression> EVENT_FILTERS = new LinkedHashMap<>();

  static {
    EVENT_FILTERS.put("id = 3", Expressions.equal("id", 3));
    EVENT_FILTERS.put("id IN (10, 61, 90, 200)", Expressions.in("id", 10, 61, 90, 200));
    EVENT_FILTERS.put("id >= 40 AND name = 'name-2'", Expressions.and(Expressions.greaterThanOrEqual("id", 40), Expressions.equal("name", "name-2")));
    EVENT_FILTERS.put("name IS NULL", Expressions.isNull("name"));
    EVENT_FILTERS.put("name LIKE 'name-4%'", Expressions.startsWith("name", "name-4"));
    EVENT_FILTERS.put("score IS NAN", Expressions.isNaN("score"));
    EVENT_FILTERS.put("day < DATE '2024-01-20'", Expressions.and(Expressions.notNull("day"), Expressions.lessThan("day", "2024-01-20"))); // null is less to it
    EVENT_FILTERS.put("price = 20", Expressions.equal("price", new BigDecimal("20.00")));
    EVENT_FILTERS.put("flag = TRUE", Expressions.equal("flag", true));
    EVENT_FILTERS.put("place.city = 'city-1'", Expressions.equal("place.city", "city-1"));
  }

  /** Key values by column name, dotted for a nested one. */
  static Map<String, Object> keys(Object... pairs) {
    Map<String, Object> key = new LinkedHashMap<>();
    for (int i = 0; i < pairs.length; i += 2) {
      key.put((String) pairs[i], pairs[i + 1]);
    }
    return key;
  }

  List<Record> rows(int first, int last) {
    List<Record> rows = new ArrayList<>();
    for (int i = first; i < last; i++) {
      rows.add(row(i));
    }
    return rows;
  }

  /** The row of a number, in the columns that the table has now. */
  Record row(int i) {
    Record r = GenericRecord.create(table.schema());
    for (Types.NestedField f : table.schema().columns()) {
      r.setField(f.name(), value(f, i));
    }
    return r;
  }

  static Object value(Types.NestedField f, int i) {
    switch (f.name()) {
      case "n":
        return i % 4 == 0 ? null : (Object) (i % 4 + 5);
      case "v", "s", "note":
        return i % 4 == 1 ? null : "v" + i % 4;
      default:
        break;
    }
    switch (f.fieldId()) {
      case 1:
        return f.type().typeId() == org.apache.iceberg.types.Type.TypeID.LONG ? (Object) (long) i : (Object) i;
      case 2:
        return i % 6 == 0 ? null : "name-" + i % 5;
      case 3:
        return i % 9 == 4 ? (Object) Double.NaN : i % 9 == 5 ? null : (Object) (i / 8.0);
      case 4:
        return f.type().typeId() == org.apache.iceberg.types.Type.TypeID.DOUBLE ? (Object) (i / 4.0) : (Object) (i / 4f);
      case 5:
        return i % 8 == 3 ? null : LocalDate.of(2024, 1, 1).plusDays(i);
      case 6:
        return i % 10 == 9 ? null : new BigDecimal(i * 125).movePointLeft(2);
      case 7:
        return ByteBuffer.wrap(new byte[] {(byte) i, (byte) 0xff});
      case 8:
        return new UUID(i, i);
      case 9:
        return OffsetDateTime.of(2024, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC).plusHours(i).plusNanos(i * 1000L);
      case 10:
        return i % 3 == 2 ? null : (Object) (i % 2 == 0);
      case 11:
        if (i % 12 == 7) {
          return null;
        }
        Record place = GenericRecord.create(f.type().asStructType());
        place.setField("city", "city-" + i % 4);
        place.setField("zip", i % 13 == 6 ? null : (Object) i);
        return place;
      default:
        return i % 4 == 1 ? null : "again";
    }
  }

  /** Writes one data file a partition and commits it with delete files. */
  List<DataFile> commit(List<Record> rows, List<DeleteFile> deletes) throws IOException {
    RowDelta delta = table.newRowDelta();
    List<DataFile> written = new ArrayList<>();
    if (rows != null) {
      Map<StructLike, List<Record>> byPartition = new LinkedHashMap<>();
      for (Record r : rows) {
        byPartition.computeIfAbsent(partition(r), k -> new ArrayList<>()).add(r);
      }
      for (Map.Entry<StructLike, List<Record>> e : byPartition.entrySet()) {
        DataWriter<Record> w = new GenericAppenderFactory(table.schema(), table.spec())
            .newDataWriter(file("data", FileFormat.PARQUET), FileFormat.PARQUET, e.getKey());
        try (w) {
          e.getValue().forEach(w::write);
        }
        written.add(w.toDataFile());
      }
    }
    written.forEach(delta::addRows);
    if (deletes != null) {
      deletes.forEach(delta::addDeletes);
    }
    delta.commit();
    table.refresh();
    return written;
  }

  PartitionKey partition(Record r) {
    PartitionKey key = new PartitionKey(table.spec(), table.schema());
    key.partition(new InternalRecordWrapper(table.schema().asStruct()).wrap(r));
    return key;
  }

  EncryptedOutputFile file(String kind, FileFormat format) {
    return table.encryption().encrypt(table.io().newOutputFile(format.addExtension(table.location() + "/data/" + kind + "-" + files++)));
  }

  @SafeVarargs
  final List<DeleteFile> equal(Map<String, Object>... keys) throws IOException {
    return equalUnder(table.spec(), null, keys);
  }

  @SafeVarargs
  final List<DeleteFile> equalIn(Record place, Map<String, Object>... keys) throws IOException {
    return equalUnder(table.spec(), place, keys);
  }

  /** One delete file for each set of columns among the keys, in the partition of a row. */
  @SafeVarargs
  final List<DeleteFile> equalUnder(PartitionSpec spec, Record place, Map<String, Object>... keys) throws IOException {
    Map<List<String>, List<Map<String, Object>>> sets = new LinkedHashMap<>();
    for (Map<String, Object> key : keys) {
      sets.computeIfAbsent(List.copyOf(key.keySet()), k -> new ArrayList<>()).add(key);
    }
    List<DeleteFile> deletes = new ArrayList<>();
    for (Map.Entry<List<String>, List<Map<String, Object>>> e : sets.entrySet()) {
      Schema schema = table.schema().select(e.getKey());
      int[] ids = e.getKey().stream().mapToInt(n -> table.schema().findField(n).fieldId()).toArray();
      PartitionKey partition = null;
      if (place != null) {
        partition = new PartitionKey(spec, table.schema());
        partition.partition(new InternalRecordWrapper(table.schema().asStruct()).wrap(place));
      }
      EqualityDeleteWriter<Record> w = new GenericAppenderFactory(table.schema(), spec, ids, schema, null)
          .newEqDeleteWriter(file("equal", deleteFormat), deleteFormat, partition);
      try (w) {
        for (Map<String, Object> key : e.getValue()) {
          w.write(record(schema, key));
        }
      }
      deletes.add(w.toDeleteFile());
    }
    return deletes;
  }

  static Record record(Schema schema, Map<String, Object> key) {
    Record r = GenericRecord.create(schema);
    key.forEach((name, v) -> {
      int dot = name.indexOf('.');
      if (dot < 0) {
        r.setField(name, v);
        return;
      }
      Record inner = GenericRecord.create(schema.findField(name.substring(0, dot)).type().asStructType());
      inner.setField(name.substring(dot + 1), v);
      r.setField(name.substring(0, dot), inner);
    });
    return r;
  }

  DeleteFile positions(DataFile data, long... at) throws IOException {
    PositionDeleteWriter<Record> w = new GenericAppenderFactory(table.schema(), table.spec())
        .newPosDeleteWriter(file("positions", deleteFormat), deleteFormat, data.partition());
    try (w) {
      for (long p : at) {
        w.write(PositionDelete.<Record>create().set(data.location(), p, null));
      }
    }
    return w.toDeleteFile();
  }

  /**
   * Writes what the generic reader reads: all snapshots whole, and the present one by filters and in some columns. The columns are
   * taken from whole rows: asked for fewer, the reader loses rows when the keys of deletes are not among them.
   */
  void answers(Map<String, Expression> filters, String... projected) throws IOException {
    for (Snapshot s : table.snapshots()) {
      answer(IcebergGenerics.read(table).useSnapshot(s.snapshotId()), "" + s.snapshotId(), "", s, r -> true, names(table.schemas().get(s.schemaId())));
    }
    Snapshot now = table.currentSnapshot();
    answer(IcebergGenerics.read(table), "", "", now, r -> true, names(table.schema()));
    answer(IcebergGenerics.read(table), "", "", now, r -> true, List.of(projected));
    for (Map.Entry<String, Expression> f : filters.entrySet()) {
      String column = f.getKey().split("[ .]")[0];
      if (table.schema().findField(column) != null) {
        answer(IcebergGenerics.read(table).where(f.getValue()), "", f.getKey(), now, r -> true, names(table.schema()));
      }
    }
  }

  static List<String> names(Schema schema) {
    return schema.columns().stream().map(Types.NestedField::name).collect(Collectors.toList());
  }

  void answer(IcebergGenerics.ScanBuilder scan, String at, String where, Snapshot s, Predicate<Record> filter, List<String> columns) throws IOException {
    List<String> rows = new ArrayList<>();
    try (CloseableIterable<Record> records = scan.build()) {
      for (Record r : records) {
        if (filter.test(r)) {
          rows.add(columns.stream().map(name -> text(r.getField(name))).collect(Collectors.joining("|")));
        }
      }
    }
    rows.sort(EqualityDeletes::compareUtf8);
    Map<String, String> summary = s.summary();
    boolean deletes = !summary.getOrDefault("total-equality-deletes", "0").equals("0") || !summary.getOrDefault("total-position-deletes", "0").equals("0");
    cases.println("{\"table\":" + quoted(out + "/" + name) + ",\"at\":" + quoted(at) + ",\"where\":" + quoted(where) + ",\"deletes\":" + deletes
        + ",\"columns\":" + list(columns) + ",\"rows\":" + list(rows) + "}");
  }

  static int compareUtf8(String a, String b) {
    return java.util.Arrays.compareUnsigned(a.getBytes(java.nio.charset.StandardCharsets.UTF_8), b.getBytes(java.nio.charset.StandardCharsets.UTF_8));
  }

  static String list(List<String> all) {
    return all.stream().map(EqualityDeletes::quoted).collect(Collectors.joining(",", "[", "]"));
  }

  static String quoted(String s) {
    return '"' + s.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
  }

  /** The rendering that package interop defines. */
  static String text(Object v) {
    if (v instanceof String s) {
      return quoted(s);
    }
    if (v instanceof Double || v instanceof Float) {
      double d = ((Number) v).doubleValue();
      return Double.isNaN(d) ? "nan" : String.format("f%016x", Double.doubleToRawLongBits(d));
    }
    if (v instanceof BigDecimal d) {
      return d.unscaledValue() + "e" + -d.scale();
    }
    if (v instanceof LocalDate d) {
      return "" + d.toEpochDay();
    }
    if (v instanceof OffsetDateTime t) {
      return "" + ChronoUnit.MICROS.between(OffsetDateTime.of(LocalDateTime.of(1970, 1, 1, 0, 0), ZoneOffset.UTC), t);
    }
    if (v instanceof UUID u) {
      return String.format("x%016x%016x", u.getMostSignificantBits(), u.getLeastSignificantBits());
    }
    if (v instanceof ByteBuffer b) {
      StringBuilder hex = new StringBuilder("x");
      for (int i = b.position(); i < b.limit(); i++) {
        hex.append(String.format("%02x", b.get(i)));
      }
      return hex.toString();
    }
    if (v instanceof Record r) {
      return r.struct().fields().stream().map(f -> text(r.getField(f.name()))).collect(Collectors.joining(",", "(", ")"));
    }
    return String.valueOf(v);
  }
}
