package main

// families are policies with their parameter set to this and that, in the order of the memory that they hold. Those without a parameter to sweep are points.
var families = [][]string{
	{"growth:0.05", "growth:0.1", "growth:0.25", "growth:0.5", "growth:1", "growth:1.5", "growth:2", "growth:4"},
	{"sqrt:1e-06", "sqrt:1e-07", "sqrt:1e-08", "sqrt:1e-09", "sqrt", "sqrt:1e-10", "sqrt:1e-11"},
	{"host:1e-06", "host:1e-07", "host", "host:1e-08", "host:1e-09", "host:1e-10"},
	{"cpucontrol:40%", "cpucontrol:20%", "cpucontrol:10%", "cpucontrol", "cpucontrol:2%", "cpucontrol:1%", "cpucontrol:0.5%"},
	{"periodic:1ms", "periodic:3ms", "periodic:10ms", "periodic:30ms", "periodic:100ms", "periodic:300ms", "periodic:1s", "periodic:10s"},
	{"dotnet:1MiB", "dotnet", "dotnet:16MiB", "dotnet:64MiB", "dotnet:256MiB", "dotnet:1GiB"},
	{"v8step:1MiB", "v8step:4MiB", "v8step:16MiB", "v8step", "v8step:256MiB", "v8step:1GiB"},
	{"threshold:0.5", "threshold:0.6", "threshold:0.7", "threshold:0.8", "threshold:0.9", "threshold:0.95"},
	{"pacer:share=0.2", "pacer:share=0.1", "pacer", "pacer:share=0.02", "pacer:share=0.01"},
	{"cudajl"}, {"opencl"}, {"gomemlimit"}, {"never"}, {"optimum-overlap"},
}
