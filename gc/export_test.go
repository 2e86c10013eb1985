package gc

// Build is the one way by which the tests, which are in package gc_test, get behind the exported names: it makes a
// collector on a runtime of theirs.
var Build = build
