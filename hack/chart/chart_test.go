// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

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
		"workers.agentImages.codex=registry.example.com/codex@sha256:" + strings.Repeat("0a", 32), "apiserver.extraArgs={--event-retention=720h}", "router.routes.team-a=https://a.example.com", "store.persistence.storageClass=fast", "store.persistence.size=7Gi",
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
	for _, set := range []string{"apiserver.replica=2", "controller.watchNamespace=A B", "apiserver.extraArgs={x}", "workers.agentImages.codex=codex:1", "workers.agentImages.strange="} {
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

// TestGateways: there is a value for each flag of the programs about gateways, with the flag's default, and each reaches the programs that
// have it. Gateways on a store that ends with its Pod are refused, unless a value permits them.
func TestGateways(t *testing.T) {
	values, err := documents(filepath.Join(manifests, "chart", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defaults := at(values[0], "controller", "gateway").(object)
	if defaults[allowEphemeralStore] != false || defaults[crdsReadyOverride] != false {
		t.Errorf("%s or %s is not false", allowEphemeralStore, crdsReadyOverride)
	}
	delete(defaults, allowEphemeralStore)
	delete(defaults, crdsReadyOverride)
	// Other values of a type than the default. The number would be written as 1e+06 if it were printed as Helm has it.
	others := func(v any) (set, want string) {
		switch v.(type) {
		case bool:
			return "false", "false"
		case float64:
			return "100", "100"
		case []any:
			return "{chat.svc:8443}", "chat.svc:8443"
		}
		return "2m", "2m"
	}
	set, want := []string{"controller.gateway.crdsReadyOverride=true"}, map[string]string{}
	for key, v := range defaults {
		to, arg := others(v)
		if v == 100.0 {
			to, arg = "1000000", "1000000"
		}
		set, want[key] = append(set, "controller.gateway."+key+"="+to), arg
	}
	got := named(t, decoded(t, system, set...))
	for workload, program := range map[string]string{"StatefulSet platform-system platform-apiserver": "platform-apiserver", "Deployment platform-system platform-controller": "platform-controller"} {
		flags := flagsOf(t, program)
		args := fmt.Sprint(at(asList(at(got[workload], "spec", "template", "spec", "containers"))[0], "args"))
		for key := range defaults {
			flag := gatewayFlag(key)
			if there := strings.Contains(args, flag+"="+want[key]); there != (flags[flag] != nil) {
				t.Errorf("%s gets %s=%s: %t, and has the flag: %t", program, flag, want[key], there, flags[flag] != nil)
			}
			if of := flags[flag]; of != nil && !same(*of, defaults[key]) {
				t.Errorf("%s of %s is %q by default, and the value of the chart is %v", flag, program, *of, defaults[key])
			}
			delete(flags, flag)
		}
		for flag := range flags {
			t.Errorf("%s of %s has no value in the chart", flag, program)
		}
	}
	const ephemeral = "store.persistence.enabled=false"
	if _, err := render(filepath.Join(manifests, "chart"), system, []string{ephemeral}); err == nil || !strings.Contains(err.Error(), "controller.gateway."+allowEphemeralStore) {
		t.Errorf("gateways on a store that ends with its Pod: %v", err)
	}
	for _, allow := range []string{"controller.gateway." + allowEphemeralStore + "=true", "controller.gateway.enabled=false"} {
		got := named(t, decoded(t, system, ephemeral, allow))
		if got["PersistentVolumeClaim "+system+" data-platform-apiserver-0"] != nil {
			t.Errorf("%s: there is a claim that nobody mounts", allow)
		}
		volume := asList(at(got["StatefulSet "+system+" platform-apiserver"], "spec", "template", "spec", "volumes"))[0]
		if !reflect.DeepEqual(volume, object{"name": "data", "emptyDir": object{}}) {
			t.Errorf("%s: the volume is %v", allow, volume)
		}
		if _, err := render(filepath.Join(manifests, "chart"), system, []string{ephemeral, allow, "apiserver.replicas=2"}); err == nil {
			t.Errorf("%s: two servers with a store each are accepted", allow)
		}
	}
	for _, set := range []string{"gateway.batchSize=101", "gateway.batchSize=0", "gateway.eventExpiry=1d", "gateway.allow={https://chat.svc}", "gateway.strange=1"} {
		if _, err := render(filepath.Join(manifests, "chart"), system, []string{"controller." + set}); err == nil {
			t.Errorf("%s is accepted", set)
		}
	}
}

// flagsOf returns the flags of a program about gateways with their defaults, which the reference lists.
func flagsOf(t *testing.T, program string) map[string]*string {
	t.Helper()
	reference, err := os.ReadFile("../../artifacts/reference/flags.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(reference), "\n## "+program+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	flags := map[string]*string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(--gateway-[a-z-]+)` \\| \\w+ \\| (?:`([^`]*)`)? ?\\|").FindAllStringSubmatch(section, -1) {
		flags[row[1]] = &row[2]
	}
	if len(flags) == 0 {
		t.Fatalf("the reference has no flags of %s about gateways", program)
	}
	return flags
}

// same reports whether the default of a flag is the value of the chart.
func same(flag string, v any) bool {
	if list, ok := v.([]any); ok {
		return flag == "" && len(list) == 0
	}
	if d, err := time.ParseDuration(fmt.Sprint(v)); err == nil {
		return flag == d.String()
	}
	return flag == fmt.Sprint(v)
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
