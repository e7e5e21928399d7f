// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
)

const (
	// revalidate makes a browser ask whether a file has changed, which its ETag answers.
	revalidate = "no-cache"
	// forever is for files whose name contains a digest of what is in them.
	forever = "public, max-age=31536000, immutable"
	// leastCompressed is the size in bytes from which files are compressed.
	leastCompressed = 512
)

// hashed matches the names that the build gives to files: NAME-DIGEST.EXTENSION.
var hashed = regexp.MustCompile(`-[0-9A-Z]{8}\.[a-z0-9]+$`)

// file is a file as it is sent.
type file struct {
	kind, etag, cache string
	plain, zipped     []byte // zipped is nil if it would not be smaller
}

// Static serves the files of the page and of the login.
type Static struct {
	files map[string]*file // by the path below Path
}

// NewStatic reads and compresses the files.
func NewStatic() (*Static, error) {
	s := &Static{files: map[string]*file{}}
	if err := s.add(Files, "dist"); err != nil {
		return nil, err
	}
	if err := s.add(login, "login"); err != nil {
		return nil, err
	}
	return s, nil
}

// add adds a folder. The files of the login are named LOGIN.*; those of the page may not have such a name.
func (s *Static) add(from fs.FS, dir string) error {
	return fs.WalkDir(from, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		key := strings.TrimPrefix(name, dir+"/")
		if s.files[key] != nil {
			return fmt.Errorf("%s is both in the page and in %s", key, dir)
		}
		s.files[key], err = newFile(key, data)
		return err
	})
}

func newFile(name string, data []byte) (*file, error) {
	f := &file{kind: kindOf(name), cache: revalidate, plain: data}
	if f.kind == "" {
		return nil, fmt.Errorf("%s: files of this kind are not served", name)
	}
	sum := sha256.Sum256(data)
	f.etag = base64.RawURLEncoding.EncodeToString(sum[:12])
	if hashed.MatchString(name) {
		f.cache = forever
	}
	if len(data) < leastCompressed {
		return f, nil
	}
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	if out.Len() < len(data) {
		f.zipped = out.Bytes()
	}
	return f, nil
}

// kindOf returns the media type of a file. The system's own table is not used, because it differs among machines.
func kindOf(name string) string {
	return map[string]string{
		".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
		".svg": "image/svg+xml", ".png": "image/png", ".txt": "text/plain; charset=utf-8", ".json": "application/json", ".map": "application/json",
		".woff2": "font/woff2",
	}[path.Ext(name)]
}

// errNoFile is the error for a path that is neither a file nor a view of the page.
var errNoFile = errors.New("the console has no such file")

// find returns the file for a path. Every path that cannot be a file is a view, for which the page itself is sent. A view
// may show an object whose name ends like a file's, so only names without a folder are missed.
func (s *Static) find(name string) (*file, error) {
	name = strings.TrimPrefix(name, Path)
	if name == "login" {
		name = "login.html"
	}
	if f := s.files[name]; f != nil {
		return f, nil
	}
	if !strings.Contains(name, "/") && kindOf(name) != "" {
		return nil, errNoFile
	}
	return s.files["index.html"], nil
}

// ServeHTTP sends a file.
func (s *Static) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	Protect(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the console's files can only be read: use GET", http.StatusMethodNotAllowed)
		return
	}
	f, err := s.find(r.URL.Path)
	if err != nil {
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	f.serve(w, r)
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", f.cache)
	h.Set("Vary", "Accept-Encoding")
	data, etag := f.plain, `"`+f.etag+`"`
	if f.zipped != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		data, etag = f.zipped, `"`+f.etag+`-gzip"`
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("ETag", etag)
	for known := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if strings.TrimPrefix(strings.TrimSpace(known), "W/") == etag {
			h.Del("Content-Encoding")
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = w.Write(data)
	}
}
