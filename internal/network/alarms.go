package network

import "math"

// never is a time that does not come.
const never = math.MaxInt64

// alarms holds a time for each host, and finds the earliest. It is a tournament tree: each inner node has the earlier
// time of its two children, and the leaves are the last half.
type alarms []int64

func newAlarms(n int) alarms {
	leaves := 1
	for leaves < n {
		leaves *= 2
	}
	a := make(alarms, 2*leaves)
	for i := range a {
		a[i] = never
	}
	return a
}

// get returns the time of host i.
func (a alarms) get(i int) int64 { return a[len(a)/2+i] }

// set sets the time of host i.
func (a alarms) set(i int, at int64) {
	k := len(a)/2 + i
	a[k] = at
	for k /= 2; k > 0; k /= 2 {
		least := min(a[2*k], a[2*k+1])
		if a[k] == least {
			return
		}
		a[k] = least
	}
}

// first returns the host with the earliest time. Of several such hosts it returns the one with the least number.
func (a alarms) first() (i int, at int64) {
	k := 1
	for k < len(a)/2 {
		k *= 2
		if a[k] != a[k/2] {
			k++
		}
	}
	return k - len(a)/2, a[k]
}
