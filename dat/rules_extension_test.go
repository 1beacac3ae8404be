package dat

var extensionRules = []topic{}
