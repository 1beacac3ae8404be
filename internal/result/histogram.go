package result

import (
	"cmp"
	"encoding/json"
	"slices"
)

// Histogram is the distribution of a latency row: the non-empty buckets, shortest times first. In JSON a bucket is the
// pair [upper_us, count].
type Histogram []Bucket

// Bucket counts the times up to Upper µs that are longer than those of the bucket before it.
type Bucket struct {
	Upper float64
	Count int64
}

// MarshalJSON writes a bucket as a pair.
func (b Bucket) MarshalJSON() ([]byte, error) { return json.Marshal([2]any{b.Upper, b.Count}) }

// UnmarshalJSON reads a pair.
func (b *Bucket) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[2]any{&b.Upper, &b.Count})
}

// Total returns the number of times.
func (h Histogram) Total() (n int64) {
	for _, b := range h {
		n += b.Count
	}
	return n
}

// Quantile returns the time in µs that the given percentage of the times does not exceed; 0 if there are none.
// Quantile(100) is the longest time.
func (h Histogram) Quantile(percent float64) float64 {
	rank, seen := max(int64(percent/100*float64(h.Total())+0.5), 1), int64(0)
	for _, b := range h {
		if seen += b.Count; seen >= rank {
			return b.Upper
		}
	}
	return 0
}

// Merge returns the distribution of the times of both.
func (h Histogram) Merge(other Histogram) Histogram {
	all := slices.Concat(h, other)
	slices.SortFunc(all, func(a, b Bucket) int { return cmp.Compare(a.Upper, b.Upper) })
	var out Histogram
	for _, b := range all {
		if n := len(out); n > 0 && out[n-1].Upper == b.Upper {
			out[n-1].Count += b.Count
			continue
		}
		out = append(out, b)
	}
	return out
}
