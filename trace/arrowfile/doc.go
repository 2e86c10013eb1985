// Package arrowfile is the file format of traces: an Arrow IPC stream packed with
// zstd. pandas, polars, Julia, R and DuckDB read it without any code of this
// project. In Python, for a recording or for a PyTorch snapshot that was converted
// with replay import snapshot.pickle -o run.arrows:
//
//	import pyarrow as pa
//	with pa.OSFile("run.arrows") as file, pa.ipc.open_stream(file) as stream:
//	    events = stream.read_pandas()
//
// Then events[events.kind == "alloc"].groupby("label").bytes.sum() gives the bytes of
// each allocation site. Without pyarrow, replay export run.arrows --to csv writes
// a file for pandas.read_csv, and --to parquet one for DuckDB.
//
// # The format
//
// One row is one [trace.Event]; one record batch is one flush of a recorder.
// Only the column label has nulls.
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
// Words are a dictionary of strings, whose indices take a byte. The metadata of a
// column has its unit, and what the numbers of aux mean for each kind. In version 1
// of the format, which [Read] knows, kind and space are the numbers (uint8) of
// [trace.Kind] and pressure.Space, and time and duration are int64.
//
// Labels are numbered in the order of their first use in the file, so a tool may
// group by number or by text; our reader uses the text. Within a batch the rows
// are in the order in which they were written. [Read] sorts them by time.
//
// The metadata of the schema holds eagergc.version, eagergc.name, eagergc.start
// (the wall clock of time 0, RFC 3339) and eagergc.meta.KEY for each key of
// [trace.Trace.Meta].
//
// # Files that are not whole
//
// A stream ends with a mark. If it is missing, the file was cut off; the whole
// batches before the cut can be read: see [TruncatedError]. [Bounds] protect the
// reader from files of unknown origin.
package arrowfile
