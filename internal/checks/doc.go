// Package checks holds the tests of the repository itself: the import table, the linter that
// enforces it, and the documents against the code they quote.
package checks
