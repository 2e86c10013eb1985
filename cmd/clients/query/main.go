// Query opens, fills and queries a separate in-memory database for each request, as a service does
// that isolates its tenants. The engine is SQLite, through go-sqlite3.
package main

// typedef long long int sqlite3_int64;
// sqlite3_int64 sqlite3_memory_used(void); // in go-sqlite3's SQLite
import "C"

import (
	"database/sql"
	"fmt"
	"runtime"

	_ "github.com/mattn/go-sqlite3"

	"github.com/eagergc/eagergc/cmd/clients/frame"
	_ "github.com/eagergc/eagergc/gc/auto" // the parent sets EAGERGC=off for all ways but auto
)

func main() {
	frame.Main("query", frame.Client{Workers: 4, Requests: 240, Gauge: used, Start: start})
}

// used returns the bytes that SQLite has allocated, by its own count.
func used() int64 { return int64(C.sqlite3_memory_used()) }

// A tenant is a handle to a database.
type tenant struct{ db *sql.DB }

const rows = 4000 // of 1 KiB each

func start(w *frame.Way) (frame.Service, error) {
	return func(i int) error {
		t, err := open(i)
		if err != nil {
			return err
		}
		defer frame.Keep(w, t, rows<<10, func(db *sql.DB) { db.Close() }, t.db)()
		var n, longest int
		if err := t.db.QueryRow("SELECT count(*), max(length(payload)) FROM events WHERE kind = 3").Scan(&n, &longest); err != nil {
			return err
		}
		if n != rows/8 || longest != 1024 {
			return fmt.Errorf("%d rows of at most %d bytes", n, longest)
		}
		runtime.KeepAlive(t)
		return nil
	}, nil
}

func open(i int) (*tenant, error) {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // a second connection would be a second database
	_, err = db.Exec(`CREATE TABLE events (id INTEGER PRIMARY KEY, kind INTEGER, payload BLOB);
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO events SELECT i, i % 8, randomblob(1024) FROM n`, rows)
	return &tenant{db}, err
}
