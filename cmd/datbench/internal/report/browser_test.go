package report

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// own matches the hosts that the browser contacts for its own purposes.
var own = regexp.MustCompile(`(^|\.)(google|googleapis|gvt1|chromium)\.(com|org)(:\d+)?$`)

// browser opens a page in chromium and returns its standard output. asked lists the requests that the browser sent to
// the network; they go to a proxy that records them.
func browser(t *testing.T, page string, args ...string) (stdout string, asked []string) {
	t.Helper()
	exe, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium: the page is not opened in a browser (make deps installs it)")
	}
	var lock sync.Mutex
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		if !own.MatchString(r.Host) {
			asked = append(asked, r.Method+" "+r.Host+r.URL.Path)
		}
		lock.Unlock()
		http.Error(w, "none of that here", http.StatusForbidden)
	}))
	defer proxy.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars",
		"--user-data-dir=" + t.TempDir(), "--proxy-server=" + proxy.URL, "--proxy-bypass-list=<-loopback>"}, append(args, "file://"+page)...)...)
	cmd.Dir = t.TempDir()
	cmd.WaitDelay = time.Second // the browser's child processes keep the pipe open
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("chromium: %v\n%s", err, &complaints)
	}
	lock.Lock()
	defer lock.Unlock()
	return string(out), asked
}

// save writes a page to a file that a browser can open.
func save(t *testing.T, html string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(html), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestBrowserDOM: a browser shows everything on the page and sends no request to the network.
func TestBrowserDOM(t *testing.T) {
	html := pageOf(t, read(t, "full", "sizes"))
	dom, asked := browser(t, save(t, html), "--dump-dom")
	if len(asked) > 0 {
		t.Errorf("it asked for %v", asked)
	}
	if got, want := charts(dom), charts(html); got != want {
		t.Errorf("got %d charts, want %d", got, want)
	}
	if got, want := strings.Count(dom, "</tr>"), strings.Count(html, "</tr>"); got != want {
		t.Errorf("got %d rows, want %d", got, want)
	}
	if !strings.Contains(dom, "</footer>") {
		t.Error("the page has no end")
	}
	// Check that the proxy would see a request.
	if _, asked := browser(t, save(t, `<img src="http://elsewhere.invalid/x.png">`), "--dump-dom"); len(asked) != 1 {
		t.Errorf("of a page that asks for one thing, it asked for %v", asked)
	}
}

// TestBrowserPicture checks the colours in a screenshot: those of every series, of the text and of the background. In
// dark style the page must be dark.
func TestBrowserPicture(t *testing.T) {
	file := save(t, pageOf(t, read(t, "full")))
	shot := filepath.Join(t.TempDir(), "shot.png")
	light := []color.RGBA{{0x47, 0x55, 0x69, 255}, {0x9a, 0xa7, 0xb8, 255}, {0x25, 0x63, 0xeb, 255}, {0xd9, 0x77, 0x06, 255},
		{0x05, 0x96, 0x69, 255}, {0xb8, 0x32, 0xa8, 255}, {0xf6, 0xf7, 0xf9, 255}, {0xff, 0xff, 0xff, 255}}
	browser(t, file, "--window-size=1240,1500", "--screenshot="+shot)
	seen := coloursOf(t, shot)
	for _, c := range light {
		if seen[c] < 200 {
			t.Errorf("light: %d points of colour %v", seen[c], c)
		}
	}
	browser(t, file, "--window-size=1240,1500", "--screenshot="+shot, "--blink-settings=preferredColorScheme=0")
	if seen := coloursOf(t, shot); seen[color.RGBA{0x11, 0x15, 0x1b, 255}] < 100_000 || seen[color.RGBA{0x6e, 0xa8, 0xff, 255}] < 200 {
		t.Error("dark: it is not")
	}
}

// TestBrowserNarrow: on a telephone only tables may be wider than the screen. The right edge of the screenshot must
// therefore have the colour of the page's background.
func TestBrowserNarrow(t *testing.T) {
	shot := filepath.Join(t.TempDir(), "shot.png")
	browser(t, save(t, pageOf(t, read(t, "full"))), "--window-size=500,2400", "--screenshot="+shot)
	img := decode(t, shot)
	for y := range img.Bounds().Dy() {
		if r, g, b, _ := img.At(img.Bounds().Dx()-4, y).RGBA(); r>>8 != 0xf6 || g>>8 != 0xf7 || b>>8 != 0xf9 {
			t.Fatalf("something is at the right edge, at %d", y)
		}
	}
}

func decode(t *testing.T, file string) image.Image {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // opened only for reading
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// coloursOf counts the pixels of a picture by colour.
func coloursOf(t *testing.T, file string) map[color.RGBA]int {
	t.Helper()
	img, seen := decode(t, file), map[color.RGBA]int{}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			seen[color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)]++
		}
	}
	return seen
}
