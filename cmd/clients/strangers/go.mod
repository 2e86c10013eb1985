module github.com/eagergc/eagergc/cmd/clients/strangers

go 1.26.0

require (
	github.com/RoaringBitmap/gocroaring v0.4.0
	github.com/bytecodealliance/wasmtime-go/v3 v3.0.2
	github.com/eagergc/eagergc v0.1.0
	github.com/eagergc/eagergc/cmd/clients v0.1.0
	github.com/gotk3/gotk3 v0.6.1
	github.com/libgit2/git2go/v34 v34.0.0
	github.com/ncw/gmp v1.0.5
	github.com/smacker/go-tree-sitter v0.0.0-20240827094217-dd81d9e9be82
	github.com/twpayne/go-geos v0.19.0
	github.com/wasmerio/wasmer-go v1.0.4
)

require (
	golang.org/x/crypto v0.27.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
