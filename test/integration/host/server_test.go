// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"net/http"
	"regexp"
	"sort"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// Point 9: only watches, streams and followed logs are without a deadline. Other requests may shorten theirs with the
// timeout parameter, which is parsed only for them, so an invalid one distinguishes the two without waiting.
func TestOnlyStreamsAreLongRunning(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	s.In(t, standalone.Tasks)
	if _, err := s.In(t, standalone.Tasks).Create(t.Context(), standalone.Task("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for path, bounded := range map[string]bool{
		"?timeout=x":                             true,
		"/a?timeout=x":                           true,
		"/a/log?timeout=x":                       true,
		"/a/result?timeout=x":                    true,
		"?watch=true&timeoutSeconds=1&timeout=x": false,
		"/nosuch/log?follow=true&timeout=x":      false,
	} {
		code, body := host.Get(t, s.Config(), standalone.TasksPath+path, "")
		if refused := code == http.StatusBadRequest && strings.Contains(body, "invalid timeout"); refused != bounded {
			t.Errorf("%s has a deadline: %v, want %v (%d %s)", path, refused, bounded, code, body)
		}
	}
	code, body := host.Get(t, s.Config(), standalone.TasksPath+"?timeout=1ns", "")
	if code != http.StatusGatewayTimeout && code != http.StatusInternalServerError {
		t.Errorf("a request over its deadline: %d %s", code, body)
	}
}

// Point 10: nobody has access without credentials, and nobody can do what no rule allows.
func TestAuthenticationAndAuthorization(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	anonymous := &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: s.Admin.CAData}}
	for path, want := range map[string]int{standalone.TasksPath: 0, standalone.TasksPath + "?timeout=x": 0, "/api/v1/secrets": 0, "/metrics": 0, "/livez": 200, "/readyz": 200, "/version": 200} {
		code, body := host.Get(t, anonymous, path, "")
		if want == 0 && code != http.StatusUnauthorized && code != http.StatusForbidden || want != 0 && code != want {
			t.Errorf("anonymous %s: %d %s", path, code, body)
		}
	}
	forged := rest.CopyConfig(anonymous)
	forged.BearerToken = "eyJhbGciOiJub25lIn0.e30."
	if code, _ := host.Get(t, forged, standalone.TasksPath, ""); code != http.StatusUnauthorized {
		t.Errorf("forged token: %d", code)
	}
	nobody := rest.CopyConfig(s.Admin)
	nobody.Impersonate.UserName = "nobody"
	code, body := host.Get(t, nobody, standalone.TasksPath, "")
	if code != http.StatusForbidden || !strings.Contains(body, `User \"nobody\" cannot list resource \"tasks\" in API group \"core.platform.ai\" in the namespace \"default\"`) {
		t.Errorf("user without a role: %d %s", code, body)
	}
	if code, body := host.Get(t, s.Admin, standalone.TasksPath, ""); code != http.StatusOK {
		t.Errorf("administrator: %d %s", code, body)
	}
}

// Point 13: admission runs in this process: nothing is created in a namespace that is missing or being deleted.
func TestNamespaceAdmission(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ctx, k := t.Context(), s.Kubernetes(t)
	missing := s.Dynamic(t).Resource(standalone.Tasks).Namespace("missing")
	if _, err := missing.Create(ctx, standalone.Task("a"), metav1.CreateOptions{}); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `namespaces "missing" not found`) {
		t.Errorf("create in a missing namespace: %v", err)
	}
	if err := k.CoreV1().Namespaces().Delete(ctx, "default", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("delete of namespace default: %v", err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	if _, err := k.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	held := agent("held", "x")
	held.SetFinalizers([]string{"test.platform.ai/hold"})
	team := s.Dynamic(t).Resource(standalone.Agents).Namespace("team")
	if _, err := team.Create(ctx, held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := k.CoreV1().Namespaces().Delete(ctx, "team", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := team.Create(ctx, agent("late", "x"), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "being terminated") {
		t.Errorf("create in a namespace that ends: %v", err)
	}
}

// Point 11: every client can follow references by the names of definitions; every field is described, and no internal
// version is shown.
func TestOpenAPIIsComplete(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	for _, path := range []string{"/openapi/v2", "/openapi/v3/apis/core.platform.ai/v1alpha1"} {
		code, body := host.Get(t, s.Config(), path, "application/json")
		if code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, code, body)
		}
		var doc struct {
			Definitions map[string]schemaDoc
			Parameters  map[string]any
			Components  struct{ Schemas map[string]schemaDoc }
		}
		if err := json.Unmarshal([]byte(body), &doc); err != nil {
			t.Fatal(err)
		}
		schemas := doc.Definitions
		if len(schemas) == 0 {
			schemas = doc.Components.Schemas
		}
		for _, ref := range regexp.MustCompile(`"\$ref":"([^"]*)"`).FindAllStringSubmatch(body, -1) {
			name := ref[1][strings.LastIndex(ref[1], "/")+1:]
			_, ok := schemas[name]
			if strings.HasPrefix(ref[1], "#/parameters/") {
				_, ok = doc.Parameters[name]
			}
			if !ok || strings.ContainsAny(name, "~%") {
				t.Errorf("%s: reference %s leads nowhere", path, ref[1])
			}
		}
		if strings.Contains(body, "__internal") {
			t.Errorf("%s shows an internal version", path)
		}
		ours := 0
		for name, def := range schemas {
			if strings.Contains(name, "/") {
				t.Errorf("%s: definition %s", path, name)
			}
			if !strings.HasPrefix(name, "ai.platform.core.v1alpha1.") {
				continue
			}
			ours++
			if missing := def.undescribed(); def.Description == "" || len(missing) > 0 {
				t.Errorf("%s: %s is described %v, but not its %v", path, name, def.Description != "", missing)
			}
		}
		if ours < 7 {
			t.Errorf("%s has %d definitions of ours", path, ours)
		}
	}
}

type schemaDoc struct {
	Description string
	Properties  map[string]schemaDoc
}

func (d schemaDoc) undescribed() []string {
	var names []string
	for name, p := range d.Properties {
		if p.Description == "" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

func TestProtobufClientsGetJSONForOurKinds(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	code, body := host.Get(t, s.Config(), standalone.TasksPath, "application/vnd.kubernetes.protobuf,application/json")
	if code != http.StatusOK || !strings.HasPrefix(body, "{") {
		t.Errorf("tasks: %d %.80q", code, body)
	}
	if code, _ = host.Get(t, s.Config(), standalone.TasksPath, "application/vnd.kubernetes.protobuf"); code != http.StatusNotAcceptable {
		t.Errorf("tasks as protobuf only: %d", code)
	}
	if code, body = host.Get(t, s.Config(), "/api/v1/namespaces", "application/vnd.kubernetes.protobuf"); code != http.StatusOK || !strings.HasPrefix(body, "k8s\x00") {
		t.Errorf("namespaces: %d %.20q", code, body)
	}
}
