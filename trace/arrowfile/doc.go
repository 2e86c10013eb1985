// Package arrowfile is the file format of traces: an Arrow IPC stream, packed
// with zstd, which pandas, polars, Julia, R and DuckDB read with no code of
// ours. In Python, a PyTorch snapshot that replay import snapshot.pickle -o
// run.arrows has converted, or any other recording:
//
//	import pyarrow as pa
//	with pa.OSFile("run.arrows") as file, pa.ipc.open_stream(file) as stream:
//	    events = stream.read_pandas()
//
// after which events[events.kind == 0].groupby("label").bytes.sum() has the bytes
// by allocation site. Without pyarrow, pandas.read_csv reads what replay export
// run.arrows --to csv writes.
//
// # The format
//
// One row is one [trace.Event], one record batch is one flush of a recorder.
// None of the columns but label has nulls.
//
//	time      int64   ns from the start of the trace
//	kind      uint8   0 alloc, 1 drop, 2 free, 3 sync, 4 cycle, 5 refuse,
//	                  6 reserve, 7 release, 8 mark, 9 decision
//	space     uint8   0 host, 1 pinned, 2 managed, 3 device 0, 4 device 1, ...
//	id        uint64  identity of the object, of alloc, drop and free
//	bytes     int64   size or yield
//	duration  int64   ns
//	stream    uint32  stream or thread
//	aux       uint32  cause, trigger, step, or the number of the label
//	label     utf8    the text of alloc (its site), sync, mark and decision
//
// A label's number is the order of its first use in the file, so that tools may
// group by either; a reader needs only the text. Within a batch the rows are as
// they were written. [Read] gives them sorted by time.
//
// The schema's metadata holds eagergc.version, eagergc.name, eagergc.start (the
// wall clock of time 0, RFC 3339) and eagergc.meta.KEY for each key of
// [trace.Trace.Meta].
//
// # Files that are not whole
//
// A stream ends with a mark. Where it is missing the file was cut off, and what
// its whole batches hold can be read: see [TruncatedError]. Limits hold on files
// of unknown origin: see [Limits].
package arrowfile
