package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// surface lists the exported names of some packages of the module in dir, one line per name, sorted. It fails if an
// exported declaration uses a type of another package of the module.
func surface(dir string, packages []string) ([]string, error) {
	module, err := goList(dir, "-m", "-f", "{{.Path}}")
	if err != nil {
		return nil, err
	}
	l := lister{module: strings.TrimSpace(module), public: packages}
	args := []string{"-export", "-deps", "-f", "{{if .Export}}{{.ImportPath}}={{.Export}}{{end}}"}
	for _, p := range packages {
		args = append(args, "./"+p)
	}
	compiled, err := goList(dir, args...)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for line := range strings.Lines(compiled) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		files[path] = file
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	for _, p := range packages {
		pkg, err := imports.Import(l.module + "/" + p)
		if err != nil {
			return nil, err
		}
		l.list(p, pkg)
	}
	slices.Sort(l.lines)
	return slices.Compact(l.lines), errors.Join(l.faults...)
}

// goList runs go list for Linux, which has every package.
func goList(dir string, args ...string) (string, error) {
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	var said bytes.Buffer
	cmd.Dir, cmd.Stderr, cmd.Env = dir, &said, append(os.Environ(), "GOOS=linux")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w: %s", err, said.String())
	}
	return string(out), nil
}

// lister lists the packages one after the other.
type lister struct {
	module string
	public []string
	pkg    *types.Package
	lines  []string
	faults []error
}

func (l *lister) list(name string, pkg *types.Package) {
	l.pkg = pkg
	for _, n := range pkg.Scope().Names() {
		object := pkg.Scope().Lookup(n)
		if !object.Exported() {
			continue
		}
		add := func(format string, args ...any) {
			l.lines = append(l.lines, "pkg "+name+", "+fmt.Sprintf(format, args...))
		}
		switch o := object.(type) {
		case *types.Const:
			add("const %s %s = %s", n, l.text(o.Type()), o.Val().ExactString())
		case *types.Var:
			add("var %s %s", n, l.text(o.Type()))
		case *types.Func:
			add("func %s%s", n, l.signature(o))
		case *types.TypeName:
			l.typeName(o, add)
		}
	}
}

// typeName lists a type with its fields and methods.
func (l *lister) typeName(o *types.TypeName, add func(string, ...any)) {
	if o.IsAlias() {
		add("type %s = %s", o.Name(), l.text(types.Unalias(o.Type())))
		return
	}
	switch t := o.Type().Underlying().(type) {
	case *types.Struct:
		add("type %s struct", o.Name())
		for f := range t.Fields() {
			if f.Exported() {
				add("type %s struct, %s %s", o.Name(), f.Name(), l.text(f.Type()))
			}
		}
	case *types.Interface:
		l.interfaceType(o.Name(), t, add)
		return
	default:
		add("type %s %s", o.Name(), l.text(t))
	}
	values := types.NewMethodSet(o.Type())
	for m := range types.NewMethodSet(types.NewPointer(o.Type())).Methods() {
		if f := m.Obj(); f.Exported() {
			star := "*"
			if values.Lookup(f.Pkg(), f.Name()) != nil {
				star = ""
			}
			add("method (%s%s) %s%s", star, o.Name(), f.Name(), l.signature(f.(*types.Func)))
		}
	}
}

// interfaceType lists all method names in one line, because an additional method breaks types that implement the
// interface.
func (l *lister) interfaceType(name string, t *types.Interface, add func(string, ...any)) {
	var names []string
	for m := range t.Methods() {
		names = append(names, m.Name())
		add("type %s interface, %s%s", name, m.Name(), l.signature(m))
	}
	add("type %s interface { %s }", name, strings.Join(names, ", "))
}

// signature returns the parameters and results of a function without their names, which callers do not use.
func (l *lister) signature(f *types.Func) string {
	s := f.Signature()
	nameless := func(t *types.Tuple) *types.Tuple {
		var all []*types.Var
		for v := range t.Variables() {
			all = append(all, types.NewParam(token.NoPos, nil, "", v.Type()))
		}
		return types.NewTuple(all...)
	}
	plain := types.NewSignatureType(nil, nil, nil, nameless(s.Params()), nameless(s.Results()), s.Variadic())
	return strings.TrimPrefix(l.text(plain), "func")
}

// text returns a type in the form that a user of the package writes.
func (l *lister) text(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		short, ours := strings.CutPrefix(p.Path(), l.module+"/")
		switch {
		case p.Path() == l.pkg.Path():
			return ""
		case ours && !slices.Contains(l.public, short):
			l.faults = append(l.faults, fmt.Errorf("%s shows a type of %s, which is not public: %v", l.pkg.Path(), short, t))
		}
		return short
	})
}
