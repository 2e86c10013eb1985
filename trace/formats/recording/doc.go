// Package recording works on whole recordings: figures, the text form, the merge of two recordings.
// Importers build their recordings with it, within a [Budget].
package recording
