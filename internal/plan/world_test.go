package plan

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/predicate"
)

// world is a random table: one column in the middle of interest, some files of rows, and the facts that writers of all
// kinds, careful and careless, could have stated of them.
type world struct {
	r       *rand.Rand
	t       column.Type // the column's type now
	path    column.Path
	files   [][]cell
	facts   *facts.Snapshot
	writers map[int][]writer // per spec
	shape   shape
}

// shape is where the column stands.
type shape uint8

const (
	topLevel shape = iota
	inStruct       // optional struct
	inList
	shapes
)

const (
	columnID    = 7
	aroundID    = 6
	partitionID = 1000
)

func newWorld(r *rand.Rand, t column.Type, at shape, files int) *world {
	w := &world{r: r, t: t, shape: at, writers: map[int][]writer{}}
	leaf := column.Field{ID: columnID, Name: "x", Type: t}
	switch at {
	case topLevel:
		w.path = column.Path{leaf}
	case inStruct:
		s := column.Type{Kind: column.Struct, Fields: []column.Field{leaf}}
		w.path = column.Path{{ID: aroundID, Name: "s", Type: s}, leaf}
	case inList:
		leaf.Name = "element"
		l := column.Type{Kind: column.List, Fields: []column.Field{leaf}}
		w.path = column.Path{{ID: aroundID, Name: "l", Type: l}, leaf}
	}
	schema := &column.Schema{Fields: []column.Field{w.path[0]}}
	w.facts = &facts.Snapshot{Schema: schema, Schemas: map[int]*column.Schema{0: schema}, Specs: map[int]*facts.Spec{}}
	w.facts.Files.Columns = map[int]*facts.ColumnFacts{columnID: {}}
	w.addSpecs()
	for range files {
		w.addFile()
	}
	return w
}

// addSpecs makes up to four specs of up to two fields over the column; ids 1000 and up are reused between specs, as in v1.
func (w *world) addSpecs() {
	f := &w.facts.Files
	f.Partition = map[int]*facts.PartitionColumn{}
	w.facts.Specs[0] = &facts.Spec{}
	if w.shape == inList {
		return
	}
	for id := 1; id < 5; id++ {
		spec := &facts.Spec{ID: id}
		for k := range w.r.IntN(3) {
			wr := w.randomWriter()
			if wr.name == "" {
				continue
			}
			w.writers[id] = append(w.writers[id], wr)
			fieldID := partitionID + id*10 + k
			spec.Fields = append(spec.Fields, facts.PartitionField{ID: fieldID, SourceID: columnID, Name: wr.name, Transform: wr.String()})
			f.Partition[fieldID] = &facts.PartitionColumn{Type: wr.result(w.t)}
		}
		w.facts.Specs[id] = spec
	}
}

func (w *world) randomWriter() writer {
	names := []string{"identity", "bucket", "truncate", "year", "month", "day", "hour", "void", "geohash"}
	wr := writer{name: names[w.r.IntN(len(names))], early: w.r.IntN(3) == 0}
	switch wr.name {
	case "bucket":
		wr.param = int64(1 + w.r.IntN(9))
	case "truncate":
		wr.param = []int64{1, 2, 3, 10, 1000}[w.r.IntN(5)]
		if w.t.Kind == column.String || w.t.Kind == column.Binary {
			wr.param = int64(1 + w.r.IntN(4))
		}
	}
	if wr.name != "void" && wr.name != "geohash" && !parseTransform(wr.String(), w.t).defined() {
		return writer{}
	}
	return wr
}

// addFile makes the rows of a file that share a partition, and states them.
func (w *world) addFile() {
	f := &w.facts.Files
	spec := w.r.IntN(len(w.facts.Specs))
	old := w.older()
	gen := w.generator(old)
	rows := w.rows(spec, gen)
	w.files = append(w.files, rows)
	f.Path = append(f.Path, "")
	f.SpecID = append(f.SpecID, int32(spec))
	f.Records = append(f.Records, int64(len(rows)))
	w.statePartition(spec, rows, old)
	w.stateMetrics(rows, old)
}

// older is the type the file was written with: the column's, or one that it was promoted from.
func (w *world) older() column.Type {
	if w.r.IntN(3) > 0 {
		return w.t
	}
	switch w.t.Kind {
	case column.Long:
		return column.Of(column.Int)
	case column.Double:
		return column.Of(column.Float)
	case column.Timestamp, column.TimestampNS:
		return column.Of(column.Date)
	case column.Decimal:
		return column.DecimalOf(max(1, w.t.Width-3), w.t.Scale)
	default:
		return w.t
	}
}

