package lineage

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		seed = n
	}
	t.Logf("SKOMER_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func valid() (Claim, File, Current, Options) {
	f := File{Path: "s3://b/t/a.parquet", Size: 1000, Records: 10, Tag: `"e1"`}
	c := Claim{Index: "b.puffin", FormatVersion: 2, TableUUID: "u1", SnapshotID: 7, SequenceNumber: 3, Rows: 10}
	return c, f, Current{File: f, FooterRecords: Unknown}, Options{TableUUID: "U1", TableLastSequence: 3, ActiveSnapshotID: 8}
}

func TestEveryReasonIsReachedAndNamesBothSides(t *testing.T) {
	hashed := func(f *File, s string) { f.FooterSHA256, f.ColumnsSHA256 = s+"f", s+"c" }
	cases := []struct {
		want    Reason
		message string
		change  func(c *Claim, f *File, n *Current, o *Options)
	}{
		{OldFormat, "format version 1 carries no lineage", func(c *Claim, _ *File, _ *Current, _ *Options) { c.FormatVersion = 1 }},
		{OldFormat, "format version 0 carries no lineage", func(c *Claim, _ *File, _ *Current, o *Options) { c.FormatVersion, o.AllowUnverified = 0, true }},
		{NewerFormat, "format version 3 is newer than 2", func(c *Claim, _ *File, _ *Current, _ *Options) { c.FormatVersion = 3 }},
		{OtherTable, "table UUID mismatch (expected U1, got none)", func(c *Claim, _ *File, _ *Current, _ *Options) { c.TableUUID = "" }},
		{FromFuture, "from future snapshot 7 (active 8): sequence number 4 is above the table's last, 3", func(c *Claim, _ *File, _ *Current, _ *Options) { c.SequenceNumber = 4 }},
		{TooManyRows, "segment of 4294967296 rows (limit 4294967295)", func(c *Claim, _ *File, _ *Current, _ *Options) { c.Rows = 1 << 32 }},
		{TooManyRows, "file of 4294967296 rows (limit 4294967295)", func(_ *Claim, f *File, n *Current, _ *Options) { f.Records, n.Records = 1<<32, 1<<32 }},
		{PathMismatch, "path mismatch (expected s3://b/t/b.parquet, got s3://b/t/a.parquet)", func(_ *Claim, _ *File, n *Current, _ *Options) { n.Path = "s3://b/t/b.parquet" }},
		{SizeMismatch, "size mismatch (expected 1001, got 1000)", func(_ *Claim, _ *File, n *Current, _ *Options) { n.Size++ }},
		{RecordCountMismatch, "record count mismatch (expected 11, got 10)", func(_ *Claim, _ *File, n *Current, _ *Options) { n.Records++ }},
		{FooterRowsMismatch, "footer rows mismatch (manifest 10, footer 9)", func(_ *Claim, _ *File, n *Current, _ *Options) { n.FooterRecords = 9 }},
		{TagMismatch, `entity tag mismatch (expected "e2", got "e1")`, func(_ *Claim, _ *File, n *Current, _ *Options) { n.Tag = `"e2"` }},
		{TagUnrecorded, "no entity tag was recorded", func(_ *Claim, f *File, _ *Current, _ *Options) { f.Tag = "" }},
		{TagUnknown, "was not looked up", func(_ *Claim, _ *File, n *Current, o *Options) { n.Tag, o.Strict = "", true }},
		{HashUnknown, "no content hash to compare", func(_ *Claim, _ *File, _ *Current, o *Options) { o.RequireHash = true }},
		{HashUnknown, "no content hash to compare", func(_ *Claim, f *File, n *Current, o *Options) {
			f.FooterSHA256, n.FooterSHA256, o.RequireHash = "x", "x", true
		}},
		{ContentMismatch, "checksum mismatch (file: expected bb, got aa)", func(_ *Claim, f *File, n *Current, _ *Options) { f.FileSHA256, n.FileSHA256 = "aa", "bb" }},
		{ContentMismatch, "checksum mismatch (columns: expected bc, got ac)", func(_ *Claim, f *File, n *Current, _ *Options) {
			hashed(f, "a")
			hashed(&n.File, "b")
			n.FooterSHA256 = f.FooterSHA256
		}},
	}
	seen := map[Reason]bool{}
	for _, tc := range cases {
		c, f, n, o := valid()
		require.Equal(t, Verdict{}, Check(c, f, n, o))
		tc.change(&c, &f, &n, &o)
		v := Check(c, f, n, o)
		require.Equal(t, tc.want.String(), v.Reason.String(), v.Message)
		require.True(t, strings.HasPrefix(v.Message, "Index b.puffin rejected: "), v.Message)
		require.Contains(t, v.Message, tc.message)
		seen[v.Reason] = true
	}
	for _, tc := range columnCases() {
		was, now := column(), column()
		tc.change(&was, &now)
		v := CheckColumns(Claim{Index: "b.puffin"}, []Column{was}, []Column{now})
		require.Equal(t, tc.want.String(), v.Reason.String(), v.Message)
		seen[v.Reason] = true
	}
	for _, r := range Reasons() {
		require.True(t, seen[r], "no case reaches %s", r)
	}
}

