package sqlite

import (
	"database/sql"
	"runtime"
	"testing"
	"time"

	"github.com/eagergc/eagergc/gc"
)

type tenant struct{ db *sql.DB }

// open returns a database of 1 MiB in memory, which a cleanup of its handle closes.
func open(t *testing.T) *tenant {
	t.Helper()
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE t (x BLOB); INSERT INTO t VALUES (randomblob(1048576))"); err != nil {
		t.Fatal(err)
	}
	h := &tenant{db}
	runtime.AddCleanup(h, func(db *sql.DB) { db.Close() }, db)
	return h
}

// Databases that nobody closes go back, and their number does not matter.
func TestForgottenDatabasesGoBack(t *testing.T) {
	c, err := gc.New(gc.Config{Policy: gc.MustParse(gc.HostPolicy).New()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	gauge := Watch(c)
	defer gauge.Close()
	var most int64
	catchUp := time.Now().Add(time.Minute) // until then a slow machine's cycles and cleanups may
	for range 200 {
		runtime.KeepAlive(open(t))
		most = max(most, gauge.Look())
		for gauge.Look() > 70<<20 && time.Now().Before(catchUp) {
			time.Sleep(time.Millisecond)
		}
	}
	if c.Stats().Cycles[gc.TriggerPolicy] == 0 || most > 100<<20 {
		t.Errorf("at most %d bytes of 200 MiB: %+v", most, c.Stats())
	}
	for end := time.Now().Add(20 * time.Second); Used() > 4<<20; runtime.GC() {
		if time.Now().After(end) {
			t.Fatalf("%d bytes are left", Used())
		}
		time.Sleep(time.Millisecond)
	}
}