// rows draws rows until enough have the partition of the first.
func (w *world) rows(spec int, gen func() column.Value) []cell {
	if w.shape == inList {
		return w.lists(gen)
	}
	nulls, nans := []int{0, 0, 10, 100}[w.r.IntN(4)], 0
	if w.t.Kind.Floating() {
		nans = []int{0, 0, 10, 100}[w.r.IntN(4)]
	}
	draw := func() cell {
		switch {
		case w.t.Kind == column.Unknown || w.r.IntN(100) < nulls:
			return cell{null: true}
		case w.r.IntN(100) < nans:
			return cell{v: w.nan()}
		default:
			return cell{v: gen()}
		}
	}
	first := draw()
	out := []cell{first}
	for range w.r.IntN(30) {
		if c := draw(); w.samePartition(spec, first, c) {
			out = append(out, c)
		}
	}
	if w.r.IntN(40) == 0 {
		return nil
	}
	return out
}

func (w *world) nan() column.Value {
	if w.t.Kind == column.Float {
		return column.FloatValue(float32(math.NaN()))
	}
	return column.DoubleValue(math.NaN())
}

func (w *world) lists(gen func() column.Value) []cell {
	var out []cell
	for range w.r.IntN(12) {
		c := cell{list: true, null: w.r.IntN(6) == 0}
		for range w.r.IntN(4) {
			e := cell{v: gen(), null: w.r.IntN(8) == 0}
			if w.t.Kind.Floating() && w.r.IntN(8) == 0 {
				e.v = w.nan()
			}
			c.elems = append(c.elems, e)
		}
		out = append(out, c)
	}
	return out
}

func (w *world) samePartition(spec int, a, b cell) bool {
	for _, wr := range w.writers[spec] {
		if a.null != b.null {
			return false
		}
		if a.null {
			continue
		}
		x, xn := wr.apply(a.v)
		y, yn := wr.apply(b.v)
		if xn != yn || !xn && x != y {
			return false
		}
	}
	return true
}

// generator draws values around one centre, so that files differ; values fit the older type.
func (w *world) generator(old column.Type) func() column.Value {
	r := w.r
	switch w.t.Kind {
	case column.Bool:
		mix := r.IntN(3)
		return func() column.Value { return column.BoolValue(mix == 0 || mix == 1 && r.IntN(2) == 0) }
	case column.Float, column.Double:
		return w.floats()
	case column.String, column.Binary, column.Fixed, column.UUID:
		return w.texts()
	case column.Decimal:
		limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(old.Width)), nil)
		centre := new(big.Int).Rsh(new(big.Int).Mul(limit, big.NewInt(int64(r.IntN(2001)-1000))), 10)
		return func() column.Value {
			x := new(big.Int).Add(centre, big.NewInt(int64(r.IntN(41)-20)))
			return decimalOf(x.Rem(x, limit), w.t.Scale)
		}
	default:
		return w.integers(old)
	}
}

func (w *world) integers(old column.Type) func() column.Value {
	r := w.r
	lo, hi, ticks := int64(math.MinInt32), int64(math.MaxInt32), int64(1)
	steps := []int64{1, 1, 7, 400}
	switch w.t.Kind {
	case column.Long:
		if old.Kind == column.Long {
			lo, hi = math.MinInt64, math.MaxInt64
		}
	case column.Date:
		lo, hi = -40_000, 40_000
	case column.Time:
		lo, hi, steps = 0, 86_400_000_000-1, []int64{1, 1e6, 60e6}
	case column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ:
		lo, hi, ticks = -3e9, 3e9, 1e6 // seconds, then ticks below
		if w.t.Kind == column.TimestampNS || w.t.Kind == column.TimestampNZ {
			ticks = 1e9
		}
		steps = []int64{1, 60, 1800, 43_200, 3e6}
	}
	centre := []int64{0, 0, lo, hi, lo/2 + r.Int64N(math.MaxInt32/2), hi/3 - r.Int64N(1000)}[r.IntN(6)]
	step := steps[r.IntN(len(steps))]
	return func() column.Value {
		d := (r.Int64N(41) - 20) * step
		x := centre + d
		if d > 0 && x < centre || d < 0 && x > centre {
			x = centre
		}
		x = min(max(x, lo), hi)
		if ticks > 1 {
			x = x*ticks + []int64{0, 0, 1, ticks - 1, -1, 1001}[r.IntN(6)]
		}
		if old.Kind == column.Date && w.t.Kind != column.Date {
			days := new(big.Int).Div(big.NewInt(x), big.NewInt(86_400*ticks)).Int64()
			x = days * 86_400 * ticks
		}
		return column.IntValue(w.t.Kind, x)
	}
}

