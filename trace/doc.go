// Package trace holds the events of a program's memory outside the Go heap: allocations, drops,
// frees and waits, and the cycles of its collector.
//
// # The model
//
// A [Trace] is a list of [Event] values sorted by time, in nanoseconds from the first event. An
// object begins with an Alloc, becomes unreachable with a Drop, and its bytes return to the pool
// with a Free. A program that counts references drops and frees at the same moment. A program with
// a garbage collector frees later, and its recording has a drop only if the program reports it.
//
// At equal times memory events keep the order of their source, and Sync events follow them.
//
// # Recording
//
// A [Recorder] takes events from a running program and writes them in batches. An event with a
// Duration is recorded when it ends, but its Time is its start. So batches may overlap in time, and
// a reader sorts the events.
//
// # The native file
//
// A trace is kept as an Arrow IPC stream ([Write], [Read]), which pandas, polars, Julia, R and
// DuckDB read without any code of this project. In Python:
//
//	import pyarrow as pa
//	with pa.OSFile("run.arrows") as file, pa.ipc.open_stream(file) as stream:
//	    events = stream.read_pandas()
//
// Then events[events.kind == "alloc"].groupby("label").bytes.sum() gives the bytes of each
// allocation site; notebooks/views.sql has five views for DuckDB: live bytes over time, pauses,
// cycles, sites and waits. One row is one [Event], one record batch at most 2,048 of them; only the
// column label has nulls.
//
//	time      duration[ns]  from the start of the trace
//	kind      words         alloc, drop, free, sync, cycle, refuse, reserve,
//	                        release, mark, decision
//	space     words         host, pinned, managed, device0, device1, ...
//	id        uint64        identity of the object, of alloc, drop and free
//	bytes     int64         size or yield
//	duration  duration[ns]
//	stream    uint32        stream or thread
//	aux       uint32        cause, trigger, step, or the number of the label
//	label     utf8          text of an alloc (its allocation site), sync, mark or decision
//
// A column of words is dictionary-encoded: each row has an index of one byte into a list of
// strings. The metadata of a column has its unit and the meaning of the numbers of aux for each
// kind. A file of another writer needs these columns, in this order. The reader also reads version
// 1 of the format. There kind and space are the numbers (uint8) of [Kind] and pressure.Space, and
// time and duration are int64. Labels are numbered in the order of their first use in the file.
//
// The metadata of the schema holds eagergc.version, eagergc.name, eagergc.start (the wall clock of
// time 0, RFC 3339) and eagergc.meta.KEY for each key of Trace.Meta. The custom metadata of each
// message holds eagergc.crc32c, a check sum of its header and body. An event takes 42 bytes and its
// label. A program that imports trace/formats/zstd packs files to about a tenth ([UseZstd]), except
// those that are to be read without zstd ([Writer.Unpacked]).
//
// A stream ends with a mark. If it is missing, the file was cut off; the whole batches before the
// cut can be read: see [ErrTruncated].
//
// # Invariants
//
// [Trace.Validate] checks them. Times never go backwards. Sizes are not negative and below 2^62,
// and so is their sum. An object is allocated once, then dropped at most once and freed at most
// once, with the size and in the space of its allocation. A recording that lost events may break
// the last rule: a Mark with [LostLabel] says so.
package trace
