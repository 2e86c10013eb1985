// Package chart draws replays: memory over time, pauses, minimum mutator
// utilization, and metrics against the limit.
//
// Each function returns a [Chart], which is written as SVG or PNG. A [Palette]
// gives a policy one look in all charts of a comparison: a colour of the
// Okabe-Ito set, a dash pattern and a marker, so that lines can be told apart
// without colour and in print. Legends stand above the panels, never in them.
//
// The same input gives the same bytes.
package chart
