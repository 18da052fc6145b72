package ngram

import (
	"bytes"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
)

// TestMergeEqualsBuild: the merge of artifacts, rows dropped and shuffled on the way, has the bytes of an artifact built from the rows
// that are left, as long as no chunk is worth a copy.
func TestMergeEqualsBuild(t *testing.T) {
	r := it.Rand(t)
	for range it.Rounds(60) {
		var sources []index.Source
		var rows, source, old []uint32
		var values []*column.Value
		for i := range r.IntN(4) {
			c := drawTexts(r, 1+r.IntN(200))
			a := it.Build(t, r, []Kind{{}, manyBlocks}[r.IntN(2)], &c, it.SpecOf(r, str, len(c.Values)), index.Budget{})
			sources = append(sources, index.Source{Root: a.Root, Rows: uint32(len(c.Values)), Body: bytes.NewReader(a.Body), Size: int64(len(a.Body))})
			rows = append(rows, uint32(len(c.Values)))
			for k, v := range c.Values {
				if r.IntN(4) > 0 {
					source, old, values = append(source, uint32(i)), append(old, uint32(k)), append(values, v)
				}
			}
		}
		if r.IntN(2) == 0 {
			r.Shuffle(len(values), func(i, j int) {
				source[i], source[j], old[i], old[j], values[i], values[j] = source[j], source[i], old[j], old[i], values[j], values[i]
			})
		}
		m, err := index.Originating(rows, source, old)
		if err != nil {
			t.Fatal(err)
		}
		spec := it.SpecOf(r, str, len(values))
		body := &it.Body{}
		root, reason, err := Kind{sizes{copied: 1 << 20}}.Merge(spec, sources, m, index.Budget{}, body)
		if err != nil || reason != "" {
			t.Fatal(reason, err)
		}
		want := it.Build(t, r, Kind{}, &it.Column{Type: str, Values: values}, spec, index.Budget{})
		if !bytes.Equal(root, want.Root) || !bytes.Equal(body.Bytes(), want.Body) {
			t.Fatalf("%d rows of %d sources: a merge of other bytes than a build", len(values), len(sources))
		}
	}
}

// TestFrequentStaysFrequent: what one source did not keep is "maybe" in the merge, even where it is rare by then.
func TestFrequentStaysFrequent(t *testing.T) {
	r := it.Rand(t)
	many := it.Column{Type: str}
	common, rare := column.StringValue("common"), column.StringValue("rare word")
	for i := range 2 * commonRows {
		many.Values = append(many.Values, &common)
		if i%100 == 0 {
			many.Values[i] = &rare
		}
	}
	other := it.Of(str, "a rare word", "nothing", "common")
	var sources []index.Source
	for _, c := range []*it.Column{&many, &other} {
		a := it.Build(t, r, Kind{}, c, it.SpecOf(r, str, len(c.Values)), index.Budget{})
		sources = append(sources, index.Source{Root: a.Root, Rows: uint32(len(c.Values)), Body: bytes.NewReader(a.Body), Size: int64(len(a.Body))})
	}
	m, err := index.Concatenated([]uint32{sources[0].Rows, sources[1].Rows}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := it.Column{Type: str, Values: append(append([]*column.Value{}, many.Values...), other.Values...)}
	spec := it.SpecOf(r, str, len(all.Values))
	body := &it.Body{}
	root, _, err := Kind{}.Merge(spec, sources, m, index.Budget{}, body)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := Kind{}.Open(root, spec.Rows)
	if err != nil {
		t.Fatal(err)
	}
	for pattern, narrow := range map[string]bool{"%common%": false, "%rare word%": true, "%nothing%": true} {
		leaf := like(pattern)
		v, _, err := it.Run(reader.Probe(leaf), body.Bytes())
		if err != nil || it.Wrong(leaf, &all, v) != "" || v.May.Full() == narrow {
			t.Errorf("%s: %s, %v %s", pattern, v.May, err, it.Wrong(leaf, &all, v))
		}
	}
	damaged := sources[0]
	damaged.Body = bytes.NewReader(make([]byte, damaged.Size))
	if _, _, err := (Kind{}).Merge(spec, []index.Source{damaged, sources[1]}, m, index.Budget{}, &it.Body{}); !fault.Is(err, fault.Corrupt) {
		t.Errorf("a damaged source: %v", err)
	}
}

// TestDictionaryBlocksOutOfPlaceFail: a block with trigrams of another one would put those of all sources in a wrong order.
func TestDictionaryBlocksOutOfPlaceFail(t *testing.T) {
	r := it.Rand(t)
	c := drawTexts(r, 200)
	a := it.Build(t, r, manyBlocks, &c, it.SpecOf(r, str, 200), index.Budget{})
	from := it.SourceOf(&a, 200)
	s, err := openSource(&from)
	if err != nil {
		t.Fatal(err)
	}
	k := r.IntN(len(s.blocks) - 1)
	s.block, s.at = 0, len(s.entries)
	s.blocks[k].unit, s.blocks[k+1].unit = s.blocks[k+1].unit, s.blocks[k].unit
	for err == nil && s.block < len(s.blocks) {
		s.at = len(s.entries)
		err = s.fill()
	}
	if !fault.Is(err, fault.Corrupt) {
		t.Errorf("blocks %d and %d of %d change places: %v", k, k+1, len(s.blocks), err)
	}
}
