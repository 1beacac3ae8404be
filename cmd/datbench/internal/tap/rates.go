package tap

import (
	"fmt"
	"strconv"
	"strings"
)

// Rates are probabilities per received packet, 0 to 1, and the seed of the random choices.
type Rates struct {
	Loss, Duplicate, Reorder, Corrupt float64
	Seed                              uint64
}

// rateKeys are the keys of Parse and String, in their order.
var rateKeys = []string{"loss", "dup", "reorder", "corrupt"}

func (r *Rates) field(key string) *float64 {
	switch key {
	case "loss":
		return &r.Loss
	case "dup":
		return &r.Duplicate
	case "reorder":
		return &r.Reorder
	case "corrupt":
		return &r.Corrupt
	}
	return nil
}

// Parse parses rates such as "loss=1%,dup=0.001,seed=7". The rates loss, dup, reorder and corrupt are percentages or
// fractions of 1; seed is an integer. Missing keys are 0. An empty string means no impairment.
func Parse(s string) (Rates, error) {
	var r Rates
	seen := make(map[string]bool)
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return Rates{}, fmt.Errorf("tap: %q: want key=value, as in loss=1%%", part)
		}
		if seen[key] {
			return Rates{}, fmt.Errorf("tap: %q: %s is given twice", part, key)
		}
		seen[key] = true
		if err := r.set(key, value); err != nil {
			return Rates{}, err
		}
	}
	return r, nil
}

func (r *Rates) set(key, value string) (err error) {
	if key == "seed" {
		if r.Seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			return fmt.Errorf("tap: seed=%s: want a whole number", value)
		}
		return nil
	}
	field := r.field(key)
	if field == nil {
		return fmt.Errorf("tap: unknown impairment %q: want %s or seed", key, strings.Join(rateKeys, ", "))
	}
	number, percent := strings.CutSuffix(value, "%")
	p, err := strconv.ParseFloat(number, 64)
	if percent {
		p /= 100
	}
	if err != nil || !(p >= 0 && p <= 1) { // NaN is in no range
		return fmt.Errorf("tap: %s=%s: want 0%% to 100%%, or a fraction of 1", key, value)
	}
	*field = p
	return nil
}

// String returns the form that Parse accepts.
func (r Rates) String() string {
	var parts []string
	for _, key := range rateKeys {
		if p := *r.field(key); p != 0 {
			parts = append(parts, key+"="+strconv.FormatFloat(p, 'g', -1, 64))
		}
	}
	if r.Seed != 0 {
		parts = append(parts, fmt.Sprintf("seed=%d", r.Seed))
	}
	return strings.Join(parts, ",")
}

// Zero reports whether the rates impair nothing.
func (r Rates) Zero() bool {
	return r.Loss == 0 && r.Duplicate == 0 && r.Reorder == 0 && r.Corrupt == 0
}
