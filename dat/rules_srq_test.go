package dat

var srqRules = []topic{}
