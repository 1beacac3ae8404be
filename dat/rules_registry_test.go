package dat

var registryRules = []topic{}
