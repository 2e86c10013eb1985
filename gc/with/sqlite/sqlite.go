// Package sqlite makes a gauge of the memory that SQLite holds, in programs that use it
// by go-sqlite3: databases in memory, page caches, prepared statements.
//
//	gauge := sqlite.Watch(collector)
//
// What has a cleanup goes back when a cycle finds it dead; go-sqlite3 sets none, so give
// a handle of your own that closes the database:
//
//	runtime.AddCleanup(handle, func(db *sql.DB) { db.Close() }, handle.db)
package sqlite

// typedef long long int sqlite3_int64;
// sqlite3_int64 sqlite3_memory_used(void); // in go-sqlite3's SQLite
import "C"

import (
	_ "github.com/mattn/go-sqlite3" // SQLite itself

	"github.com/eagergc/eagergc/gc"
)

// Used returns the bytes that SQLite has allocated and not freed, by its own
// count (sqlite3_memory_used). It is safe for concurrent use and takes some 10 ns.
func Used() int64 { return int64(C.sqlite3_memory_used()) }

// Watch makes c collect for them. The gauge is the caller's, who may close it.
func Watch(c *gc.Collector) *gc.Gauge { return gc.Watch(c, Used) }
