package dat

var epRules = []topic{}
