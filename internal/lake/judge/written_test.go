package judge

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/lake/meta"
	"github.com/skomerdb/skomer/internal/store/local"
)

// partitions are one of every type that can be an identity partition, in field id order from 1.
var partitions = []column.Type{
	column.Of(column.Bool), column.Of(column.Int), column.Of(column.Long), column.Of(column.Float), column.Of(column.Double),
	column.DecimalOf(9, 2), column.DecimalOf(38, 10), column.Of(column.Date), column.Of(column.Time), column.Of(column.Timestamp),
	column.Of(column.TimestampTZ), column.Of(column.String), column.Of(column.UUID), column.FixedOf(5), column.Of(column.Binary),
}

func random(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		seed = n
	}
	t.Logf("SKOMER_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func value(r *rand.Rand, t column.Type) facts.PartitionValue {
	if r.IntN(5) == 0 {
		return facts.PartitionValue{Null: true}
	}
	n := r.Int64N(1_000_000) - 500_000
	v := column.IntValue(t.Kind, n)
	switch t.Kind {
	case column.Bool:
		v = column.BoolValue(n < 0)
	case column.Time:
		v = column.IntValue(t.Kind, n+500_000)
	case column.Float:
		v = column.FloatValue(float32(n))
	case column.Double:
		v = column.DoubleValue(float64(n) / 3)
	case column.Decimal:
		v = column.DecimalValue(n>>63, uint64(n), t.Scale)
	case column.String:
		v = column.StringValue(fmt.Sprint("é/%=", n))
	case column.UUID, column.Fixed:
		b := make([]byte, t.Size())
		for i := range b {
			b[i] = byte(n >> (i % 4 * 8))
		}
		v = column.BytesValue(t.Kind, b)
	case column.Binary:
		v = column.BytesValue(t.Kind, []byte{byte(n), 0, 255})
	}
	return facts.PartitionValue{Value: v}
}

// written makes a table with a random history.
func written(t *testing.T, r *rand.Rand) *lakewrite.Table {
	ctx := context.Background()
	version := 1 + r.IntN(3)
	schema, spec := &column.Schema{}, &facts.Spec{}
	for i, typ := range partitions {
		schema.Fields = append(schema.Fields, column.Field{ID: i + 1, Name: fmt.Sprint("c", i+1), Type: typ})
		spec.Fields = append(spec.Fields, facts.PartitionField{ID: 1000 + i, SourceID: i + 1, Name: fmt.Sprint("c", i+1), Transform: "identity"})
	}
	w, err := lakewrite.Create(ctx, local.New(), t.TempDir(), lakewrite.Spec{Schema: schema, Partition: spec, FormatVersion: version})
	require.NoError(t, err)
	var live []string
	for n := range 2 + r.IntN(4) {
		var c lakewrite.Change
		for i := range 1 + r.IntN(3) {
			f := lakewrite.File{Path: fmt.Sprintf("%s/data/%d-%d.parquet", w.Location(), n, i), Records: 1 + r.Int64N(9), Size: 100}
			for _, typ := range partitions {
				f.Partition = append(f.Partition, value(r, typ))
			}
			if version > 1 && r.IntN(4) == 0 {
				f.Content = lakewrite.PositionDeletes
				if version > 2 {
					f.Format, f.Offset, f.Length, f.Referenced = facts.Puffin, lakewrite.N(4), lakewrite.N(40), f.Path+"-target"
				}
			} else {
				live = append(live, f.Path)
			}
			c.Add = append(c.Add, f)
		}
		if n > 0 && len(live) > 4 && r.IntN(2) == 0 {
			at := r.IntN(len(live) - 3)
			c.Remove = []string{live[at]}
			live = append(live[:at:at], live[at+1:]...)
		}
		if _, err := w.Commit(ctx, c); err != nil {
			require.NoError(t, err)
		}
	}
	return w
}

// TestWrittenTablesAsIcebergGoPlansThem: what lakewrite writes, iceberg-go reads as lake does, every type of partition value
// included.
func TestWrittenTablesAsIcebergGoPlansThem(t *testing.T) {
	r := random(t)
	ctx := context.Background()
	snapshots := 0
	for range 12 {
		w := written(t, r)
		mine, err := lake.New(lake.Options{}).Open(ctx, w.Location())
		require.NoError(t, err)
		other, err := table.NewFromLocation(ctx, []string{"t"}, w.MetadataPath(), func(context.Context) (icebergio.IO, error) { return files{}, nil }, nil)
		require.NoError(t, err)
		require.Equal(t, mine.UUID(), other.Metadata().TableUUID().String())
		for _, info := range mine.Snapshots() {
			s, err := mine.Snapshot(ctx, lake.Selector{ID: info.ID})
			require.NoError(t, err)
			scan := other.Scan(table.WithSnapshotID(info.ID))
			want, deletes, err := theirs(t, scan)
			require.NoError(t, err)
			require.Equal(t, want, ours(s))
			require.Subset(t, s.Deletes.Stated, keys(deletes))
			comparePartitions(t, scan, s)
			snapshots++
		}
	}
	require.Greater(t, snapshots, 20)
}

func comparePartitions(t *testing.T, scan *table.Scan, s *facts.Snapshot) {
	t.Helper()
	tasks, err := scan.PlanFiles(context.Background())
	require.NoError(t, err)
	row := map[string]int{}
	for i, p := range s.Files.Stated {
		row[p] = i
	}
	for _, task := range tasks {
		theirs := task.File.Partition()
		for i, typ := range partitions {
			col := s.Files.Partition[1000+i]
			at := row[task.File.FilePath()]
			require.True(t, col.Known[at])
			require.Equal(t, typ, col.Type)
			require.Equal(t, theirs[1000+i] == nil, col.Null[at])
			if !col.Null[at] {
				require.Equal(t, shown(theirs[1000+i]), shownValue(typ, col.Value[at]), "%s", typ)
			}
		}
	}
}

// shown prints a value of the judge's types for comparison.
func shown(v any) string {
	switch x := v.(type) {
	case []byte:
		return fmt.Sprintf("%x", x)
	case uuid.UUID:
		return fmt.Sprintf("%x", x[:])
	case iceberg.DecimalLiteral:
		return x.Val.BigInt().String()
	default:
		return fmt.Sprint(x)
	}
}

func shownValue(t column.Type, v column.Value) string {
	switch t.Kind {
	case column.Bool:
		return fmt.Sprint(v.Lo != 0)
	case column.Float:
		return fmt.Sprint(float32(v.Float64()))
	case column.Double:
		return fmt.Sprint(v.Float64())
	case column.String:
		return v.S
	case column.Fixed, column.Binary, column.UUID:
		return fmt.Sprintf("%x", v.S)
	case column.Decimal:
		return meta.DecimalToBig(v).String()
	default:
		return fmt.Sprint(v.Int64())
	}
}
