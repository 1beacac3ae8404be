package dat

var serviceRules = []topic{}
