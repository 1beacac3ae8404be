package lease

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// documentTable returns the rows of the first table with a header line behind a heading of docs/LEASES.md.
func documentTable(t *testing.T, heading, header string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/LEASES.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if found {
		_, rest, found = strings.Cut(rest, "\n"+header+"\n")
	}
	if !found {
		t.Fatalf("no table %q under %s", header, heading)
	}
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows[1:]
}

// layout returns the offsets and names of the fields of a body.
func layout(body any) (rows []string) {
	at := 0
	v := reflect.TypeOf(body)
	for i := range v.NumField() {
		f := v.Field(i)
		n := sizeOf(f.Type)
		place := strconv.Itoa(at)
		if n > 1 {
			place = fmt.Sprintf("%d–%d", at, at+n-1)
		}
		rows = append(rows, place+" "+f.Name)
		at += n
	}
	return rows
}

// sizeOf returns the size of a type in a message, where nothing is aligned.
func sizeOf(t reflect.Type) (n int) {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() * sizeOf(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			n += sizeOf(t.Field(i).Type)
		}
		return n
	default:
		return int(t.Size())
	}
}

func TestDocumentLayouts(t *testing.T) {
	for heading, body := range map[string]any{"Header": header{}, "Lease": requestBody{}, "Granted": grantBody{},
		"Listed": heldBody{}, "Failed": failedBody{}} {
		var got []string
		for _, row := range documentTable(t, heading, "| bytes | field | meaning |") {
			got = append(got, row[0]+" "+row[1])
		}
		if diff := cmp.Diff(layout(body), got); diff != "" {
			t.Errorf("%s: code (-), document (+):\n%s", heading, diff)
		}
	}
}

func TestDocumentNames(t *testing.T) {
	kinds := map[string]string{}
	for _, row := range documentTable(t, "Header", "| kind | | body |") {
		kinds[row[1]] = row[0]
	}
	want := map[string]string{}
	for name, k := range map[string]kind{"Lease": kindLease, "Adopt": kindAdopt, "Listen": kindListen, "Unlisten": kindUnlisten,
		"Route": kindRoute, "List": kindList, "Granted": kindGranted, "Done": kindDone, "Routed": kindRouted,
		"Listed": kindListed, "Failed": kindFailed} {
		want[name] = strconv.Itoa(int(k))
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("kinds: code (-), document (+):\n%s", diff)
	}
	known := 0
	for k := range kind(1 << 10) {
		if newBody(k) != nil {
			known++
		}
	}
	if known != len(want) {
		t.Errorf("the codec knows %d kinds", known)
	}
	var texts, rows []string
	for n, err := range statuses[1:] {
		texts = append(texts, fmt.Sprintf("%d %v", n+1, err))
	}
	for _, row := range documentTable(t, "Failed", "| status | meaning |") {
		rows = append(rows, row[0]+" "+row[1])
	}
	if diff := cmp.Diff(texts, rows); diff != "" {
		t.Errorf("statuses: code (-), document (+):\n%s", diff)
	}
}

// The policy of the document can be read, with numbers in place of its names, and its words are those of the code.
func TestDocumentPolicy(t *testing.T) {
	text, err := os.ReadFile("../../docs/LEASES.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## Policy\n")
	_, rest, _ = strings.Cut(rest, "```text\n")
	block, _, _ := strings.Cut(rest, "```")
	block = strings.NewReplacer("alice", "1", "hpc", "2", "dat", "3").Replace(block)
	if p := policy(t, block); len(p.rules) != 3 {
		t.Errorf("%d rules", len(p.rules))
	}
	rows := documentTable(t, "Policy", "| word | meaning | default |")
	for i, w := range words {
		if i >= len(rows) || rows[i][0] != w.name+"=" {
			t.Errorf("the document does not have %s= in place %d", w.name, i)
		}
	}
}
