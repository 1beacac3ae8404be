package report

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/datxdp/datxdp/internal/result"
)

// File is the results of one run, and their name.
type File struct {
	Name   string
	Report *result.Report
}

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is the data of the template.
type page struct {
	Title    string
	Files    []File
	Valid    string
	Series   []series
	Sections []section
	Tables   []fileTables
	Env      []envRow
}

// envRow is one fact of the environment, for each file.
type envRow struct {
	Name   string
	Values []string
}

// Write writes a page that shows some files side by side, in their order. It fails if there are no results.
func Write(w io.Writer, files []File) error {
	if len(files) == 0 {
		return errors.New("report: no files")
	}
	charts, err := sections(files)
	if err != nil {
		return err
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	p := page{Title: strings.Join(names, ", "), Files: files, Valid: validity(files), Series: all, Sections: charts, Env: environment(files)}
	for _, f := range files {
		p.Tables = append(p.Tables, tablesOf(f))
	}
	if err := pageTemplate.Execute(w, p); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// validity says how many results are valid.
func validity(files []File) string {
	rows, bad, partly := 0, 0, 0
	for _, f := range files {
		for i := range f.Report.Results {
			r := &f.Report.Results[i]
			rows++
			if !r.Valid {
				bad++
			}
			if !r.Valid && r.ValidRuns() > 0 {
				partly++
			}
		}
	}
	switch {
	case bad == 0:
		return fmt.Sprintf("All %d results are valid.", rows)
	case partly == 0:
		return fmt.Sprintf("%d of %d results not valid: grey in the tables, with the reason, and in no chart.", bad, rows)
	}
	return fmt.Sprintf("%d of %d results not valid, %d of them in some of their runs only: charts and tables show their valid runs, and say which are left out.",
		bad, rows, partly)
}

// environment returns the facts about the measured hosts. It leaves out facts that no file has.
func environment(files []File) (out []envRow) {
	for _, fact := range []struct {
		name string
		of   func(result.Env) string
	}{
		{"link", func(e result.Env) string { return e.Link }},
		{"instead of", func(e result.Env) string { return e.Fallback }},
		{"measured", func(e result.Env) string { return e.Time }},
		{"command", func(e result.Env) string { return e.Command }},
		{"version", func(e result.Env) string { return e.Version }},
		{"processor", func(e result.Env) string { return fmt.Sprintf("%d × %s", e.CPUs, e.CPU) }},
		{"system", func(e result.Env) string { return e.OS + "/" + e.Arch + ", kernel " + e.Kernel }},
		{"Go", func(e result.Env) string { return fmt.Sprintf("%s, GOMAXPROCS %d", e.Go, e.GOMAXPROCS) }},
		{"capture", func(e result.Env) string { return e.Pcap }},
		{"ended early", func(e result.Env) string { return map[bool]string{true: "yes: rows are missing"}[e.Interrupted] }},
	} {
		row := envRow{Name: fact.name}
		some := false
		for _, f := range files {
			v := fact.of(f.Report.Env)
			row.Values = append(row.Values, v)
			some = some || v != ""
		}
		if some {
			out = append(out, row)
		}
	}
	return out
}
