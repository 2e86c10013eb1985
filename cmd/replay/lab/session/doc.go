// Package session is what the page of the lab asks of the simulator, as typed
// questions and answers whose JSON forms the page knows. It runs in the browser, and
// in tests anywhere: it opens no file and draws nothing.
package session
