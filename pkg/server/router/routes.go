// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"
)

// Routes maps namespaces to installations. It is immutable.
type Routes struct {
	origins map[string]*url.URL // by namespace
}

// ReadRoutes reads a routes file. Errors name the file and the path of the invalid value in it.
func ReadRoutes(path string) (*Routes, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	routes, err := ParseRoutes(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return routes, nil
}

// ParseRoutes parses the text of a routes file. It contains only a mapping namespaces, from each namespace to the
// origin of its installation's API, such as https://platform-apiserver.team-a.svc. Errors name the path of a value
// but never quote the value, which may contain a credential by mistake.
func ParseRoutes(data []byte) (*Routes, error) {
	first, err := onlyDocument(data)
	if err != nil {
		return nil, err
	}
	var file map[string]map[string]string
	if err := yaml.UnmarshalStrict(first, &file); err != nil {
		return nil, fmt.Errorf("must be a mapping namespaces, from namespace to origin%s", place(err))
	}
	for key := range file {
		if key != "namespaces" {
			return nil, fmt.Errorf("%q: is not known", key)
		}
	}
	if file["namespaces"] == nil {
		return nil, errors.New("namespaces: is required; {} enables none")
	}
	routes := &Routes{origins: map[string]*url.URL{}}
	var wrong []error
	for namespace, text := range file["namespaces"] {
		origin, err := parseOrigin(text)
		if !isNamespace(namespace) {
			err = errors.New("is not the name of a namespace")
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("namespaces[%q]: %w", namespace, err))
			continue
		}
		routes.origins[namespace] = origin
	}
	if len(wrong) > 0 {
		slices.SortFunc(wrong, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
		return nil, errors.Join(wrong...)
	}
	return routes, nil
}

// place returns where in the file the YAML parser found an error, if it says so. The rest of the parser's message may
// quote values.
func place(err error) string {
	_, rest, _ := strings.Cut(err.Error(), "line ")
	number, _, _ := strings.Cut(rest, ":")
	if _, err := strconv.Atoi(number); err != nil {
		return ""
	}
	return " (line " + number + ")"
}

// onlyDocument returns the only YAML document of a file. A second one is an error, because it would be ignored
// silently.
func onlyDocument(data []byte) ([]byte, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var only []byte
	for {
		next, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return only, nil
		}
		if err != nil {
			return nil, errors.New("is not YAML")
		}
		if isComment(next) {
			continue
		}
		if only != nil {
			return nil, errors.New("must be one YAML document")
		}
		only = next
	}
}

func isComment(document []byte) bool {
	for line := range bytes.Lines(document) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// parseOrigin parses scheme://host or scheme://host:port.
func parseOrigin(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("is not a URL")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("must begin with https:// or http://")
	case u.User != nil:
		return nil, errors.New("must have no credentials")
	case u.Opaque != "" || u.Hostname() == "":
		return nil, errors.New("has no host")
	case u.Path != "" || u.RawPath != "":
		return nil, errors.New("must have no path, not even /")
	case strings.Contains(text, "?"):
		return nil, errors.New("must have no query")
	case strings.Contains(text, "#"):
		return nil, errors.New("must have no fragment")
	case strings.HasSuffix(u.Host, ":"):
		return nil, errors.New("has an empty port")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, errors.New("port must be 1–65535")
		}
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}

func isNamespace(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 }

// Len returns the number of namespaces that have a route.
func (r *Routes) Len() int { return len(r.origins) }

// origin returns the installation of a namespace.
func (r *Routes) origin(namespace string) (*url.URL, bool) {
	u, ok := r.origins[namespace]
	return u, ok
}

func (r *Routes) equal(other *Routes) bool {
	return maps.EqualFunc(r.origins, other.origins, func(a, b *url.URL) bool { return *a == *b })
}

// follow applies changes of a routes file until ctx ends. An invalid file changes nothing, but is logged and counted.
func (rt *Router) follow(ctx context.Context, path string, c clock.WithTicker, every time.Duration) {
	ticker := c.NewTicker(every)
	defer ticker.Stop()
	told := "" // the last error that was logged
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		routes, err := ReadRoutes(path)
		if err != nil {
			rt.metrics.current.Set(0)
			if err.Error() != told {
				told = err.Error()
				klog.FromContext(ctx).Error(err, "Cannot read the routes; keeping the previous ones")
			}
			continue
		}
		told = ""
		rt.metrics.current.Set(1)
		if !routes.equal(rt.routes.Load()) {
			rt.SetRoutes(routes)
			klog.FromContext(ctx).Info("The routes have changed", "namespaces", routes.Len())
		}
	}
}
