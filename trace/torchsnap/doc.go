// Package torchsnap reads the memory snapshots of PyTorch: what
// torch.cuda.memory._snapshot returns, as torch.cuda.memory._dump_snapshot or
// pickle.dump write it, plain or packed with gzip, zstd or xz.
//
// A snapshot holds the allocator's last actions on each device, oldest first
// (device_traces), and what its segments hold at the end. It becomes one trace;
// device n is space [pressure.Device](n).
//
//	alloc                        Alloc of the entry's size
//	free_requested               Drop: PyTorch counts references, so this is
//	                             when the object became unreachable
//	free_completed               nothing: the allocator's own business
//	segment_alloc, segment_map   Reserve
//	segment_free, segment_unmap  Release
//	oom                          Refuse
//	snapshot and other requests  Mark
//	external_annotations         Mark, with the time to its end
//
// # Sites
//
// Where the history was recorded with stacks, the frames of an entry are the
// label of its Alloc, and those of a block the label of an object that was live
// before the window: the site, as package trace/pprof reads it. Python's functions
// have the name of their module before them (modeling_gpt2.forward); the frames of
// the interpreter, and of the taking of the stack, are left out. At most 96 frames,
// or 8 KiB, are kept of a stack, and 65536 stacks; the rest is at "(too many sites)".
//
// # Before the window
//
// The history is a ring buffer, so its first entries may be lost. An object was
// live before the window if the window frees it without having allocated it, or
// if a segment holds it at the end and the window did not allocate it. Such
// objects are allocated at time 0, ahead of all else, and Trace.Meta counts them
// (live_before_objects, live_before_bytes). The same goes for segments.
//
// # Time
//
// Time 0 is the first Alloc or Drop, and what comes before it (a segment that is
// taken for it) is put at 0. Entries without time_us, as older versions write
// them, are put one microsecond apart in their order; Trace.Meta["clock"] says
// so, and Trace.Start is zero then.
//
// # Bad input
//
// A pickle is a program. This reader runs none of it: it knows data only, and an
// opcode that names a global or calls something is an error. An error gives the
// byte offset in the unpacked pickle or the device and index of the entry. Free
// of an address that is not live, allocation of one that is, sizes outside
// [1, 2^62), and time going backwards on one device are errors.
package torchsnap
