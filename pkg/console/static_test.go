// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func get(t *testing.T, h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// The files that are built in can be served: all have a known kind, and the page and the login are there.
func TestBuiltFiles(t *testing.T) {
	s, err := NewStatic()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/console/", "/console/login", "/console/login.js", "/console/tasks/default/a.js", "/console/deep/er"} {
		if got := get(t, s, path); got.Code != http.StatusOK {
			t.Errorf("%s: %d", path, got.Code)
		}
	}
	for name, f := range s.files {
		if strings.HasSuffix(name, ".html") && (bytes.Contains(f.plain, []byte("<style")) || bytes.Contains(f.plain, []byte(" style=")) || bytes.Contains(f.plain, []byte("<script>"))) {
			t.Errorf("%s has a script or a style of its own, which the policy forbids", name)
		}
	}
}

func TestStatic(t *testing.T) {
	long := strings.Repeat("words that repeat ", 100)
	s := &Static{files: map[string]*file{}}
	if err := s.add(fstest.MapFS{
		"dist/index.html": {Data: []byte("page")}, "dist/app-0A1B2C3D.js": {Data: []byte(long)}, "dist/app.js": {Data: []byte("x")},
	}, "dist"); err != nil {
		t.Fatal(err)
	}
	first := get(t, s, "/console/app-0A1B2C3D.js", "Accept-Encoding", "gzip, br")
	z, err := gzip.NewReader(first.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || string(text) != long {
		t.Errorf("compressed: %v, %d bytes", err, len(text))
	}
	if got := first.Header().Get("Cache-Control"); got != forever {
		t.Errorf("a file with a digest in its name: %q", got)
	}
	plain := get(t, s, "/console/app-0A1B2C3D.js")
	if text, err := io.ReadAll(plain.Body); err != nil || string(text) != long {
		t.Errorf("plain: %v, %d bytes", err, len(text))
	}
	if first.Header().Get("ETag") == plain.Header().Get("ETag") {
		t.Error("both forms have one ETag")
	}
	again := get(t, s, "/console/app-0A1B2C3D.js", "If-None-Match", `"x", W/`+plain.Header().Get("ETag"))
	if again.Code != http.StatusNotModified || again.Header().Get("Content-Security-Policy") != policy {
		t.Errorf("a known file: %d, %v", again.Code, again.Header())
	}
	if got := get(t, s, "/console/app.js").Header().Get("Cache-Control"); got != revalidate {
		t.Errorf("a file without a digest: %q", got)
	}
	for _, missing := range []string{"/console/other.js", "/console/app-0A1B2C3E.js", "/console/a.map"} {
		if got := get(t, s, missing); got.Code != http.StatusNotFound || got.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %q", missing, got.Code, got.Header().Get("Cache-Control"))
		}
	}
	if err := s.add(fstest.MapFS{"more/app.js": {}}, "more"); err == nil {
		t.Error("two files of one name")
	}
	if err := s.add(fstest.MapFS{"more/tool.exe": {}}, "more"); err == nil {
		t.Error("a file of an unknown kind")
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/console/", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") == "" {
		t.Errorf("POST: %d", w.Code)
	}
}

// TestScriptsAreSmall: the scripts that every page loads, which the page names, have together the size that users may expect, as browsers
// fetch them. So does each script of views that are read later.
func TestScriptsAreSmall(t *testing.T) {
	const most, mostLater = 80_000, 10_000 // bytes
	s, err := NewStatic()
	if err != nil {
		t.Fatal(err)
	}
	page := string(s.files["index.html"].plain)
	total, later := 0, 0
	for name, f := range s.files {
		switch {
		case !strings.HasSuffix(name, ".js"):
		case strings.Contains(page, "/"+name):
			total += len(f.sent())
		case strings.HasPrefix(name, "chunk-"):
			if later++; len(f.sent()) > mostLater {
				t.Errorf("%s has %d bytes, want at most %d", name, len(f.sent()), mostLater)
			}
		}
	}
	t.Logf("%d bytes, and %d scripts of views that are read later", total, later)
	if total == 0 || later == 0 || total > most {
		t.Errorf("the scripts have %d bytes, want at most %d", total, most)
	}
}

// sent returns what browsers get.
func (f *file) sent() []byte {
	if f.zipped == nil {
		return f.plain
	}
	return f.zipped
}
