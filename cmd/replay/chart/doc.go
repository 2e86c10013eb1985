// Package chart draws replays: memory over time, pauses, minimum mutator
// utilization, metrics against the limit, the Pareto front of pause and collector
// time, and lower-bound overheads.
//
// Each function returns a [Chart], which is written as SVG or PNG. An SVG is dark
// where the reader's page is dark. A [Palette] gives a policy its look: a colour
// that belongs to it in every picture, a dash pattern and a marker, so that lines
// can be told apart without colour and in print. Legends stand above the panels,
// names of lines beside them where there is room.
//
// The same input gives the same bytes.
package chart
