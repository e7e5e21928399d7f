// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// write runs the tool on a program, a directory and a link.
func write(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	for file, mode := range map[string]os.FileMode{"tool": 0o755, "share/a": 0o644, "share/sub/b": 0o600} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(file), mode); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "image.tar")
	err := run([]string{
		"-name", name, "-o", out, "-user", "1000:1000", "-entrypoint", "/tool", "-cmd", "serve", "-label", "a=b", "-certificates", "",
		filepath.Join(dir, "tool") + "=/tool", filepath.Join(dir, "share") + "=/usr/share", "@tool=/again",
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestImage(t *testing.T) {
	image := open(t, write(t, "example.com/tool:dev"))
	if err := validate.Image(image); err != nil {
		t.Error(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config := file.Config
	if config.User != "1000:1000" || !slices.Equal(config.Entrypoint, []string{"/tool"}) || !slices.Equal(config.Cmd, []string{"serve"}) || config.Labels["a"] != "b" {
		t.Errorf("config is %+v", config)
	}
	got := contents(t, image)
	for path, want := range map[string]tar.Header{
		"tmp/":            {Typeflag: tar.TypeDir, Mode: 0o1777},
		"tool":            {Typeflag: tar.TypeReg, Mode: 0o755, Size: 4},
		"again":           {Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: "tool"},
		"usr/share/a":     {Typeflag: tar.TypeReg, Mode: 0o644, Size: 7},
		"usr/share/sub/":  {Typeflag: tar.TypeDir, Mode: 0o755},
		"usr/share/sub/b": {Typeflag: tar.TypeReg, Mode: 0o644, Size: 11},
	} {
		h, ok := got[path]
		if !ok || h.Typeflag != want.Typeflag || h.Mode != want.Mode || h.Size != want.Size || h.Linkname != want.Linkname || h.Uid != 0 {
			t.Errorf("%s is %+v", path, h)
		}
	}
}

// The same input, at another time and in another directory, gives the same
// bytes.
func TestReproducible(t *testing.T) {
	first, err := os.ReadFile(write(t, "example.com/tool:dev"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(write(t, "example.com/tool:dev"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("two images of the same files differ")
	}
}

// open unpacks a tarball and returns the only image in it.
func open(t *testing.T, tarball string) v1.Image {
	t.Helper()
	f, err := os.Open(tarball)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := t.TempDir()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["io.containerd.image.name"] != "example.com/tool:dev" {
		t.Fatalf("the index is %+v", manifest)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// contents returns the headers of the files in an image's only layer, by path.
func contents(t *testing.T, image v1.Image) map[string]*tar.Header {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers: %v", len(layers), err)
	}
	data, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	headers := map[string]*tar.Header{}
	for r := tar.NewReader(data); ; {
		h, err := r.Next()
		if err == io.EOF {
			return headers
		}
		if err != nil {
			t.Fatal(err)
		}
		headers[h.Name] = h
	}
}
