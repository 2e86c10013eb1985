package pressure

import (
	"math"
	"testing"
)

func TestWordsForNumbers(t *testing.T) {
	for _, x := range []struct{ got, want string }{
		{Count(0), "0"}, {Count(999), "999"}, {Count(160000), "160,000"}, {Count(-999), "-999"}, {Count(-1000), "-1,000"},
		{Count(1000), "1,000"}, {Count(1234567), "1,234,567"}, {Count(100), "100"}, {Count(int64(1000000)), "1,000,000"}, {Count(-123456), "-123,456"},
		{Count(math.MinInt64), "-9,223,372,036,854,775,808"},
	} {
		if x.got != x.want {
			t.Errorf("%q, want %q", x.got, x.want)
		}
	}
}
