// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/strvals"
)

// render returns what helm template prints: the documents of a chart with values NAME=VALUE.
func render(dir, namespace string, set []string) (string, error) {
	chart, err := loader.Load(dir)
	if err != nil {
		return "", err
	}
	values := map[string]any{}
	for _, s := range set {
		if err := strvals.ParseInto(s, values); err != nil {
			return "", fmt.Errorf("%s: %w", s, err)
		}
	}
	release := chartutil.ReleaseOptions{Name: "platform", Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, values, release, nil)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) == ".yaml" {
			text.WriteString(files[name] + "\n")
		}
	}
	return text.String(), nil
}
