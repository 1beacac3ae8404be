package measure

// Tunables, with unit and reason.
const (
	// MinTailSamples is the least that gives a p99 a meaning, minMedianSamples a median.
	MinTailSamples   = 100
	minMedianSamples = 10
	// minCoreShare is the part of a core below which a spinning side was not measured but starved.
	minCoreShare = 0.5
	// minElapsedShare is the part of the asked-for duration below which a row does not count.
	minElapsedShare = 0.8
)
