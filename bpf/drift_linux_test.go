//go:build amd64 || arm64

package bpf

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"
)

// generatedBy is the compiler of the committed object. Other compilers may choose other instructions, so the test
// compares only the output of this version.
const generatedBy = "clang version 14."

// TestGenerated runs the go:generate line again and compares the result with the committed object.
func TestGenerated(t *testing.T) {
	for _, tool := range []string{"go", "clang", "llvm-strip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("cannot rebuild the committed object: no %s on this host", tool)
		}
	}
	if out, err := exec.Command("go", "tool", "-n", "bpf2go").CombinedOutput(); err != nil {
		t.Skipf("cannot rebuild the committed object: bpf2go does not build on this host: %v\n%s", err, out)
	}
	dir := t.TempDir()
	regenerate(t, dir)
	const goFile, object = "steer_bpfel.go", "steer_bpfel.o"
	if diff := cmp.Diff(read(t, goFile), read(t, filepath.Join(dir, goFile))); diff != "" {
		t.Errorf("%s is not what steer.c gives; run go generate (-committed +rebuilt):\n%s", goFile, diff)
	}
	committed, rebuilt := content(t, object), content(t, filepath.Join(dir, object))
	if diff := cmp.Diff(committed.data, rebuilt.data); diff != "" {
		t.Errorf("maps and variables of %s; run go generate (-committed +rebuilt):\n%s", object, diff)
	}
	if version := clangVersion(t); !strings.Contains(version, generatedBy) {
		t.Skipf("instructions not compared: they are of %q, this host has %q", generatedBy, version)
	}
	if diff := cmp.Diff(committed.code, rebuilt.code); diff != "" {
		t.Errorf("instructions of %s; run go generate (-committed +rebuilt):\n%s", object, diff)
	}
}

// regenerate runs the command of the go:generate line with its output in dir.
func regenerate(t *testing.T, dir string) {
	t.Helper()
	_, line, found := strings.Cut(read(t, "gen.go"), "//go:generate go tool bpf2go ")
	if !found {
		t.Fatal("gen.go has no go:generate line for bpf2go")
	}
	args := append([]string{"tool", "bpf2go", "-output-dir", dir}, words(line)...)
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOPACKAGE=bpf")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %q: %v\n%s", args, err, out)
	}
}

// words splits a command line at spaces outside of double quotes.
func words(line string) (args []string) {
	for i, part := range strings.Split(strings.TrimSpace(line), `"`) {
		if quoted := i%2 == 1; quoted {
			args = append(args, part)
		} else {
			args = append(args, strings.Fields(part)...)
		}
	}
	return args
}

// normalized is an object's code and data without file names and line numbers.
type normalized struct{ code, data []string }

func content(t *testing.T, path string) (n normalized) {
	t.Helper()
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader([]byte(read(t, path))))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for name, p := range spec.Programs {
		n.code = append(n.code, fmt.Sprintf("program %s: %s, flags %#x, licence %s", name, p.SectionName, p.Flags, p.License))
		for _, ins := range p.Instructions {
			n.code = append(n.code, fmt.Sprintf("%s offset %d constant %d reference %q", ins.OpCode, ins.Offset, ins.Constant, ins.Reference()),
				fmt.Sprintf("dst %s src %s", ins.Dst, ins.Src))
		}
	}
	for _, name := range []string{steerMapXsks, steerMapCounters, steerMapAddresses, steerMapOwners} {
		m := spec.Maps[name]
		n.data = append(n.data, fmt.Sprintf("map %s: %s key %d value %d entries %d flags %#x", name, m.Type, m.KeySize, m.ValueSize, m.MaxEntries, m.Flags))
	}
	for _, name := range []string{steerVarPort, steerVarAnyAddress, steerVarMultiBuffer, steerVarMac, steerVarFirst} {
		v := spec.Variables[name]
		n.data = append(n.data, fmt.Sprintf("variable %s: %d bytes, read-only %t", name, v.Size(), v.Constant()))
	}
	return n
}

func clangVersion(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("clang", "--version").Output()
	if err != nil {
		t.Fatalf("clang --version: %v", err)
	}
	version, _, _ := strings.Cut(string(out), "\n")
	return version
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