func (w *world) floats() func() column.Value {
	r := w.r
	centre := []float64{0, 0, -100, 7, 1e30, math.Inf(1), math.Inf(-1)}[r.IntN(7)]
	return func() column.Value {
		x := centre
		switch r.IntN(6) {
		case 0:
			x = 0
		case 1:
			x = math.Copysign(0, -1)
		default:
			x += float64(r.IntN(17)-8) / 2
		}
		if centre != 0 && x == 0 {
			x = centre
		}
		if w.t.Kind == column.Float {
			return column.FloatValue(float32(x))
		}
		return column.DoubleValue(float64(float32(x))) // fits a promoted float too
	}
}

func (w *world) texts() func() column.Value {
	r := w.r
	alphabet := []string{"a", "b", "z", "é", "\uD7FF", "\uE000", "😀", "\U0010FFFF", "?"}
	if w.t.Kind != column.String {
		alphabet = []string{"\x00", "\x01", "\x7f", "\x80", "\xfe", "\xff"}
	}
	word := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(alphabet[r.IntN(len(alphabet))])
		}
		return b.String()
	}
	head := word(r.IntN(3))
	return func() column.Value {
		s := head + word(r.IntN(5))
		switch w.t.Kind {
		case column.UUID, column.Fixed:
			n := w.t.Size()
			s = (s + strings.Repeat("\x00", n))[:n]
		}
		return column.Value{Kind: w.t.Kind, S: s}
	}
}

// statePartition states the partition values of the file in the type it was written with.
func (w *world) statePartition(spec int, rows []cell, old column.Type) {
	f := &w.facts.Files
	for id, s := range w.facts.Specs {
		for k, field := range s.Fields {
			pc := f.Partition[field.ID]
			var v column.Value
			null := true
			if id == spec && len(rows) > 0 && !rows[0].null {
				v, null = w.writers[id][k].apply(rows[0].v)
				v = demoted(v, old)
			}
			pc.Known = append(pc.Known, id == spec && len(rows) > 0)
			pc.Null = append(pc.Null, null)
			pc.Value = append(pc.Value, v)
		}
	}
}

// demoted is a value in the type before a promotion.
func demoted(v column.Value, old column.Type) column.Value {
	switch {
	case v.Kind == column.Long && old.Kind == column.Int:
		v.Kind = column.Int
	case v.Kind == column.Double && old.Kind == column.Float:
		return column.FloatValue(float32(v.Float64()))
	case v.Kind == column.Timestamp && old.Kind == column.Date:
		return column.IntValue(column.Date, v.Int64()/microsPerDay)
	case v.Kind == column.TimestampNS && old.Kind == column.Date:
		return column.IntValue(column.Date, v.Int64()/nanosPerDay)
	}
	return v
}

// stateMetrics states counts and bounds: complete, partial, widened, cut or damaged.
func (w *world) stateMetrics(rows []cell, old column.Type) {
	r := w.r
	cells := rows
	if w.shape == inList {
		cells = nil
		for _, c := range rows {
			if !c.null {
				cells = append(cells, c.elems...)
			}
		}
	}
	values, nulls, nans := int64(len(cells)), int64(0), int64(0)
	var lo, hi *column.Value
	for i, c := range cells {
		switch {
		case c.null:
			nulls++
		case isNaN(c.v):
			nans++
		default:
			if lo == nil || order(c.v, *lo, true) < 0 {
				lo = &cells[i].v
			}
			if hi == nil || order(c.v, *hi, true) > 0 {
				hi = &cells[i].v
			}
		}
	}
	if w.shape == inStruct && r.IntN(2) == 0 { // some nulls are of the struct, and not counted
		missing := r.Int64N(nulls + 1)
		values, nulls = values-missing, nulls-missing
	}
	cf := w.facts.Files.Columns[columnID]
	cf.Values = append(cf.Values, w.maybe(values))
	cf.Nulls = append(cf.Nulls, w.maybe(nulls))
	cf.NaNs = append(cf.NaNs, w.maybe(nans))
	var lower, upper []byte
	if lo != nil {
		lower, upper = w.bounds(demoted(*lo, old), demoted(*hi, old))
	}
	cf.Lower, cf.Upper = append(cf.Lower, lower), append(cf.Upper, upper)
}

func (w *world) maybe(n int64) int64 {
	if w.r.IntN(8) == 0 {
		return facts.Unknown
	}
	return n
}

func (w *world) bounds(lo, hi column.Value) (lower, upper []byte) {
	r := w.r
	lower, upper = serial(lo), serial(hi)
	switch w.t.Kind {
	case column.String, column.Binary, column.Fixed:
		n := 1 + r.IntN(4)
		switch r.IntN(3) {
		case 0:
			lower, upper = cutLower(w.t.Kind, lo.S, n), cutUpper(w.t.Kind, hi.S, n)
		case 1:
			if w.t.Kind == column.String { // broken characters are noticed, clean cuts cannot be
				lower = lossy(lo.S, n)
				if cut := lossy(hi.S, n); strings.HasSuffix(string(cut), "\uFFFD") {
					upper = cut
				}
			}
		}
	case column.Float, column.Double:
		lower, upper = w.floatBounds(lo, lower), w.floatBounds(hi, upper)
	}
	switch r.IntN(12) {
	case 0:
		lower = nil
	case 1:
		upper = nil
	case 2:
		if w.t.Kind != column.Decimal && !w.t.Kind.VarLen() && w.t.Kind != column.Fixed {
			upper = append(upper, 0) // a width that no type has
		}
	case 3:
		if lower != nil && upper != nil {
			lower, upper = upper, lower // crossed: written in another order
		}
	}
	return lower, upper
}

