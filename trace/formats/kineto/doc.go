// Package kineto reads the profiles of PyTorch's profiler: Chrome trace JSON as
// torch.profiler's export_chrome_trace writes it.
//
//	[memory], Bytes > 0      Alloc on device "Device Id"
//	[memory], Bytes < 0      Drop of the object at Addr
//	[OutOfMemory]            Refuse
//	cudaStreamSynchronize, cudaDeviceSynchronize, cudaEventSynchronize
//	                         Sync of length dur (and the same names with hip)
//	cat user_annotation      Mark of length dur
//	Total Reserved changes   Reserve or Release of the difference
//
//	kernels, copies and fills, with the calls that launched them
//	                         Marks with trace.AheadLabel
//
// Everything else is left out. Trace.Meta counts the events about memory of the
// CPU (Device Type 0) that were left out. A profile has [memory] events only if it
// was made with profile_memory=True. Without them it gives only waits and marks,
// which [recording.Merge] adds to a memory snapshot of the same program.
//
// # Time
//
// An event happens at baseTimeNanoseconds + ts, rounded to the nearest nanosecond;
// ts is read as an exact decimal number. The events of the file are in no order;
// those of the trace are sorted by time. At equal times Sync events come last, and
// the others keep the order of the file. Time 0 is defined by
// [trace.Trace.StartAtFirst]. Older profiles have no baseTimeNanoseconds, and
// their ts counts from 1970.
//
// # Devices that work ahead
//
// A kernel, copy or fill of the device (cat kernel, gpu_memcpy, gpu_memset) has the
// correlation of the call that launched it. From when it was launched and when it
// ran follows how long the program could have paused without the next wait being
// over later: that is the Duration of the Mark. All streams and devices count as one:
// programs that use several let them wait for one another, and a profile does not say
// which waits for which. A Mark is left out if it says less than
// 10 us or a 20th of the wait more than the one before it.
//
// # Before the window
//
// An object that is freed without having been allocated in the profile was live
// before it. The first event's "Total Allocated" may count more bytes than those
// objects have; the bytes that nothing frees become one more object. All of these
// are allocated at time 0, and Trace.Meta counts them (live_before_objects,
// live_before_bytes).
//
// # Bad input
//
// An error gives the byte offset in the unpacked file, or the index in
// traceEvents. These are errors: a double free, an allocation of a live address,
// a free of more bytes than were live before the window, and a size outside
// [1, 2^62).
package kineto
