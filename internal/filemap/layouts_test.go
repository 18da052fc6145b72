package filemap

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
)

// sixFiles has layouts of two shapes, and files without one.
func sixFiles() (files []File, of func(*File) (Layout, bool)) {
	for i := range 6 {
		files = append(files, File{Path: PathKey(fmt.Sprint(i)), Size: 100, Records: int64(i), Stride: 1})
	}
	return files, func(f *File) (Layout, bool) {
		return Layout{[]byte{'s', byte(f.Records % 2)}, bytes.Repeat([]byte{byte(f.Records)}, int(f.Records))}, f.Records != 2 && f.Records != 5
	}
}

func TestLayouts(t *testing.T) {
	files, of := sixFiles()
	raw := encodeLayouts(files, of)
	require.Equal(t, []byte{1, 2, 2, 's', 0, 2, 's', 1, 6, 1, 0, 2, 1, 1, 0, 2, 3, 3, 3, 3, 1, 4, 4, 4, 4, 4, 0}, raw)
	l, err := OpenLayouts(raw, 6)
	require.NoError(t, err)
	for i := range files {
		got, ok := l.Of(i)
		want, has := of(&files[i])
		require.Equal(t, has, ok, i)
		if has {
			require.Equal(t, want.Shape, got.Shape, i)
			require.Equal(t, len(want.Places), len(got.Places), i)
			require.True(t, bytes.Equal(want.Places, got.Places), i)
		}
	}
	_, ok := l.Of(6)
	require.False(t, ok)
	_, ok = (*Layouts)(nil).Of(0)
	require.False(t, ok)
	require.Nil(t, encodeLayouts(files, func(*File) (Layout, bool) { return Layout{}, false }))
	for _, n := range []int{0, 5, 7} {
		_, err := OpenLayouts(raw, n)
		require.True(t, fault.Is(err, fault.Corrupt), n)
	}
	for n := range raw {
		_, err := OpenLayouts(raw[:n], 6)
		require.True(t, fault.Is(err, fault.Corrupt), n)
	}
	m := &Meta{Files: 6, Layouts: &Stored{CRC: bytescan.CRC32C(raw)}}
	_, err = m.OpenLayouts("x", raw)
	require.NoError(t, err)
	m.Layouts.CRC++
	_, err = m.OpenLayouts("x", raw)
	require.True(t, fault.Is(err, fault.Corrupt), err)
}

// TestLayoutsAreCapped: what does not fit is left out, file by file.
func TestLayoutsAreCapped(t *testing.T) {
	files := make([]File, 3000)
	for i := range files {
		files[i].Records = int64(i)
	}
	places := make([]byte, 1000)
	raw := encodeLayouts(files, func(*File) (Layout, bool) { return Layout{[]byte("shape"), places}, true })
	require.LessOrEqual(t, len(raw), maxLayouts)
	l, err := OpenLayouts(raw, len(files))
	require.NoError(t, err)
	n := 0
	for i := range files {
		if _, ok := l.Of(i); ok {
			n++
		}
	}
	require.InDelta(t, maxLayouts/1002, n, 10)
	raw = encodeLayouts(files, func(f *File) (Layout, bool) { return Layout{fmt.Append(nil, f.Records), nil}, true })
	l, err = OpenLayouts(raw, len(files))
	require.NoError(t, err)
	_, some := l.Of(maxShapes - 1)
	_, more := l.Of(maxShapes)
	require.True(t, some)
	require.False(t, more)
}

// TestLongLayoutsNeedLeaves: layouts of more than 64 KiB are kept where the leaves are longer.
func TestLongLayoutsNeedLeaves(t *testing.T) {
	b := small(t)
	of := func(n int) func(*File) (Layout, bool) {
		return func(*File) (Layout, bool) { return Layout{[]byte("shape"), make([]byte, n)}, true }
	}
	require.NotNil(t, b.run.Layouts(of(1000)))
	require.Greater(t, int64(fewLayouts), b.run.LeafBytes())
	require.Nil(t, b.run.Layouts(of(fewLayouts)))
}

// FuzzLayouts opens arbitrary layouts and asks for every file.
func FuzzLayouts(f *testing.F) {
	files, of := sixFiles()
	f.Add(encodeLayouts(files, of), 6)
	f.Fuzz(func(t *testing.T, raw []byte, files int) {
		l, err := OpenLayouts(raw, files)
		if err != nil {
			if !fault.Is(err, fault.Corrupt) {
				t.Fatal(err)
			}
			return
		}
		for i := range files {
			if x, ok := l.Of(i); ok && len(x.Places) > len(raw) {
				t.Fatal("places that are not in the layouts")
			}
		}
	})
}
