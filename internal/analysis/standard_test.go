package analysis

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/clipperhouse/uax29/v2/words"
)

func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("replay: SKOMER_SEED=%d go test -run '^%s$'", seed, t.Name())
	return rand.New(rand.NewPCG(seed, 1))
}

func allWords(text string) []string {
	var out []string
	EachWord([]byte(text), func(w Word) { out = append(out, string(w.Text)) })
	return out
}

func TestStandardWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		" ... --- ":                      "",
		"Connection REFUSED: disk.full":  "connection refused disk full",
		"can't don\u2019t 'quoted'":      "can't don\u2019t quoted",
		"user_id=42, 3.14 1,000 5'11":    "user_id 42 3 14 1 000 5'11",
		"_ __ _x":                        "_x",
		"ÄRGER Straße \u212Aelvin naïve": "ärger straße kelvin naïve",
		"\xffbroken\xe2\x84 bytes\xff":   "broken bytes",
		"東京":                             "東 東京 京",
		"東京都 と言":                         "東 東京 京 京都 都 と と言 言",
		"東":                              "東",
		"スーパー server2":                   "ス スー ー ーパ パ パー ー server2",
		"ab東京cd":                         "ab 東 東京 京 cd",
		"프로그램 오류":                        "프로그램 오류",
		"ошибка:ТАЙМАУТ":                 "ошибка таймаут",
		"\u0e02\u0e49\u0e2d":             "\u0e02 \u0e02\u0e49 \u0e49 \u0e49\u0e2d \u0e2d",
		"e\u0301tude":                    "e\u0301tude",
		"\U0001F600 fine":                "fine",
		"192.168.0.1 a@b.org":            "192 168 0 1 a b org",
	} {
		// folding picks one case of a class; which one does not count
		if got := strings.Join(allWords(text), " "); got != string(AppendFold(nil, []byte(want))) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestU68ChineseWordsAreFound and in other scripts without spaces: a word of two runes or more asks for its pairs.
func TestU68ChineseWordsAreFound(t *testing.T) {
	for text, words := range map[string][]string{
		"我们昨天在北京市吃饭":     {"北京", "北京市", "昨天", "饭", "我们昨天在北京市吃饭"},
		"東京都に行きました":      {"東京", "行きました", "都"},
		"โปรแกรมผิดพลาด": {"โปรแกรม", "ผิดพลาด"},
	} {
		have := allWords(text)
		for _, word := range words {
			for _, w := range Words(word) {
				if !slices.Contains(have, w) {
					t.Errorf("%s: %s asks for %s, which is not among %q", text, word, w, have)
				}
			}
		}
		for _, w := range Words("上海") {
			if slices.Contains(have, w) {
				t.Errorf("%s holds %s", text, w)
			}
		}
	}
	if got := Words("北京市"); !slices.Equal(got, []string{"北京", "京市"}) {
		t.Errorf("北京市 asks for %q", got)
	}
}

// TestU69WordInATextIsFound: whatever the language, each space-separated word of a text has all of its words among the text's.
func TestU69WordInATextIsFound(t *testing.T) {
	for _, text := range []string{
		"The quick brown fox can't jump; error:timeout at 10.0.0.1", "Die Straße war naß, ÄRGER in Köln", "программа упала с ошибкой", "μια λέξη στα ελληνικά ΟΔΟΣ",
		"프로그램이 종료되었습니다", "خطأ في البرنامج", "שגיאה בתוכנית", "हिन्दी में त्रुटि", "東京都に行きました", "lỗi hệ thống", "ข้อผิดพลาด ของระบบ",
	} {
		have := allWords(text)
		for _, word := range strings.Fields(text) {
			for _, w := range Words(word) {
				if !slices.Contains(have, w) {
					t.Errorf("%s: %s asks for %q, which is not among %q", text, word, w, have)
				}
			}
		}
	}
}

// TestASCIIPathAgrees: the short way for ASCII gives what the segmentation gives.
func TestASCIIPathAgrees(t *testing.T) {
	r := seeded(t)
	const alphabet = "abZ09_'.,:;\"-@ \n\r\t/"
	for range 30_000 {
		text := make([]byte, r.IntN(14))
		for i := range text {
			text[i] = alphabet[r.IntN(len(alphabet))]
			if r.IntN(20) == 0 {
				text[i] = byte(r.IntN(128))
			}
		}
		var long []string
		w := cutter{visit: func(w Word) { long = append(long, string(w.Text)) }}
		for it := words.FromBytes(text); it.Next(); {
			w.segment(it.Value())
		}
		w.endRun()
		if got := allWords(string(text)); !slices.Equal(got, long) {
			t.Fatalf("%q: %q by the short way, %q by the long one", text, got, long)
		}
	}
}

func FuzzEachWord(f *testing.F) {
	f.Add("can't 東京都 \xff ÄRGER", "x")
	f.Fuzz(func(t *testing.T, a, b string) {
		have := map[string]bool{}
		for _, w := range allWords(a + " " + b) {
			have[w] = true
		}
		for _, w := range append(Words(a), Words(b)...) {
			if !have[w] {
				t.Errorf("%q is a word of %q or %q and not of both", w, a, b)
			}
		}
	})
}

func BenchmarkEachWord(b *testing.B) {
	for name, text := range map[string]string{
		"ascii": strings.Repeat("Connection refused by 10.0.0.1: retry in 5 s; user_id=4711 can't log in\n", 100),
		"latin": strings.Repeat("Die Straße war naß und Ärger folgte in Köln auf der Brücke über den Fluß\n", 100),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for range b.N {
				EachWord([]byte(text), func(Word) {})
			}
		})
	}
}

// TestO44LongTokensAreWords: a token of seventy thousand letters is one word, whole.
func TestO44LongTokensAreWords(t *testing.T) {
	token := strings.Repeat("x", 70_000) + "needle"
	if have := allWords("before " + token + " after"); !slices.Equal(have, []string{"before", token, "after"}) {
		t.Errorf("%d words", len(have))
	}
	if got := Words(token); !slices.Equal(got, []string{token}) {
		t.Errorf("it asks for %d words", len(got))
	}
}

// TestO45TextWithoutSpaces: words in a run of characters without spaces are found.
func TestO45TextWithoutSpaces(t *testing.T) {
	have := allWords("把機器推論洗成權威事實")
	for _, word := range []string{"權威事實", "推論", "實"} {
		for _, w := range Words(word) {
			if !slices.Contains(have, w) {
				t.Errorf("%s asks for %s, which is not among %q", word, w, have)
			}
		}
	}
}
