// Package checks has the tests of the repository itself. They check who imports whom, the sizes of the parts, and that the
// documents agree with the code that they quote.
package checks
