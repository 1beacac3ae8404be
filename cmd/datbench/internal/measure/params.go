package measure

// Tunables, with unit and reason.
const (
	// MinTailSamples is the minimum number of samples for a p99. minMedianSamples is the minimum number for a median.
	MinTailSamples   = 100
	minMedianSamples = 10
	// minCoreShare is the fraction of a core that a spinning side must have had. Less CPU time makes the row invalid.
	minCoreShare = 0.5
	// minElapsedShare is the fraction of the requested duration that a row must have lasted.
	minElapsedShare = 0.8
)
