package frame

// Plugin returns a WebAssembly module with the given number of 64 KiB pages, which must be below
// 16,384. The module exports run(x), which writes x to each 4 KiB of its memory and returns the
// address after the last write.
func Plugin(pages int) []byte {
	return []byte{
		0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00, // a module, version 1
		1, 6, 1, 0x60, 1, 0x7f, 1, 0x7f, // type 0: i32 -> i32
		3, 2, 1, 0, // function 0 has type 0
		5, 4, 1, 0, 0x80 | byte(pages), byte(pages >> 7), // a memory
		7, 7, 1, 3, 'r', 'u', 'n', 0, 0, // export function 0
		10, 34, 1, 32, 1, 1, 0x7f, // its code, with one i32 of its own
		0x03, 0x40, // loop
		0x20, 1, 0x20, 0, 0x36, 2, 0, // memory[local 1] = x
		0x20, 1, 0x41, 0x80, 0x20, 0x6a, 0x22, 1, // local 1 += 4096
		0x3f, 0, 0x41, 16, 0x74, 0x49, // < pages << 16
		0x0d, 0, 0x0b, // again
		0x20, 1, 0x0b, // return local 1
	}
}
