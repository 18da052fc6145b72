package ngram

import (
	"slices"
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/analysis"
	"github.com/skomerdb/skomer/internal/predicate"
)

// query is what the folded text of a matching row must hold: all of grams and of subs (every), or one of subs (some).
type query struct {
	op    op
	grams []uint32
	subs  []query
}

type op uint8

const (
	all   op = iota // nothing is known: any row may match
	none            // no row matches
	every           // grams and subs, not empty
	some            // two or more subs
)

const (
	maxGrams    = 24  // of one conjunction; more would only cost look-ups
	maxAnswers  = 64  // of one disjunction; more leave it unknown
	maxAllGrams = 192 // of a whole query
)

// both is the conjunction.
func both(a, b query) query {
	switch {
	case a.op == none || b.op == none:
		return query{op: none}
	case a.op == all:
		return b
	case b.op == all:
		return a
	}
	var out query
	out.op = every
	for _, q := range []query{a, b} {
		if q.op == some {
			out.subs = append(out.subs, q)
			continue
		}
		out.grams = append(out.grams, q.grams...)
		out.subs = append(out.subs, q.subs...)
	}
	slices.Sort(out.grams)
	out.grams = slices.Compact(out.grams)
	out.subs = out.subs[:min(len(out.subs), maxAnswers)]
	return out
}

// either is the disjunction.
func either(qs ...query) query {
	out := query{op: some}
	for _, q := range qs {
		switch q.op {
		case all:
			return q
		case none:
		case some:
			out.subs = append(out.subs, q.subs...)
		default:
			out.subs = append(out.subs, q)
		}
	}
	switch n := len(out.subs); {
	case n == 0:
		return query{op: none}
	case n == 1:
		return out.subs[0]
	case n > maxAnswers:
		return query{}
	}
	return out
}

// holding is the texts that hold a piece.
func holding(folded string) query {
	if len(folded) < 3 {
		return query{}
	}
	q := query{op: every}
	for i := range len(folded) - 2 {
		q.grams = append(q.grams, uint32(folded[i])<<16|uint32(folded[i+1])<<8|uint32(folded[i+2]))
	}
	slices.Sort(q.grams)
	q.grams = slices.Compact(q.grams)
	return q
}

// bounded drops conditions until at most n trigrams are left, and returns how many those are.
func (q query) bounded(n int) (query, int) {
	switch q.op {
	case every:
		grams := spread(q.grams, min(n, maxGrams))
		used := len(grams)
		out := query{op: every, grams: grams}
		for _, s := range q.subs {
			s, k := s.bounded(n - used)
			if s.op == all {
				continue
			}
			out.subs, used = append(out.subs, s), used+k
		}
		if len(out.grams)+len(out.subs) == 0 {
			return query{}, 0
		}
		return out, used
	case some:
		out, used := query{op: some}, 0
		for i, s := range q.subs {
			s, k := s.bounded((n - used) / (len(q.subs) - i))
			if s.op == all {
				return query{}, 0
			}
			out.subs, used = append(out.subs, s), used+k
		}
		return out, used
	default:
		return q, 0
	}
}

// spread picks n of the trigrams, evenly.
func spread(grams []uint32, n int) []uint32 {
	if len(grams) <= n {
		return grams
	}
	out := make([]uint32, n)
	for i := range out {
		out[i] = grams[i*len(grams)/n]
	}
	return out
}

// eachGram visits every trigram of the query.
func (q *query) eachGram(visit func(uint32)) {
	for _, g := range q.grams {
		visit(g)
	}
	for i := range q.subs {
		q.subs[i].eachGram(visit)
	}
}

// queryOf is what a text must hold for a leaf, without its sign, to be true of it.
func queryOf(leaf *predicate.Leaf) query {
	var q query
	switch leaf.Op {
	case predicate.Equal, predicate.In:
		q = query{op: none}
		for i, v := range leaf.Values {
			if i > maxAnswers {
				return query{}
			}
			q = either(q, holding(folded(v.S)))
		}
	case predicate.StartsWith:
		if len(leaf.Values) == 1 && utf8.ValidString(leaf.Values[0].S) {
			q = holding(folded(leaf.Values[0].S))
		}
	case predicate.Like, predicate.ILike:
		if leaf.Pattern == nil {
			break
		}
		for _, piece := range leaf.Pattern.Literals() {
			q = both(q, holding(folded(piece)))
		}
	case predicate.Match:
		if leaf.Regex != nil {
			q = matching(leaf.Regex.Syntax())
		}
	}
	q, _ = q.bounded(maxAllGrams)
	return q
}

func folded(s string) string { return string(analysis.AppendFold(nil, []byte(s))) }
