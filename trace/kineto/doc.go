// Package kineto reads the profiles of PyTorch's profiler: Chrome trace JSON as
// torch.profiler's export_chrome_trace writes it, plain or packed with gzip, zstd
// or xz.
//
//	[memory], Bytes > 0      Alloc on device "Device Id"
//	[memory], Bytes < 0      Drop of the object at Addr
//	[OutOfMemory]            Refuse
//	cudaStreamSynchronize, cudaDeviceSynchronize, cudaEventSynchronize
//	                         Sync of length dur (and the hip names of the same)
//	cat user_annotation      Mark of length dur
//	Total Reserved changes   Reserve or Release of the difference
//
// Memory of the CPU (Device Type 0) is left out and counted in Trace.Meta, and so
// is all else that the profile holds. [memory] events need profile_memory=True;
// a profile without them gives only waits and marks, to be merged with a memory
// snapshot of the same run by [trace.Merge].
//
// # Time
//
// An event is at baseTimeNanoseconds + ts, rounded to the nearest nanosecond;
// ts is read as the decimal that it is. The file is not sorted; the trace is, and
// at equal times Sync events come last, otherwise the order of the file holds.
// Time 0 is as [trace.Trace.StartAtFirst] says. Older profiles have no
// baseTimeNanoseconds and count ts from 1970.
//
// # Before the window
//
// An object that is freed, but was not allocated since profiling began, was live
// before. So was what the first event's "Total Allocated" counts beyond it: bytes
// that nothing in the window frees become one object. Both are allocated at time
// 0 and counted in Trace.Meta (live_before_objects, live_before_bytes).
//
// # Bad input
//
// Errors give the byte offset in the unpacked file, or the index in traceEvents.
// Double free, allocation of a live address, more bytes freed than were live
// before the window, and sizes outside [1, 2^62) are errors.
package kineto
