// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// value marks a string that is replaced by template text. Marks are in hexadecimal digits, which YAML leaves alone.
func value(text string) string { return "VALUE" + hex.EncodeToString([]byte(text)) + "END" }

// block marks an item of a list that is replaced by lines of a template with the indent of the item. In these lines, @N is
// that indent plus N.
func block(text string) string { return "BLOCK" + hex.EncodeToString([]byte(text)) }

// blockKey is the member of an object that holds a block. It sorts after all others.
const blockKey = "zz-block"

var (
	valueMark = regexp.MustCompile(`VALUE([0-9a-f]+)END`)
	blockMark = regexp.MustCompile(`(?m)^( *)(?:- |` + blockKey + `: )BLOCK([0-9a-f]+)$`)
	indent    = regexp.MustCompile(`@[0-9]`)
)

// unmark puts the template text in the place of its marks.
func unmark(text string) (string, error) {
	var failed error
	decode := func(digits string) string {
		b, err := hex.DecodeString(digits)
		failed = errors.Join(failed, err)
		return string(b)
	}
	text = valueMark.ReplaceAllStringFunc(text, func(m string) string { return decode(valueMark.FindStringSubmatch(m)[1]) })
	text = blockMark.ReplaceAllStringFunc(text, func(m string) string {
		found := blockMark.FindStringSubmatch(m)
		space := found[1]
		body := indent.ReplaceAllStringFunc(decode(found[2]), func(m string) string { return strconv.Itoa(len(space) + int(m[1]-'0')) })
		return space + strings.ReplaceAll(body, "\n", "\n"+space)
	})
	if strings.Contains(text, "BLOCK") {
		failed = errors.Join(failed, errors.New("a block is not on a line of its own"))
	}
	return text, failed
}

// runsRoles are the roles and bindings that hold in the only namespace of tasks, if there is one.
var runsRoles = []string{"platform-controller", "platform-apiserver-workers", "platform-apiserver-models"}

const (
	only       = ".Values.controller.watchNamespace"
	persistent = ".Values.store.persistence.enabled"
)

// template returns an object as a document of a template. gateways are the default values of controller.gateway.
func template(o object, gateways object) (string, error) {
	name, condition := nameOf(o), ""
	switch kind := kindOf(o); kind {
	case "Namespace":
		condition = ".Values.namespaces.create"
		keep(o)
	case "NetworkPolicy":
		condition = ".Values.networkPolicies.enabled"
		if name == "platform-router" {
			condition = "and " + condition + " .Values.router.enabled"
		}
	case "ClusterRole", "ClusterRoleBinding":
		if slices.Contains(runsRoles, name) {
			inOnlyNamespace(o, kind)
		}
	case "PersistentVolumeClaim":
		condition = persistent
		claim(o["spec"].(object))
		keep(o)
	case "ConfigMap":
		if name == "platform-router" {
			o["metadata"].(object)["name"] = name
			o["data"] = object{"routes.yaml": value(`{{ include "platform.routes" . | quote }}`)}
		}
	case "Deployment", "StatefulSet":
		if err := workload(o, strings.TrimPrefix(name, "platform-"), gateways); err != nil {
			return "", err
		}
	}
	if condition == "" && name == "platform-router" {
		condition = ".Values.router.enabled"
	}
	if isMonitoring(o) {
		condition = monitoring(o)
	}
	replace(o)
	text, err := yaml.Marshal(o)
	if err != nil {
		return "", err
	}
	document, err := unmark(string(text))
	if err != nil {
		return "", err
	}
	document = "---\n" + document
	if condition != "" {
		document = "{{- if " + condition + " }}\n" + document + "{{- end }}\n"
	}
	return document, nil
}

// monitoring returns the condition of an object for Prometheus.
func monitoring(o object) string {
	condition := ".Values.metrics.enabled"
	switch kindOf(o) {
	case "PrometheusRule":
		return ".Values.metrics.alerts"
	case "ServiceMonitor":
		condition = "and " + condition + " .Values.metrics.serviceMonitors"
	case "NetworkPolicy":
		condition = "and " + condition + " .Values.networkPolicies.enabled"
	case "Service":
		if nameOf(o) == "platform-router-metrics" {
			condition = "and " + condition + " .Values.router.enabled"
		}
	}
	return condition
}

// replace sets the namespace of the release everywhere.
func replace(v any) {
	switch v := v.(type) {
	case object:
		for key, member := range v {
			v[key] = inRelease(member)
			replace(member)
		}
	case []any:
		for i, item := range v {
			v[i] = inRelease(item)
			replace(item)
		}
	}
}

// inRelease returns a text with the namespace of the release; anything else as it is.
func inRelease(v any) any {
	if s, ok := v.(string); ok {
		return strings.ReplaceAll(s, system, value("{{ .Release.Namespace }}"))
	}
	return v
}

// keep makes helm uninstall leave an object, since what it holds cannot be made again.
func keep(o object) {
	meta := o["metadata"].(object)
	if meta["annotations"] == nil {
		meta["annotations"] = object{}
	}
	meta["annotations"].(object)[keepAnnotation] = "keep"
}

