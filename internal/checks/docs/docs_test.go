package docs

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestPlaces: every block of commands has a comment that says where it runs.
func TestPlaces(t *testing.T) {
	for _, b := range blocks(t, "sh") {
		if b.marker == "" {
			t.Errorf("%v: nothing above this block says where it runs; see internal/checks/docs", b)
			continue
		}
		p, err := parseMarker(b.marker)
		if err != nil {
			t.Errorf("%v: %v", b, err)
		}
		for _, a := range p.add {
			if !a.matches(strings.ReplaceAll(b.text, "\n", " ")) {
				t.Errorf("%v: no command has %q", b, a.word)
			}
		}
	}
	for _, lang := range []string{"bash", "shell", "console"} {
		for _, file := range documents(t) {
			for _, b := range parse(file, read(t, file)) {
				if b.lang == lang {
					t.Errorf("%v: write sh, not %s", b, lang)
				}
			}
		}
	}
}

// TestSyntax: commands that are not run have a valid syntax, and make targets exist.
func TestSyntax(t *testing.T) {
	for _, b := range blocks(t, "sh") {
		switch p, err := parseMarker(b.marker); {
		case err != nil: // TestPlaces reports it
		case p.kind == "make":
			checkTargets(t, b)
		case p.kind == "not here":
			checkSyntax(t, b, "bash", "-n")
			if _, err := exec.LookPath("shellcheck"); err == nil {
				checkSyntax(t, b, "shellcheck", "--shell=bash", "--severity=warning", "--exclude=SC2164", "-")
			}
		}
	}
}

// TestEachExample: a document has a block that starts a server of each example and then a client of it. Both run as they
// are written, without flags that make them short.
func TestEachExample(t *testing.T) {
	run := map[string]bool{}
	for _, b := range blocks(t, "sh") {
		p, err := parseMarker(b.marker)
		if err != nil || !p.runs() || len(p.add) > 0 || !b.ofExample() {
			continue
		}
		serves := map[string]bool{}
		for _, s := range p.steps(b.text) {
			for _, m := range program.FindAllStringSubmatch(s.commands, -1) {
				run[m[1]] = run[m[1]] || serves[m[1]] && !s.lasting
				serves[m[1]] = serves[m[1]] || s.lasting
			}
		}
	}
	for _, pattern := range []string{"examples/*/main.go", "examples/services/*/main.go"} {
		mains, err := filepath.Glob(root + "/" + pattern)
		if err != nil || len(mains) == 0 {
			t.Fatalf("%s: %v, %v", pattern, mains, err)
		}
		for _, file := range mains {
			if name := filepath.Base(filepath.Dir(file)); !run[name] {
				t.Errorf("no document runs a server and a client of example %s", name)
			}
		}
	}
}

// program matches an example in a command.
var program = regexp.MustCompile(`\./bin/(\w+) `)

func checkSyntax(t *testing.T, b block, name string, args ...string) {
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(b.text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %v: %s", b, err, out)
	}
}

var makeCommand = regexp.MustCompile(`^(?:sudo )?make ([a-z-]+)( [A-Z]+=\S+)*$`)

func checkTargets(t *testing.T, b block) {
	makefile := read(t, "Makefile")
	for line := range strings.Lines(b.text) {
		command, _ := code(strings.TrimSuffix(line, "\n"))
		m := makeCommand.FindStringSubmatch(command)
		switch {
		case m == nil:
			t.Errorf("%v: %q is not make", b, command)
		case !strings.Contains(makefile, "\n"+m[1]+":"):
			t.Errorf("%v: there is no make target %s", b, m[1])
		}
	}
}

// pod has the fields of a pod that determine the privileges of its program.
type pod struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		HostNetwork bool `yaml:"hostNetwork"`
		Containers  []struct {
			Name, Image     string
			Command         []string
			SecurityContext struct {
				RunAsUser                *int  `yaml:"runAsUser"`
				AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
				ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
				Capabilities             struct{ Drop, Add []string }
			} `yaml:"securityContext"`
		}
	}
}

// pods returns the pods in the documents. Every YAML block must be valid, and a pod must not have unknown fields.
func pods(t *testing.T) (all []pod) {
	t.Helper()
	for _, b := range blocks(t, "yaml") {
		d := yaml.NewDecoder(strings.NewReader(b.text))
		var err error
		if strings.Contains(b.text, "kind: Pod") {
			var p pod
			d.KnownFields(true)
			err = d.Decode(&p)
			all = append(all, p)
		} else {
			err = d.Decode(new(any))
		}
		if err != nil {
			t.Errorf("%v: %v", b, err)
		}
	}
	return all
}

// TestYAML: every YAML block is valid, and a pod has the privileges that AF_XDP needs.
func TestYAML(t *testing.T) {
	for _, p := range pods(t) {
		if p.APIVersion != "v1" || p.Metadata.Name == "" || len(p.Spec.Containers) != 1 {
			t.Errorf("not a pod of one container: %+v", p)
			continue
		}
		got := slices.Sorted(slices.Values(p.Spec.Containers[0].SecurityContext.Capabilities.Add))
		if want := []string{"BPF", "IPC_LOCK", "NET_ADMIN", "NET_RAW"}; !slices.Equal(got, want) {
			t.Errorf("pod %s adds %v, want %v", p.Metadata.Name, got, want)
		}
	}
}

// TestParse parses a document that has every feature.
func TestParse(t *testing.T) {
	text := "<!-- run: lab; run += --x -->\n\n```sh\na run # on the other\n```\n\n```text\nout\n```\n```sh\nb\n```\n"
	got := parse("f", text)
	want := []block{
		{file: "f", line: 3, lang: "sh", text: "a run # on the other\n", marker: "lab; run += --x", output: "out\n"},
		{file: "f", line: 10, lang: "sh", text: "b\n"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	p, err := parseMarker(got[0].marker)
	if s := p.steps(got[0].text); err != nil || len(s) != 1 || s[0] != (step{commands: "a run --x\n", other: true}) {
		t.Errorf("got %+v, %v", s, err)
	}
	for _, bad := range []string{"", "la", "lab, here", "host, as nobody", "lab; fail", "not here"} {
		if p, err := parseMarker(bad); err == nil {
			t.Errorf("%q is taken as %+v", bad, p)
		}
	}
}

// printed reports whether the output has a line that matches a line of the document.
func printed(output, want string) bool {
	parts := strings.Split(want, "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(`(?m)^\s*` + strings.Join(parts, ".*") + `\s*$`).MatchString(output)
}
