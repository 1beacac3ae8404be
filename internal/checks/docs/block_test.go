package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

// block is a fenced block of a document.
type block struct {
	file   string
	line   int
	lang   string
	text   string
	marker string // the comment above; empty if there is none
	output string // the text block that follows
}

// ofExample reports whether the block is for the examples.
func (b block) ofExample() bool { return strings.HasPrefix(b.file, "examples/") }

func (b block) String() string { return fmt.Sprintf("%s:%d", b.file, b.line) }

// documents returns the files whose commands are for users.
func documents(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/decisions/*.md", "vagrant/*.md", "examples/*.md", "monitoring/*.md", "bench/*.md", "examples/services/*.md"} {
		names, err := filepath.Glob(root + "/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			files = append(files, strings.TrimPrefix(n, root+"/"))
		}
	}
	return files
}

// blocks returns every fenced block of a language.
func blocks(t *testing.T, lang string) (found []block) {
	t.Helper()
	for _, file := range documents(t) {
		for _, b := range parse(file, read(t, file)) {
			if b.lang == lang {
				found = append(found, b)
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("no document has a block of %s", lang)
	}
	return found
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var markerLine = regexp.MustCompile(`^<!-- run: (.*) -->$`)

// parse returns the blocks of a document.
func parse(file, text string) (found []block) {
	var open *block
	last := "" // the last line that is not blank
	for i, line := range strings.Split(text, "\n") {
		lang, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &block{file: file, line: i + 1, lang: lang}
			if m := markerLine.FindStringSubmatch(last); m != nil {
				open.marker = m[1]
			}
			if n := len(found) - 1; lang == "text" && last == "```" && n >= 0 {
				open.marker = "output"
			}
		case fence:
			if n := len(found) - 1; open.marker == "output" {
				found[n].output = open.text
			} else {
				found = append(found, *open)
			}
			open = nil
		case open != nil:
			open.text += line + "\n"
		}
		if line != "" {
			last = line
		}
	}
	return found
}

// plan is a parsed marker.
type plan struct {
	kind  string
	other bool     // on the other host
	under []string // command that runs the shell without privilege
	fails bool
	add   []addition
}

// runs reports whether the commands are run.
func (p plan) runs() bool { return p.kind != "make" && p.kind != "not here" }

// nobody runs a command without privilege. The command can gain capabilities only from a file.
var nobody = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"}

// addition is flags for the commands that contain a word.
type addition struct{ word, flags string }

// matches reports whether a command contains the word.
func (a addition) matches(command string) bool {
	return regexp.MustCompile(`(^|\s)` + regexp.QuoteMeta(a.word) + `(\s|$)`).MatchString(command)
}

func parseMarker(s string) (p plan, err error) {
	if why, ok := strings.CutPrefix(s, "not here: "); ok && why != "" {
		return plan{kind: "not here"}, nil
	}
	clauses := strings.Split(s, "; ")
	kind, as, _ := strings.Cut(clauses[0], ", ")
	p = plan{kind: kind}
	switch {
	case as == "":
	case kind == "lab" && as == "as nobody":
		p.under = nobody
	case kind == "lab" && as == "from the other":
		p.other = true
	default:
		return p, fmt.Errorf("%q is not a place", clauses[0])
	}
	switch kind {
	case "host", "lab", "nic", "make":
	default:
		return p, fmt.Errorf("%q is not a place; doc.go has them", kind)
	}
	for _, c := range clauses[1:] {
		word, flags, ok := strings.Cut(c, " += ")
		switch {
		case c == "fails":
			p.fails = true
		case ok:
			p.add = append(p.add, addition{word, flags})
		default:
			return p, fmt.Errorf("%q is not a clause; doc.go has them", c)
		}
	}
	return p, nil
}

// code splits a line into command and comment. A # inside a word or quotation does not begin a comment.
func code(line string) (code, comment string) {
	quote := rune(0)
	for i, r := range line {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t'):
			return strings.TrimRight(line[:i], " \t"), strings.TrimSpace(line[i+1:])
		}
	}
	return line, ""
}

// with returns a command with its additional flags.
func (p plan) with(command string) string {
	for _, a := range p.add {
		if a.matches(command) {
			command += " " + a.flags
		}
	}
	return command
}

// step is a list of commands that run in one shell.
type step struct {
	commands string
	lasting  bool // keeps running until the end of the block
	other    bool // runs on the other host
}

// steps splits a block into steps, which are started one after the other. A command that keeps running is a step of its
// own, and so is each command that may fail.
func (p plan) steps(text string) (all []step) {
	alone := p.kind == "nic" || len(p.add) > 0
	for line := range strings.Lines(text) {
		command, comment := code(strings.TrimSuffix(line, "\n"))
		s := step{
			commands: p.with(command) + "\n",
			lasting:  strings.HasPrefix(comment, "on one host") || strings.HasPrefix(comment, "in one terminal"),
			other:    strings.HasPrefix(comment, "on the other") || p.other,
		}
		if n := len(all) - 1; n >= 0 && !s.lasting && !all[n].lasting && all[n].other == s.other && !alone {
			all[n].commands += s.commands
			continue
		}
		if strings.TrimSpace(command) != "" {
			all = append(all, s)
		}
	}
	return all
}
