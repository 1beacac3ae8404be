package dat

var evdRules = []topic{}
