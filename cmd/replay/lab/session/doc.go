// Package session answers the questions of the lab's page to the simulator. Questions and
// answers are types whose JSON forms the page knows. The package runs in a browser, and in tests
// anywhere. It opens no file and draws nothing.
package session
