// Package torchsnap reads the memory snapshots of PyTorch, which torch.cuda.memory._dump_snapshot
// writes. So does pickle.dump of the result of torch.cuda.memory._snapshot.
//
// A snapshot holds the last actions of the allocator on each device, oldest first (device_traces), and
// the live blocks of the allocator's segments at the end (segments). All of it becomes one trace.
// Device n is space [pressure.Device](n):
//
//	alloc                        Alloc of the entry's size
//	free_requested               Drop: PyTorch counts references, so this is
//	                             when the object became unreachable
//	free_completed               nothing, unless free_requested was not recorded
//	segment_alloc, segment_map   Reserve
//	segment_free, segment_unmap  Release
//	oom                          Refuse
//	snapshot and other requests  Mark
//	external_annotations         Mark that lasts until the annotation's end
//
// PyTorch can leave actions out of the history (skip_actions). Without free_requested, free_completed
// becomes the Drop. That may be later than the moment when the object became unreachable. The reader
// ignores other keys, such as frames (stacks), pool_id and user_metadata.
//
// # Before the window
//
// PyTorch keeps the history in a ring buffer, so its first entries may be lost. An object was live
// before the window if the window did not allocate it, and either frees it or has it in a segment at
// the end. The trace allocates such objects at time 0, before anything else. Trace.Meta counts them
// (live_before_objects, live_before_bytes). Segments are treated in the same way.
//
// # Time
//
// Time 0 is the first Alloc or Drop. An event before it, such as taking the segment for the first
// object, is moved to time 0. An entry without time_us, as versions of PyTorch before 2.2 write it,
// is an error.
//
// # Bad input
//
// A pickle is a program. This reader executes none of it: it accepts plain data of protocol 2 to 5
// only, and an opcode that names a global or calls something is an error. An error gives the byte
// offset in the unpacked pickle, or the device and the index of the entry. Errors are a free of an
// address that is not live, an allocation of a live address, a size outside [1, 2^62), and time that
// goes backwards on one device.
package torchsnap
