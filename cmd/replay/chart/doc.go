// Package chart says what runs of the simulator look like: lines, tables, words, and the
// looks of policies. A [Builder] makes them for pages, whose script draws [Data] with uPlot.
// The same are drawn with gonum to files: [OfGrid] says which pictures a comparison has, and a
// [Chart] is written as SVG, PNG or PDF. What needs gonum is not built for js: the simulator in a
// page draws with the page's script.
//
// An SVG is dark where the reader's page is dark. A [Palette] gives a policy its look: a colour
// that belongs to it in every picture, a dash pattern and a marker, so that lines can be told
// apart without colour and in print. The same input gives the same bytes.
package chart
