package cuda

// Advice tells the driver how a range of managed memory will be used. The
// values are the driver's CUmem_advise.
type Advice uint8

const (
	ReadMostly     Advice = 1 // keep copies where it is read
	PreferLocation Advice = 3 // keep it on the device given
)

// HostMemory is the device number that means the host, for [Stream.Prefetch]
// and [Device.Advise].
const HostMemory = -1

// Prefetch queues the migration of a range of managed memory to a device, by
// number, or to the host.
func (s *Stream) Prefetch(addr uintptr, bytes int64, device int) error {
	return prefetch(s, addr, bytes, device)
}

// Advise tells the driver how a range of managed memory will be used by device,
// by number, or by the host.
func (d *Device) Advise(addr uintptr, bytes int64, a Advice, device int) error {
	return advise(d, addr, bytes, a, device)
}
