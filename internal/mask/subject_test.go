package mask

import (
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
)

func TestSubjectOfAMask(t *testing.T) {
	long := "positions\x00s3://t/a.parquet\x00/mnt/a.parquet\x009\x00" + strings.Repeat("d", 3*SubjectBytes)
	for key, want := range map[string]string{
		long: "s3://t/a.parquet",
		"equality\x00s3://t/b.parquet\x009\x00tag\x00d.parquet\x007\x001": "s3://t/b.parquet",
		"another kind\x00s3://t/b.parquet\x00":                            "", "equality": "", "equality\x00cut short": "", "positions\x00" + strings.Repeat("p", SubjectBytes): "",
	} {
		raw, err := (&archived{key: key, bitmap: roaring.BitmapOf(1)}).bytes()
		require.NoError(t, err)
		got, ok := Subject(raw[:min(len(raw), SubjectBytes)])
		require.Equal(t, want != "", ok, key)
		if ok {
			require.Equal(t, want, got)
		}
	}
	for _, bad := range []string{"", "SKMD", "SKMD\x02\x05abcde", "SKMD\x01\xff"} {
		_, ok := Subject([]byte(bad))
		require.False(t, ok)
	}
}
