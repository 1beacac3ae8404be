package dat

var iaRules = []topic{}
