package dat

var postRules = []topic{}
