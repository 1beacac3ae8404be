// Package checks has the tests of the repository itself: the import table, the linter that enforces
// it, and the documents against the code that they quote.
package checks
