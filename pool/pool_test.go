package pool_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/eagergc/eagergc/pool"
	"github.com/eagergc/eagergc/pool/pooltest"
	"github.com/eagergc/eagergc/pressure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// maker returns pools of one kind under the limits of the suite.
func maker(cfg pool.Config) pooltest.Maker {
	return func(t testing.TB, limits pressure.Limits) *pool.Pool {
		t.Helper()
		if cfg.Direct && limits.Soft != (pressure.Limit{}) {
			t.Skip("nothing is cached")
		}
		c := cfg
		c.Limits = limits
		c.Warn = pooltest.Warn(t)
		p, err := pool.New(c)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
}

func TestHost(t *testing.T)   { pooltest.Run(t, maker(pool.Config{})) }
func TestDirect(t *testing.T) { pooltest.Run(t, maker(pool.Config{Direct: true})) }
func TestSites(t *testing.T)  { pooltest.Run(t, maker(pool.Config{Sites: 1})) }
func TestPoison(t *testing.T) { pooltest.Run(t, maker(pool.Config{Poison: true})) }
