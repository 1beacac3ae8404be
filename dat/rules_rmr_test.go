package dat

var rmrRules = []topic{}
