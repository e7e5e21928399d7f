// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command images writes one image, built only from the given files, as a
// tarball in the OCI layout. It needs no container engine, and the same input
// produces the same bytes.
//
//	images -name platform.ai/x:dev -o x.tar -entrypoint /x FILE=/x ...
//
// FILE=/PATH puts a file, or a directory with all its content, at PATH;
// @TARGET=/PATH makes a symbolic link.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

type options struct {
	name, out, user string
	entrypoint, cmd []string
	labels          map[string]string
	certificates    string
	created         time.Time // of the image and of every file in it
	files           []string
}

// run writes the image and reports on w what it wrote.
func run(args []string, w io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	layer, err := newLayer(o)
	if err != nil {
		return err
	}
	image, err := build(o, layer)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder left in the system's place for such
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	names := map[string]string{"io.containerd.image.name": o.name, "org.opencontainers.image.ref.name": o.name}
	if err := path.AppendImage(image, layout.WithAnnotations(names)); err != nil {
		return err
	}
	size, err := pack(dir, o.out, o.created)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%-38s %6.1f MiB  %s\n", o.name, float64(size)/(1<<20), o.out)
	return err
}

func parse(args []string) (options, error) {
	o := options{created: time.Unix(0, 0).UTC(), labels: map[string]string{}}
	f := flag.NewFlagSet("images", flag.ContinueOnError)
	f.StringVar(&o.name, "name", "", "full name of the image, with its tag")
	f.StringVar(&o.out, "o", "", "tarball to write")
	f.StringVar(&o.user, "user", "65532:65532", "user and group of the image's process")
	f.StringVar(&o.certificates, "certificates", "/etc/ssl/certs/ca-certificates.crt", "file of public certificate authorities to include where it exists")
	f.Func("entrypoint", "a word of the entry point; repeat for more", func(s string) error {
		o.entrypoint = append(o.entrypoint, s)
		return nil
	})
	f.Func("cmd", "a word of the default arguments; repeat for more", func(s string) error {
		o.cmd = append(o.cmd, s)
		return nil
	})
	f.Func("label", "KEY=VALUE of a label; repeat for more", func(s string) error {
		k, v, ok := strings.Cut(s, "=")
		if !ok {
			return errors.New("want KEY=VALUE")
		}
		o.labels[k] = v
		return nil
	})
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.name == "" || o.out == "" || len(o.entrypoint) == 0 {
		return o, errors.New("-name, -o and -entrypoint are needed")
	}
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		s, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return o, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}
		o.created = time.Unix(s, 0).UTC()
	}
	o.files = slices.Clone(f.Args())
	return o, nil
}

func build(o options, layer v1.Layer) (v1.Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", runtime.GOARCH
	if arch := os.Getenv("GOARCH"); arch != "" {
		file.Architecture = arch
	}
	file.Created = v1.Time{Time: o.created}
	for i := range file.History {
		file.History[i].Created = file.Created
	}
	file.Config = v1.Config{
		User: o.user, Entrypoint: o.entrypoint, Cmd: o.cmd, WorkingDir: "/",
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin:/"}, Labels: o.labels,
	}
	return mutate.ConfigFile(image, file)
}
