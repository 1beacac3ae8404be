package result

// CompareImpaired fills in the ratio of each impaired row to the same row of this run without impairment.
func CompareImpaired(results []Result) {
	for i := range results {
		r := &results[i]
		if base := Unimpaired(results, r); base != nil && r.Valid && base.Valid {
			compareWith(r, base)
		}
	}
}

// Unimpaired returns the same row of the report without impairment; nil if r is not impaired or there is none.
func Unimpaired(results []Result, r *Result) *Result {
	plain := r.Row
	if plain.Impair = ""; plain == r.Row {
		return nil
	}
	for i := range results {
		b := &results[i]
		if b.Row == plain {
			return b
		}
	}
	return nil
}

func compareWith(r, base *Result) {
	switch {
	case r.Metric == Latency && r.P99 != nil && base.P99 != nil && *base.P99 > 0:
		ratio := *r.P99 / *base.P99
		r.P99Ratio = &ratio
	case r.Metric != Latency && base.Gbps > 0:
		kept := 100 * r.Gbps / base.Gbps
		r.Kept = &kept
	}
}
