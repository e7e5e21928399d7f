// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// system is the namespace of the installation in the Kustomize base.
const system = "platform-system"

// object is one object as decoded YAML.
type object = map[string]any

// build returns the objects of a kustomization.
func build(dir string) ([]object, error) {
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, err
	}
	var objects []object
	for _, r := range all.Resources() {
		o, err := r.Map()
		if err != nil {
			return nil, err
		}
		text, err := yaml.Marshal(o)
		if err != nil {
			return nil, err
		}
		if o, err = decode(text); err != nil { // one type for each kind of value
			return nil, err
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// documents returns the objects of a file.
func documents(path string) ([]object, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var objects []object
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		o, err := decode([]byte(document))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		objects = append(objects, o)
	}
	return objects, nil
}

func decode(text []byte) (o object, err error) {
	if err := yaml.Unmarshal(text, &o); err != nil {
		return nil, err
	}
	if strings.Contains(string(text), "{{") {
		return nil, fmt.Errorf("%s %s has braces, which Helm would take for its own", kindOf(o), nameOf(o))
	}
	return o, nil
}

func kindOf(o object) string { return text(o, "kind") }

// nameOf returns the name, without the digest that Kustomize adds to the ConfigMap of the router.
func nameOf(o object) string {
	name := text(o, "metadata", "name")
	if kindOf(o) == "ConfigMap" && strings.HasPrefix(name, "platform-router-") {
		return "platform-router"
	}
	return name
}

// at returns a member of a member of an object; nil if there is none.
func at(o any, path ...string) any {
	for _, name := range path {
		m, ok := o.(object)
		if !ok {
			return nil
		}
		o = m[name]
	}
	return o
}

func text(o any, path ...string) string {
	s, _ := at(o, path...).(string)
	return s
}

// isMonitoring reports whether an object is none of the base, but for Prometheus.
func isMonitoring(o object) bool {
	switch kindOf(o) {
	case "ServiceMonitor", "PrometheusRule":
		return true
	case "Service":
		return strings.HasSuffix(nameOf(o), "-metrics")
	case "NetworkPolicy":
		return nameOf(o) == "metrics"
	case "ClusterRole":
		return nameOf(o) == "platform-metrics-reader"
	}
	return false
}

// fileOf returns the template that an object belongs to.
func fileOf(o object) string {
	if isMonitoring(o) {
		return "monitoring.yaml"
	}
	switch kindOf(o) {
	case "Namespace", "PriorityClass", "APIService":
		return "cluster.yaml"
	case "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
		return "rbac.yaml"
	case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return "policies.yaml"
	case "NetworkPolicy":
		return "networkpolicies.yaml"
	}
	for _, program := range []string{"controller", "router"} {
		if nameOf(o) == "platform-"+program {
			return program + ".yaml"
		}
	}
	return "apiserver.yaml"
}
