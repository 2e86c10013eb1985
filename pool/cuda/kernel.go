package cuda

// A Module is loaded GPU code.
type Module struct {
	dev    *Device
	h      handle
	params map[string][]string // types of the parameters of each kernel, if they are known
}

// Load loads PTX text or a cubin into the device. PTX is compiled by the driver, which takes
// milliseconds the first time.
func (d *Device) Load(image string) (m *Module, err error) {
	m = &Module{dev: d, params: parametersOf(image)}
	err = d.retry(func() error { m.h, err = moduleLoad(d, image); return err })
	return m, err
}

// Close unloads the module and the kernels found in it.
func (m *Module) Close() error { return moduleUnload(m.dev, m.h) }

// Kernel returns the module's kernel of that name. [Launch] runs it.
func (m *Module) Kernel(name string) (*Kernel, error) {
	h, err := moduleFunction(m.dev, m.h, name)
	return &Kernel{m.dev, h, name, m.params[name]}, err
}

// A Kernel is a function that runs on the GPU.
type Kernel struct {
	dev    *Device
	h      handle
	name   string
	params []string // their types in PTX; nil: unknown
}

// Dim is the extent of a grid or of a block of threads. A zero counts as 1.
type Dim struct{ X, Y, Z uint32 }

func (d Dim) orOne() Dim { return Dim{max(d.X, 1), max(d.Y, 1), max(d.Z, 1)} }
