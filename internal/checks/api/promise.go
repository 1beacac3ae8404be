package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// newest returns the file of the latest release in a directory, and its lines.
func newest(dir string) (file string, lines []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "v*.txt"))
	if err != nil || len(files) == 0 {
		return "", nil, cmp.Or(err, fmt.Errorf("%s: no surface of a release: make api writes it", dir))
	}
	file = slices.MaxFunc(files, func(a, b string) int { return slices.Compare(version(a), version(b)) })
	text, err := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "pkg ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return file, lines, err
}

// version returns the numbers of vX.Y.Z.txt.
func version(file string) []int {
	v := make([]int, 3)
	_, _ = fmt.Sscanf(filepath.Base(file), "v%d.%d.%d.txt", &v[0], &v[1], &v[2]) // other names are sorted first
	return v
}

// announcements returns the entries under [API change] in the unreleased part of the change log.
func announcements(changelog string) (all []string) {
	_, part, _ := strings.Cut(changelog, "\n## Unreleased\n")
	part, _, _ = strings.Cut(part, "\n## ")
	for _, entry := range strings.Split(part, "\n* ")[1:] {
		if strings.HasPrefix(entry, "[API change]") {
			all = append(all, entry)
		}
	}
	return all
}

// name matches the name in a line; for a method or a field, it matches the type and the name.
var name = regexp.MustCompile(`^pkg \S+, (?:(?:const|var|func|type) (\w+)|method \(\*?(\w+)\) (\w+))(?:(?: struct| interface), (\w+))?`)

// unannounced returns the promised lines that are gone and that no announcement names. An announcement names a line as
// Name or Type.Name; if the whole type is gone, the name of the type is sufficient.
func unannounced(promised, now, announced []string) (broken []string) {
	there := map[string]bool{}
	types := map[string]bool{}
	for _, line := range now {
		there[line] = true
		types[owner(line)] = true
	}
	for _, line := range promised {
		if there[line] {
			continue
		}
		m := name.FindStringSubmatch(line)
		if m == nil {
			broken = append(broken, line)
			continue
		}
		of, member := m[1]+m[2], m[3]+m[4]
		named := member != "" && mentions(announced, of+"."+member)
		switch {
		case strings.Contains(line, " interface { "):
			named = mentions(announced, of) || slices.ContainsFunc(announced, func(a string) bool { return strings.Contains(a, "`"+of+".") })
		case member == "" || !types[owner(line)]:
			named = named || mentions(announced, of)
		}
		if !named {
			broken = append(broken, line)
		}
	}
	return broken
}

// owner returns the package and the type, function or value of a line.
func owner(line string) string {
	pkg, _, _ := strings.Cut(line, ", ")
	m := name.FindStringSubmatch(line)
	if m == nil {
		return pkg
	}
	return pkg + ", " + m[1] + m[2]
}

// mentions reports whether one of the texts contains the name as a whole word. EP.Connect does not contain EP.
func mentions(texts []string, name string) bool {
	word := regexp.MustCompile(`(^|[^\w.])` + regexp.QuoteMeta(name) + `($|[^\w.]|\.(\W|$))`)
	return slices.ContainsFunc(texts, word.MatchString)
}
