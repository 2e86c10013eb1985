// Package arrowlite reads native traces without Apache Arrow, where its 12 MB are
// too many: in a web page. It reads what package arrowfile writes, and no more: the
// columns of the format and no others, packed with zstd or not at all, in a file that
// is whole. The caller brings what unpacks zstd: in a page, the page's own. What it cannot read is [ErrOther] or another error; package arrowfile
// reads it, or says what is wrong with it.
package arrowlite
