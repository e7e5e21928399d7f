// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const manifests = "../../manifests"

// TestCurrent: the templates are those that the Kustomize base gives.
func TestCurrent(t *testing.T) {
	want, err := templates(manifests)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(manifests, "chart", "templates", name))
		if err != nil || string(got) != text {
			t.Errorf("%s is not current (%v): run make generate", name, err)
		}
	}
}

// TestSameAsKustomize: with the values that say the same, the chart installs what an overlay installs.
func TestSameAsKustomize(t *testing.T) {
	for dir, set := range map[string][]string{
		manifests + "/overlays/multi-namespace":  {"namespaces.create=true"},
		manifests + "/overlays/single-namespace": {"namespaces.create=true", "controller.watchNamespace=platform-tasks"},
		"testdata/monitored":                     {"namespaces.create=true", "metrics.enabled=true", "metrics.serviceMonitors=true"},
	} {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			objects, err := build(dir)
			if err != nil {
				t.Fatal(err)
			}
			want, got := named(t, objects), named(t, decoded(t, system, set...))
			for key, o := range want {
				if !reflect.DeepEqual(got[key], o) {
					t.Errorf("%s: the chart has\n%s\nwant\n%s", key, shown(t, got[key]), shown(t, o))
				}
			}
			for key := range got {
				if want[key] == nil {
					t.Errorf("the chart has %s, and the overlay does not", key)
				}
			}
		})
	}
}

// TestValues: each value reaches its place, and unknown ones are refused.
func TestValues(t *testing.T) {
	text, err := render(filepath.Join(manifests, "chart"), "elsewhere", []string{
		"apiserver.image.tag=v9", "controller.image.pullPolicy=Always", "workers.image.repository=registry.example.com/worker", "workers.runsImage=runs:1",
		"workers.agentImages.codex=registry.example.com/codex@sha256:"+strings.Repeat("0a", 32), "apiserver.extraArgs={--event-retention=720h}", "router.routes.team-a=https://a.example.com", "store.persistence.storageClass=fast", "store.persistence.size=7Gi",
		"nodeSelector.disk=ssd", "imagePullSecrets[0].name=pull", "podAnnotations.note=x", "controller.resources.limits.memory=1Gi", "tolerations[0].key=only",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"image: platform.ai/platform-apiserver:v9", "imagePullPolicy: Always", "value: registry.example.com/worker:dev", "value: runs:1",
		"- name: PLATFORM_ACP_CODEX_RUNTIME_IMAGE\n          value: \"registry.example.com/codex@sha256:" + strings.Repeat("0a", 32) + "\"\n", `- "--event-retention=720h"`,
		"team-a: https://a.example.com", "storageClassName: fast", "storage: 7Gi", "disk: ssd", "- name: pull", "note: x", `"memory":"1Gi"`, "- key: only", "namespace: elsewhere",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the chart lacks %q", want)
		}
	}
	if strings.Contains(text, "PLATFORM_ACP_CLAUDE") {
		t.Error("the chart names an image of coding agents that no value names")
	}
	if strings.Contains(text, system) {
		t.Errorf("the chart names %s for a release in another namespace", system)
	}
	for _, set := range []string{"apiserver.replica=2", "controller.watchNamespace=A B", "apiserver.extraArgs={x}", "store.persistence.enabled=false", "workers.agentImages.codex=codex:1", "workers.agentImages.strange="} {
		if _, err := render(filepath.Join(manifests, "chart"), system, []string{set}); err == nil {
			t.Errorf("%s is accepted", set)
		}
	}
	if n := strings.Count(text, keepAnnotation); n != 1 { // the volume; there are no namespaces
		t.Errorf("%d objects stay after helm uninstall, want 1", n)
	}
	rules := named(t, decoded(t, system, "metrics.alerts=true"))["PrometheusRule "+system+" platform"]
	want, err := documents(filepath.Join(manifests, "monitoring", "alerts.yaml"))
	if err != nil || len(want) != 1 || !reflect.DeepEqual(rules, want[0]) {
		t.Errorf("%v: the chart's alerts are\n%s", err, shown(t, rules))
	}
	off := named(t, decoded(t, system, "router.enabled=false", "networkPolicies.enabled=false", "metrics.enabled=true", "metrics.serviceMonitors=true"))
	for key := range off {
		if strings.Contains(key, "router") || strings.HasPrefix(key, "NetworkPolicy") {
			t.Errorf("%s is installed although it is switched off", key)
		}
	}
}

func decoded(t *testing.T, namespace string, set ...string) []object {
	t.Helper()
	text, err := render(filepath.Join(manifests, "chart"), namespace, set)
	if err != nil {
		t.Fatal(err)
	}
	var objects []object
	for _, document := range strings.Split(text, "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if len(o) > 0 {
			objects = append(objects, o)
		}
	}
	return objects
}

// named returns objects by kind, namespace and name. The ConfigMap of the router has a digest in its name with Kustomize,
// and Pods of the router have one in an annotation with Helm, for the same purpose; both are left out, and so are comments of
// the routes.
func named(t *testing.T, objects []object) map[string]object {
	t.Helper()
	all := map[string]object{}
	for _, o := range objects {
		if routes := text(o, "data", "routes.yaml"); routes != "" {
			var data object
			if err := yaml.Unmarshal([]byte(routes), &data); err != nil {
				t.Fatal(err)
			}
			o["data"] = data
		}
		meta := o["metadata"].(object)
		meta["name"] = nameOf(o)
		if a, ok := meta["annotations"].(object); ok && a[keepAnnotation] != nil {
			if delete(a, keepAnnotation); len(a) == 0 {
				delete(meta, "annotations")
			}
		}
		if pod, ok := at(o, "spec", "template").(object); ok {
			for _, v := range asList(at(pod, "spec", "volumes")) {
				if m, ok := at(v, "configMap").(object); ok && strings.HasPrefix(text(m, "name"), "platform-router-") {
					m["name"] = "platform-router"
				}
			}
			if a, ok := at(pod, "metadata", "annotations").(object); ok {
				delete(a, "platform.ai/routes")
				if len(a) == 0 {
					delete(pod["metadata"].(object), "annotations")
				}
			}
		}
		key := strings.Join([]string{kindOf(o), text(o, "metadata", "namespace"), nameOf(o)}, " ")
		if all[key] != nil {
			t.Errorf("%s occurs twice", key)
		}
		all[key] = maps.Clone(o)
	}
	return all
}

func shown(t *testing.T, o object) string {
	t.Helper()
	b, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
