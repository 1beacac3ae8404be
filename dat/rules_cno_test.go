package dat

var cnoRules = []topic{}
