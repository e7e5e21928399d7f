// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ownplan

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/plan/plantest"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/runner/runnertest"
)

// server answers as the API does, with the objects of plantest.
func server(t *testing.T) *httptest.Server {
	t.Helper()
	group := v1alpha1.SchemeGroupVersion
	answers := map[string]any{}
	providers := map[string]*v1alpha1.ProviderList{}
	add := func(prefix, resource string, o runtime.Object) {
		m, err := meta.Accessor(o)
		if err != nil {
			t.Fatal(err)
		}
		answers[path.Join(prefix, "namespaces", m.GetNamespace(), resource, m.GetName())] = o
	}
	for _, o := range plantest.Objects() {
		var kind string
		switch o := o.(type) {
		case *v1alpha1.Agent:
			kind = "Agent"
		case *v1alpha1.Skill:
			kind = "Skill"
		case *v1alpha1.Tool:
			kind = "Tool"
		case *v1alpha1.Provider:
			kind = "Provider"
			list := providers[o.Namespace]
			if list == nil {
				list = &v1alpha1.ProviderList{TypeMeta: metav1.TypeMeta{Kind: "ProviderList", APIVersion: group.String()}}
				providers[o.Namespace] = list
				answers["/apis/"+group.String()+"/namespaces/"+o.Namespace+"/providers"] = list
			}
			list.Items = append(list.Items, *o)
		}
		o.GetObjectKind().SetGroupVersionKind(group.WithKind(kind))
		add("/apis/"+group.String(), strings.ToLower(kind)+"s", o)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[r.URL.Path]
		if !ok {
			status := apierrors.NewNotFound(v1alpha1.Resource("things"), r.URL.Path).Status()
			status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
			w.WriteHeader(http.StatusNotFound)
			answer = status
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(s.Close)
	return s
}

// TestCasesOfPlans: a worker decides about its run in the same way as admission and the controller.
func TestCasesOfPlans(t *testing.T) {
	api := server(t)
	for _, tc := range plantest.Cases() {
		if tc.Task.Spec.Type == v1alpha1.TaskTypeContainer {
			continue // see the runner of those tasks
		}
		if tc.Task.Spec.Type == v1alpha1.TaskTypeAgent {
			continue // which have workers only where there are coding agents
		}
		r := runnertest.New(t, api.URL, tc.Task.Spec)
		r.Task = tc.Task
		// What the controller gives: the keys that it found.
		r.Credentials.ProviderKeys = map[string]string{"n/openai": "k", "n/azure": "k", "n/azure-2": "k", "n/claude": "k", "other/openai": "k"}
		r.Credentials.ToolKeys = map[string]string{"n/weather": "k"}
		r.Credentials.ConfigMaps = map[string]string{}
		for _, m := range plantest.ConfigMaps() {
			for key, value := range m.Data {
				r.Credentials.ConfigMaps[runspec.ConfigMapKey(m.Namespace, m.Name, key)] = value
			}
		}
		want := tc.Reason
		switch {
		case tc.Unseen:
			want = ""
		case want == v1alpha1.ReasonSecretNotFound:
			want = v1alpha1.ReasonSecretKeyNotFound // a worker cannot look for the Secret: it lacks the value
		case want == v1alpha1.ReasonConfigMapNotFound:
			want = v1alpha1.ReasonConfigMapKeyNotFound
		}
		_, err := Of(t.Context(), r.Run)
		f, ok := errors.AsType[*runner.Error](err)
		if want == "" && err != nil || want != "" && (!ok || f.Reason != want) {
			t.Errorf("%s: %v, want %q", tc.Name, err, want)
		}
	}
}

// TestSearchWithoutAService: a worker leaves web_search out as the controller did, and has it where there is a service.
func TestSearchWithoutAService(t *testing.T) {
	api := server(t)
	for _, url := range []string{"", "http://127.0.0.1:1/"} {
		task := plantest.AI(plantest.With(func(ai *v1alpha1.TaskAI) { ai.Tools = []string{builtin.WebSearch.Name} }))
		r := runnertest.New(t, api.URL, task.Spec)
		r.Task, r.SearchURL = task, url
		r.Credentials.ProviderKeys = map[string]string{"n/openai": "k"}
		p, err := Of(t.Context(), r.Run)
		if err != nil {
			t.Fatal(err)
		}
		if has := slices.ContainsFunc(p.Tools, func(t plan.Tool) bool { return t.Name == builtin.WebSearch.Name }); has != (url != "") {
			t.Errorf("service %q: %+v", url, p.Tools)
		}
	}
}