// keepAnnotation is read by Helm.
const keepAnnotation = "helm.sh/resource-policy"

// inOnlyNamespace makes a role or a binding one of the only namespace of tasks, if there is one.
func inOnlyNamespace(o object, kind string) {
	o["kind"] = value("{{ if " + only + " }}" + strings.TrimPrefix(kind, "Cluster") + "{{ else }}" + kind + "{{ end }}")
	o["metadata"].(object)[blockKey] = block("{{- with " + only + " }}\nnamespace: {{ . }}\n{{- end }}")
	if role, ok := o["roleRef"].(object); ok {
		role["kind"] = value("{{ if " + only + " }}Role{{ else }}ClusterRole{{ end }}")
	}
}

func claim(spec object) {
	const from = ".Values.store.persistence."
	spec["accessModes"] = []any{value("{{ " + from + "accessMode }}")}
	spec["resources"].(object)["requests"].(object)["storage"] = value("{{ " + from + "size }}")
	spec[blockKey] = block("{{- with " + from + "storageClass }}\nstorageClassName: {{ . }}\n{{- end }}")
}

// workload sets the values of a program and of its Pod.
func workload(o object, program string, gateways object) error {
	values := ".Values." + program
	spec := o["spec"].(object)
	spec["replicas"] = value("{{ " + values + ".replicas }}")
	pod := spec["template"].(object)
	pod["metadata"].(object)[blockKey] = block(annotations(program))
	podSpec := pod["spec"].(object)
	podSpec[blockKey] = block(`{{- include "platform.pod" . | nindent @0 }}`)
	containers := podSpec["containers"].([]any)
	if len(containers) != 1 {
		return fmt.Errorf("%d containers", len(containers))
	}
	c := containers[0].(object)
	c["image"] = value(`{{ include "platform.image" (dict "root" . "values" ` + values + `.image) }}`)
	c[blockKey] = block("{{- with " + values + ".image.pullPolicy }}\nimagePullPolicy: {{ . }}\n{{- end }}")
	c["resources"] = value("{{ toJson " + values + ".resources }}")
	args := c["args"].([]any)
	if program == "controller" {
		args = append(args, block("{{- if "+only+" }}\n- --watch-namespace=$(WATCH_NAMESPACE)\n{{- end }}"))
		c["env"] = append(c["env"].([]any), block("{{- with "+only+" }}\n- name: WATCH_NAMESPACE\n  value: {{ . }}\n{{- end }}"))
		for _, e := range c["env"].([]any) {
			switch text(e, "name") {
			case "WORKER_IMAGE":
				e.(object)["value"] = value(`{{ include "platform.image" (dict "root" . "values" .Values.workers.image) }}`)
			case "RUNS_IMAGE":
				e.(object)["value"] = value("{{ .Values.workers.runsImage }}")
			}
		}
		c["env"] = append(c["env"].([]any), block(agentImages))
	}
	if program != "apiserver" { // whose metrics are at its own port
		args = append(args, block("{{- if .Values.metrics.enabled }}\n- --metrics-bind-address=:9090\n{{- end }}"))
		c["ports"] = append(asList(c["ports"]), block("{{- if .Values.metrics.enabled }}\n- containerPort: 9090\n  name: metrics\n{{- end }}"))
	}
	args = append(args, gatewayArgs(program, gateways)...)
	c["args"] = append(args, block("{{- range "+values+".extraArgs }}\n- {{ . | quote }}\n{{- end }}"))
	for _, v := range asList(podSpec["volumes"]) {
		if name := text(v, "persistentVolumeClaim", "claimName"); name != "" {
			volume := v.(object)
			delete(volume, "persistentVolumeClaim")
			volume[blockKey] = block("{{- if " + persistent + " }}\npersistentVolumeClaim:\n  claimName: " + name + "\n{{- else }}\nemptyDir: {}\n{{- end }}")
		}
		if m, ok := at(v, "configMap").(object); ok && strings.HasPrefix(text(m, "name"), "platform-router-") {
			m["name"] = "platform-router"
		}
	}
	return nil
}

// agentImages are the variables with the images of coding agents that have one.
const agentImages = "{{- range $type, $image := .Values.workers.agentImages }}\n{{- with $image }}\n" +
	"- name: PLATFORM_ACP_{{ upper $type }}_RUNTIME_IMAGE\n  value: {{ . | quote }}\n{{- end }}\n{{- end }}"

// annotations are those of a Pod. A change of the routes starts new routers.
func annotations(program string) string {
	if program != "router" {
		return "{{- with .Values.podAnnotations }}\nannotations:\n  {{- toYaml . | nindent @2 }}\n{{- end }}"
	}
	return "annotations:\n  platform.ai/routes: {{ include \"platform.routes\" . | sha256sum }}\n" +
		"  {{- with .Values.podAnnotations }}\n  {{- toYaml . | nindent @2 }}\n  {{- end }}"
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}