// floatBounds loses the sign of a zero, or states NaN.
func (w *world) floatBounds(v column.Value, b []byte) []byte {
	switch {
	case w.r.IntN(12) == 0 && v.Kind == column.Float:
		return serial(column.FloatValue(float32(math.NaN())))
	case w.r.IntN(12) == 0 && v.Kind == column.Double:
		return serial(column.DoubleValue(math.NaN()))
	case real64(v) == 0 && w.r.IntN(2) == 0:
		b[len(b)-1] ^= 0x80
	}
	return b
}

// leaf draws a random leaf; literals come from the files, from near them, or from anywhere.
func (w *world) leaf() *predicate.Leaf {
	r := w.r
	l := &predicate.Leaf{Column: predicate.Column{Path: w.path}, Negated: r.IntN(2) == 0, Dialect: predicate.Dialect(r.IntN(2))}
	if w.shape == inList {
		l.Op, l.Values = predicate.Contains, []column.Value{w.literal()}
		return l
	}
	for {
		l.Op = predicate.Op(r.IntN(int(predicate.Contains)))
		switch l.Op {
		case predicate.IsNull:
			return l
		case predicate.IsNaN:
			if !w.t.Kind.Floating() {
				continue
			}
			return l
		case predicate.StartsWith, predicate.Like:
			if w.t.Kind != column.String {
				continue
			}
			w.text(l)
			return l
		case predicate.In:
			for range r.IntN(4) {
				l.Values = append(l.Values, w.literal())
			}
			return predicate.Of(*l).Leaf
		default:
			l.Values = []column.Value{w.literal()}
			return l
		}
	}
}

func (w *world) text(l *predicate.Leaf) {
	s := []rune(w.literal().S)
	s = s[:w.r.IntN(len(s)+1)]
	if l.Op == predicate.StartsWith {
		l.Values = []column.Value{column.StringValue(string(s))}
		return
	}
	if len(s) > 0 && w.r.IntN(2) == 0 {
		s[w.r.IntN(len(s))] = []rune{'_', '%', 'a', s[0]}[w.r.IntN(4)]
	}
	text := string(s) + []string{"", "%", "%", "_", "%z%"}[w.r.IntN(5)]
	p, err := predicate.CompilePattern(text, 0)
	if err != nil {
		panic(err)
	}
	l.Pattern = p
}

func (w *world) literal() column.Value {
	if w.t.Kind == column.Unknown {
		return column.Value{}
	}
	v := w.generator(w.t)()
	if rows := w.files[w.r.IntN(len(w.files))]; len(rows) > 0 && w.r.IntN(2) == 0 {
		c := rows[w.r.IntN(len(rows))]
		if c.list && len(c.elems) > 0 {
			c = c.elems[0]
		}
		if !c.null && !c.list && !isNaN(c.v) {
			v = c.v
		}
	}
	if v.Kind.Floating() && real64(v) == 0 {
		v.Lo = 0
	}
	return v
}

// tree is one leaf, or a few under AND and OR.
func (w *world) tree(depth int) *predicate.Tree {
	if depth == 0 || w.r.IntN(2) == 0 {
		return &predicate.Tree{Kind: predicate.Test, Leaf: w.leaf()}
	}
	t := &predicate.Tree{Kind: []predicate.Kind{predicate.And, predicate.Or}[w.r.IntN(2)]}
	for range 2 + w.r.IntN(2) {
		t.Kids = append(t.Kids, w.tree(depth-1))
	}
	return t
}

// holds is the oracle over a tree.
func holds(t *predicate.Tree, c cell) outcome {
	switch t.Kind {
	case predicate.True:
		return sure(true)
	case predicate.False:
		return sure(false)
	case predicate.Test:
		return oracle(t.Leaf, c)
	}
	out := outcome{pass: t.Kind == predicate.And, fail: t.Kind == predicate.Or}
	for _, k := range t.Kids {
		o := holds(k, c)
		if t.Kind == predicate.And {
			out.pass, out.fail = out.pass && o.pass, out.fail || o.fail
		} else {
			out.pass, out.fail = out.pass || o.pass, out.fail && o.fail
		}
	}
	return out
}
