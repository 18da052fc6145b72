package parquetio_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/realdata"
	"github.com/skomerdb/skomer/internal/rowset"
)

// TestHyparquetRows compares every value of the files that come with their rows as JSON, read whole and in slices through the page
// index.
func TestHyparquetRows(t *testing.T) {
	compared := 0
	for _, path := range realdata.Glob(t, "hyparquet/*.parquet") {
		raw, err := os.ReadFile(strings.TrimSuffix(path, ".parquet") + ".json")
		if err != nil {
			continue
		}
		name := filepath.Base(path)
		var want [][]any
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(&want); err != nil {
			t.Logf("%s: rows are not lists: %v", name, err)
			continue
		}
		data, _ := os.ReadFile(path)
		o := object(data)
		f, err := o.open(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, step := range []uint32{0, 3} {
			got, err := sliced(t, o, step)
			if fault.Is(err, fault.Unsupported) && strings.Contains(err.Error(), "shredded variant") {
				break
			}
			if err != nil {
				t.Errorf("%v", err)
				break
			}
			if len(got) != len(want) && step == 0 {
				t.Errorf("%s: %d rows, want %d", name, len(got), len(want))
				break
			}
			bad := 0
			for _, row := range got {
				at := row[0].(uint32)
				for c, field := range f.Schema().Fields {
					if !tolerates(row[c+1], field.Type, want[at][c]) && bad < 3 {
						bad++
						t.Errorf("%s: row %d column %s: %v (%s), want %v", name, at, field.Name, dereference(row[c+1]), field.Type, want[at][c])
					}
				}
			}
			compared++
		}
	}
	if compared < 80 {
		t.Errorf("only %d comparisons", compared)
	}
}

// sliced reads all rows, or with a step every step-th one through the page index.
func sliced(t *testing.T, o object, step uint32) (rows [][]any, err error) {
	f, err := o.open("sliced")
	if err != nil {
		return nil, err
	}
	var set *rowset.Set
	if step > 0 {
		var picked []uint32
		for r := step / 2; int64(r) < f.Rows(); r += step {
			picked = append(picked, r)
		}
		set = rowset.FromRows(uint32(f.Rows()), picked)
	}
	err = o.scan(t, f, allPaths(f), set, step > 0, func(b *column.Batch) error {
		rows = append(rows, rowsOf(b)...)
		return nil
	})
	return rows, err
}

// tolerates compares a value with what a JavaScript reader made of it.
func tolerates(got any, typ column.Type, want any) bool {
	if list, ok := got.([]any); ok && len(list) == 0 && typ.Kind == column.List && want == nil {
		return true // a repeated field without annotation cannot be null; there it is
	}
	if got == nil || want == nil {
		f, is64 := got.(float64)
		f32, is32 := got.(float32)
		nan := is64 && (math.IsNaN(f) || math.IsInf(f, 0)) || is32 && (f32 != f32 || math.IsInf(float64(f32), 0))
		return want == nil && (got == nil || nan)
	}
	switch x := got.(type) {
	case bool:
		return want == x
	case int64:
		return tolerateInt(x, typ.Kind, want)
	case float32:
		return closeTo(float64(x), want, 1e-6)
	case float64:
		return closeTo(x, want, 1e-12)
	case *big.Int:
		r := new(big.Rat).SetFrac(x, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(typ.Scale)), nil))
		f, _ := r.Float64()
		return closeTo(f, want, 1e-9)
	case string:
		return tolerateBytes(x, typ.Kind, want)
	case []any:
		return tolerateNested(x, typ, want)
	case []pair:
		return tolerateMap(x, typ, want)
	}
	return false
}

func tolerateInt(x int64, kind column.Kind, want any) bool {
	if n, ok := want.(json.Number); ok {
		for _, scale := range []int64{1, 1000, 1_000_000, 1_000_000_000, 86_400_000} {
			if n.String() == strconv.FormatInt(x, 10) || kind != column.Int && kind != column.Long && n.String() == strconv.FormatInt(x/scale, 10) {
				return true
			}
		}
		f, err := n.Float64()
		return err == nil && f == float64(x)
	}
	s, ok := want.(string)
	if !ok {
		return false
	}
	if strings.HasPrefix(s, "+0") { // a year of more than four digits
		return true
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		at, err = time.Parse("2006-01-02", s)
	}
	if err != nil {
		return s == strconv.FormatInt(x, 10)
	}
	switch kind {
	case column.Date:
		return at.Unix() == x*86400
	case column.TimestampNS, column.TimestampNZ:
		return at.UnixMilli() == time.Unix(0, x).UnixMilli()
	default:
		return at.UnixMilli() == time.UnixMicro(x).UnixMilli()
	}
}

func closeTo(f float64, want any, eps float64) bool {
	n, ok := want.(json.Number)
	if !ok {
		return fmt.Sprint(f) == fmt.Sprint(want)
	}
	w, err := n.Float64()
	return err == nil && math.Abs(w-f) <= eps*math.Max(1, math.Abs(w))
}

func tolerateBytes(x string, kind column.Kind, want any) bool {
	switch w := want.(type) {
	case string:
		if kind == column.UUID {
			return strings.ReplaceAll(w, "-", "") == fmt.Sprintf("%x", x)
		}
		return w == strings.ToValidUTF8(x, "\uFFFD") || strings.ToValidUTF8(w, "") == strings.ToValidUTF8(x, "") || string([]rune(w)) == latin(x)
	case []any:
		if len(w) != len(x) {
			return false
		}
		for i := range w {
			if fmt.Sprint(w[i]) != strconv.Itoa(int(x[i])) {
				return false
			}
		}
		return true
	default: // JSON and geometry columns come parsed
		return kind == column.String || kind.VarLen()
	}
}

func latin(s string) string {
	var r []rune
	for i := range len(s) {
		r = append(r, rune(s[i]))
	}
	return string(r)
}

func tolerateNested(x []any, typ column.Type, want any) bool {
	if typ.Kind == column.Struct {
		w, ok := want.(map[string]any)
		if !ok {
			return false
		}
		for i, f := range typ.Fields {
			if !tolerates(x[i], f.Type, w[f.Name]) {
				return false
			}
		}
		return true
	}
	w, ok := want.([]any)
	if !ok || len(w) != len(x) {
		return false
	}
	for i := range x {
		if !tolerates(x[i], typ.Fields[0].Type, w[i]) {
			return false
		}
	}
	return true
}

func tolerateMap(x []pair, typ column.Type, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		for _, p := range x {
			if !tolerates(p.value, typ.Fields[1].Type, w[fmt.Sprint(p.key)]) {
				return false
			}
		}
		return len(w) == len(x)
	case []any:
		return len(w) == len(x)
	}
	return false
}
