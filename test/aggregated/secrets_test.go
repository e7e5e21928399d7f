// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/test/kit"
)

// TestSecretNames: REST shows the names and types of the cluster's Secrets to those who may list them there, on both listeners,
// and no value. There is nothing else of the core API.
func TestSecretNames(t *testing.T) {
	address := "127.0.0.1:" + kit.FreePort(t)
	s := Start(t, "--rest-bind-address", address)
	s.namespace("hidden")
	for i := range 60 { // two pages
		s.c.Kubectl(t, "--namespace", "hidden", "create", "secret", "generic", "s"+strconv.Itoa(100+i), "--from-literal=k=hidden-value")
	}
	s.c.Kubectl(t, "--namespace", "hidden", "create", "secret", "docker-registry", "pull", "--docker-username=u", "--docker-password=hidden-value")
	lister := s.member("hidden", "lister", "edit", "list")
	viewer := s.member("hidden", "viewer", "platform-viewer", "list")
	for name, c := range map[string]*rest.Config{"secure": s.direct(lister), "plain": {Host: "http://" + address, BearerToken: lister.BearerToken}} {
		got := s.send(t, c, http.MethodGet, "/api/v1/secrets", "")
		got.Want(t, http.StatusOK, `{"name":"s100","namespace":"hidden","type":"Opaque"}`)
		got.Want(t, http.StatusOK, `{"name":"pull","namespace":"hidden","type":"kubernetes.io/dockerconfigjson"}`)
		var list struct{ Items []map[string]string }
		if err := json.Unmarshal([]byte(got.Body), &list); err != nil || len(list.Items) != 61 || len(list.Items[0]) != 3 || strings.Contains(got.Body, "hidden-value") || strings.Contains(got.Body, "aGlkZGVu") {
			t.Errorf("%s: %d Secrets, %v: %.500s", name, len(list.Items), err, got.Body)
		}
		s.send(t, c, http.MethodGet, "/api/v1/secrets?namespace=default", "").Want(t, http.StatusForbidden, `"error"`)
	}
	s.send(t, s.direct(viewer), http.MethodGet, "/api/v1/secrets", "").Want(t, http.StatusForbidden, `cannot list resource \"secrets\"`)
	const native = "/api/v1/namespaces/hidden/"
	for path, want := range map[string]int{
		"secrets": http.StatusOK, "secrets?limit=1": http.StatusOK, "secrets/s100": http.StatusNotFound, "secrets?watch=true": http.StatusNotFound,
		"secrets?fieldSelector=metadata.name%3Dpull": http.StatusBadRequest, "secrets?labelSelector=a": http.StatusBadRequest, "pods": http.StatusNotFound,
	} {
		if code, body := s.get(s.direct(s.Config()), native+path); code != want || strings.Contains(body, "aGlkZGVu") || strings.Contains(body, "last-applied") {
			t.Errorf("%s: %d %.300s", path, code, body)
		}
	}
}
