// Package chart presents runs of the simulator as lines, tables and sentences, and gives each
// policy its style. A [Builder] makes them for web pages, whose script draws [Data] with uPlot.
// Other functions draw the same with gonum: [OfGrid] returns the pictures of a comparison, and a
// [Chart] is written as SVG, PNG or PDF. The parts that need gonum are not built for js.
//
// An SVG is dark on a dark page. A [Palette] gives a policy a colour that it has in every
// picture, a dash pattern and a marker, so that lines differ without colour and in print. The
// same input gives the same bytes.
package chart
