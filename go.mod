module github.com/eagergc/eagergc

go 1.24
