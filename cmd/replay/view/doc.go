// Package view turns runs of the simulator into what a page shows: lines, looks,
// tables, words. It draws nothing. The script of a page draws its [Data], wherever
// it was made: by replay report, or by the simulator in the page itself; package
// chart draws the same as pictures.
package view
