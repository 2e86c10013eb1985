module github.com/eagergc/eagergc/cmd/clients

go 1.26.0

replace github.com/eagergc/eagergc => ../..

require (
	github.com/KimMachineGun/automemlimit v1.0.1
	github.com/eagergc/eagergc v0.0.0
)

require (
	github.com/pbnjay/memory v0.0.0-20210728143218-7b4eea64cf58 // indirect
	golang.org/x/sys v0.48.0 // indirect
)
