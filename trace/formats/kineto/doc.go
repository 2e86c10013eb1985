// Package kineto reads the profiles of PyTorch's profiler: Chrome trace JSON as
// torch.profiler's export_chrome_trace writes it.
//
//	[memory], Bytes > 0      Alloc on device "Device Id"
//	[memory], Bytes < 0      Drop of the object at Addr
//	[OutOfMemory]            Refuse
//	cudaStreamSynchronize, cudaDeviceSynchronize, cudaEventSynchronize
//	                         Sync of length dur (and the same names with hip)
//	cudaMemcpy, hipMemcpy and hipMemcpyWithStream from a device to the host, and
//	other copies from there to pageable memory
//	                         Sync of length dur
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
// An event happens at baseTimeNanoseconds + ts, rounded to the nearest nanosecond. The reader takes
// ts as an exact decimal number, unless it has an exponent. It sorts the events by time. At equal
// times Sync events come last, and the others keep the order of the file. [recording.StartAtFirst]
// defines time 0. Older profiles have no baseTimeNanoseconds, and their ts counts from 1970.
//
// # Devices that work ahead
//
// A kernel, copy or fill of the device (cat kernel, gpu_memcpy, gpu_memset) has the correlation of the
// call that launched it. The reader compares the times of the launch and of the work. The Duration of
// a Mark says for how long the program could have paused there so that the next wait ended no later.
//
// All streams and devices count as one, because a profile does not say which stream waits for which.
// A Mark is left out if it is less than 10 us, or less than a 20th of the wait, longer than the Mark
// before it.
//
// # Before the window
//
// An object that is freed without having been allocated in the profile was live
// before it. The "Total Allocated" of the first event may count more bytes than these objects have.
// The other bytes become one more object. All these objects are allocated at time 0, and Trace.Meta
// counts them (live_before_objects, live_before_bytes).
//
// # Bad input
//
// An error gives the byte offset in the unpacked file, or the index in traceEvents. Errors are a
// double free, an allocation of a live address, a size outside [1, 2^62), and a free of more bytes
// than were live before the window.
package kineto
