package predicate

// Pattern is a compiled LIKE pattern: '%' is any run of code points, '_' one code point, Escape (if not zero) takes the
// next pattern character literally.
type Pattern struct {
	Text   string // as written
	Escape rune
	parts  []part
}

type part struct {
	literal string
	any     bool // '%'
	one     bool // '_'
}