func column() Column {
	return Column{FieldID: 3, Name: "a", LeafPath: "a", Resolved: "id", Type: "long", Encoding: "key-v1:int64", Physical: "INT64", Absent: "null"}
}

type columnCase struct {
	want   Reason
	change func(was, now *Column)
}

func columnCases() []columnCase {
	return []columnCase{
		{Valid, func(_, _ *Column) {}},
		{Valid, func(_, now *Column) { *now = Column{FieldID: 3} }},
		{LeafMismatch, func(_, now *Column) { now.FieldID = 4 }},
		{LeafMismatch, func(_, now *Column) { now.LeafPath = "b" }},
		{LeafMismatch, func(_, now *Column) { now.Resolved = "mapping" }},
		{LeafMismatch, func(was, _ *Column) { was.Resolved, was.LeafPath = "absent", "" }},
		{LeafMismatch, func(was, now *Column) { was.Mapping, now.Mapping = "m1", "m2" }},
		{EncodingMismatch, func(was, _ *Column) { was.Encoding = "key-v1:int32" }},
		{EncodingMismatch, func(_, now *Column) { now.Physical = "INT32" }},
		{AbsentMismatch, func(_, now *Column) { now.Absent = "7" }},
	}
}

func TestTimeTravelToAnOlderSnapshotKeepsNewerRecords(t *testing.T) {
	c, f, n, o := valid()
	c.SequenceNumber, o.TableLastSequence, o.ActiveSnapshotID = 90, 100, 1
	require.True(t, Check(c, f, n, o).OK())
}

func TestUnverifiedSidecarsSpeakOnlyWhereAllowed(t *testing.T) {
	c, f, n, o := valid()
	c.FormatVersion, c.TableUUID, f.Size, f.Tag = 1, "", 0, ""
	require.Equal(t, OldFormat, Check(c, f, n, o).Reason)
	o.AllowUnverified = true
	require.True(t, Check(c, f, n, o).OK())
	f.Records = 9
	require.Equal(t, RecordCountMismatch, Check(c, f, n, o).Reason)
}

func TestAChangedTagWithEqualHashesIsRestamped(t *testing.T) {
	c, f, n, o := valid()
	f.FooterSHA256, f.ColumnsSHA256 = "f", "c"
	n.File = f
	n.Tag = `"e2"`
	o.Strict, o.RequireHash = true, true
	require.Equal(t, Verdict{Restamp: true}, Check(c, f, n, o))
	n.ColumnsSHA256 = ""
	o.RequireHash = false
	require.Equal(t, TagMismatch, Check(c, f, n, o).Reason, "the footer alone proves nothing")
}

// TestNoDifferenceIsOverlooked draws both sides at random and compares with the rule written as one expression.
func TestNoDifferenceIsOverlooked(t *testing.T) {
	r := seeded(t)
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	ok := 0
	for range 50_000 {
		mk := func() File {
			return File{
				Path: pick("p", "p", "p", "q"), Size: int64(r.IntN(8) / 7), Records: int64(r.IntN(8) / 7), Tag: pick("", "t", "t", "t", "u"),
				FooterSHA256: pick("", "f", "f", "g"), ColumnsSHA256: pick("", "c", "c", "d"), FileSHA256: pick("", "", "x", "y"),
			}
		}
		c, _, _, o := valid()
		f, n := mk(), Current{File: mk(), FooterRecords: int64(r.IntN(3) - 1)}
		o.Strict, o.RequireHash = r.IntN(2) == 0, r.IntN(4) == 0
		both := func(a, b string) bool { return a != "" && b != "" }
		clash := both(f.FooterSHA256, n.FooterSHA256) && f.FooterSHA256 != n.FooterSHA256 ||
			both(f.ColumnsSHA256, n.ColumnsSHA256) && f.ColumnsSHA256 != n.ColumnsSHA256 || both(f.FileSHA256, n.FileSHA256) && f.FileSHA256 != n.FileSHA256
		proof := both(f.FileSHA256, n.FileSHA256) || both(f.FooterSHA256, n.FooterSHA256) && both(f.ColumnsSHA256, n.ColumnsSHA256)
		tags := f.Tag != "" && (n.Tag == f.Tag || n.Tag == "" && !o.Strict)
		want := f.Path == n.Path && f.Size == n.Size && f.Records == n.Records && (n.FooterRecords < 0 || n.FooterRecords == n.Records) &&
			!clash && (proof || tags && !o.RequireHash)
		got := Check(c, f, n, o)
		require.Equal(t, want, got.OK(), "%+v\n%+v\n%+v\n%v", f, n, o, got)
		if want {
			ok++
		}
	}
	require.Greater(t, ok, 500)
}
