package plan

// Answer is what metadata proves of the rows of one file. The order makes AND the minimum and OR the maximum; the zero value
// proves nothing.
type Answer int8

// The answers.
const (
	Out   Answer = iota - 1 // no row passes: the file need not be read
	Maybe                   // nothing is proven
	Whole                   // every row passes (deleted rows included: deletes are not looked at)
)

// String is the word that explain prints.
func (a Answer) String() string {
	switch a {
	case Out:
		return "ruled out"
	case Whole:
		return "every row matches"
	default:
		return "maybe"
	}
}

// not is the answer of the opposite question over the same rows.
func (a Answer) not() Answer { return -a }

// rows is what is known of the rows of one file under one leaf. It starts with nothing known and only ever narrows.
type rows struct {
	null, nan, rest bool // the class can be present
	passes, fails   bool // some evidence proved that the rest passes, fails
}

// answer weighs what each present class does. Proofs that exclude each other, or all classes, prove nothing.
func (r *rows) answer(onNull, onNaN Answer) Answer {
	low, high := Whole, Out
	if r.null {
		low, high = min(low, onNull), max(high, onNull)
	}
	if r.nan {
		low, high = min(low, onNaN), max(high, onNaN)
	}
	if r.rest {
		rest := r.onRest()
		low, high = min(low, rest), max(high, rest)
	}
	if low == high {
		return low
	}
	return Maybe
}

func (r *rows) onRest() Answer {
	switch {
	case r.passes == r.fails:
		return Maybe
	case r.passes:
		return Whole
	default:
		return Out
	}
}

// counted narrows the classes by counts of nulls and NaNs among all n rows; a negative count is unknown.
func (r *rows) counted(n, nulls, nans int64) {
	if nulls == 0 {
		r.null = false
	}
	if nans == 0 {
		r.nan = false
	}
	switch {
	case nulls < 0:
	case nulls == n:
		r.nan, r.rest = false, false
	case nans > 0 && nulls+nans == n:
		r.rest = false
	}
}

// proves narrows the rest by one proof; Maybe proves nothing.
func (r *rows) proves(a Answer) {
	r.passes = r.passes || a == Whole
	r.fails = r.fails || a == Out
}
