package dat

var epRules = []topic{
	{"states", stateRules()},
}
