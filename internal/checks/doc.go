// Package checks has the tests of the repository itself. They check the import table, the linter that enforces it, and
// that the documents agree with the code that they quote.
package checks
