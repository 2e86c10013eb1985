// Package recording is what the laboratory does with a recording as a whole: its figures
// and demographics, its text form, two recordings made one. Importers build theirs with
// it, within a [Budget].
package recording
