// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolcall

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

func TestValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arguments, want string
	}{
		"empty":     {`{}`, `[{},{},{}]`},
		"flat":      {`{"a":"x","b":1.5,"c":true,"d":null}`, `[{"a":"x"},{"b":1.5},{"c":true}]`},
		"nested":    {`{"order":{"items":[{"name":"x"},{"name":"y"}],"total":3}}`, `[{"order.items.0.name":"x","order.items.1.name":"y"},{"order.total":3},{}]`},
		"dots":      {`{"a.b":1,"a":{"b":2}}`, `[{},{"a.b":2,"a\\.b":1},{}]`},
		"twice":     {`{"a":1,"a":2}`, "ambiguous"},
		"too many":  {`{"a":[` + strings.Repeat("1,", maxValues) + `1]}`, "at most"},
		"no object": {`{`, "spec.arguments"},
	} {
		s := v1alpha1.ToolCallSpec{Arguments: &apiextensionsv1.JSON{Raw: []byte(c.arguments)}}
		got := ""
		if err := values(&s); err != nil {
			got = err.Error()
		} else {
			raw, err := json.Marshal([]any{s.Strings, s.Numbers, s.Booleans})
			got = fmt.Sprint(string(raw), err)
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// What admission says becomes findings. An evaluation that failed denies, even if the binding only audits or warns.
func TestFindings(t *testing.T) {
	t.Parallel()
	refused := apierrors.NewForbidden(v1alpha1.Resource("toolcalls"), "", errors.New("x"))
	refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no curl"}}
	const failed = "expression 'x' resulted in error: no such key: a"
	audit := func(message string) string {
		return fmt.Sprintf(`[{"message":%q,"policy":"p","binding":"b","expressionIndex":0,"validationActions":["Audit"]}]`, message)
	}
	for name, c := range map[string]struct {
		err      error
		warnings []string
		failures []string
		want     string
	}{
		"nothing":          {want: "Allowed"},
		"denied":           {err: refused, want: "Denied Deny p b no curl"},
		"webhook":          {err: apierrors.NewInternalError(errors.New("failed calling webhook")), want: "Denied Deny   Internal error"},
		"warned":           {warnings: []string{"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': careful"}, want: "Allowed Warn p b careful"},
		"warning failed":   {warnings: []string{"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': " + failed}, want: "Denied Deny p b"},
		"audited":          {failures: []string{audit(failed)}, want: "Denied Deny p b"},
		"unreadable":       {failures: []string{audit("large")}, want: "Denied Deny p b large"}, // no policy can be read
		"not understood":   {failures: []string{"{"}, want: "failures of policies"},
		"unknown to start": {err: apierrors.NewForbidden(v1alpha1.Resource("toolcalls"), "", errors.New(notReady)), want: "not read yet"},
	} {
		h := &heard{warnings: c.warnings, failures: c.failures}
		found, err := h.found(c.err)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			for i := range found {
				found[i].Action = (&judge{}).action(found[i])
			}
			got = string(verdictOf(found))
			for _, f := range found {
				got += fmt.Sprintf(" %s %s %s %s", f.Action, f.Policy, f.Binding, f.Message)
			}
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// What is kept of the arguments has none of the secrets that a worker names, in any spelling, and is still one JSON value.
func TestWithoutSecrets(t *testing.T) {
	t.Parallel()
	many := slices.Repeat([]string{"abcdef"}, maxSensitive+1)
	for name, c := range map[string]struct {
		arguments string
		secrets   []string
		want      string
		changed   bool
	}{
		"none":             {`{"a": "b"}`, nil, `{"a": "b"}`, false},
		"not there":        {`{"a": "b"}`, []string{"", "secret"}, `{"a": "b"}`, false},
		"the longer first": {`{"a":"abcdefgh abcdef"}`, []string{"abcdef", "abcdefgh"}, `{"a":"[REDACTED] [REDACTED]"}`, true},
		"as JSON writes":   {`{"a":"x\"<y"}`, []string{`x"<y`}, `{"a":"[REDACTED]"}`, true},
		"HTML escaped":     {`{"a":"x\"\u003cy"}`, []string{`x"<y`}, `{"a":"[REDACTED]"}`, true},
		"by its form":      {`{"password":"hunter22"}`, nil, `{"password":"[REDACTED]"}`, true},
		"a number":         {`{"a":123456}`, []string{"123456"}, `{}`, true},
		"too many":         {`{"a":"b"}`, many, `{}`, true},
	} {
		got, changed := withoutSecrets([]byte(c.arguments), c.secrets)
		if string(got) != c.want || changed != c.changed {
			t.Errorf("%s: %s, %v; want %s, %v", name, got, changed, c.want, c.changed)
		}
	}
}

// TestOwnTools: the tools of a coding agent are no tools of the platform, whatever their names are, and no other task has such tools.
func TestOwnTools(t *testing.T) {
	t.Parallel()
	call := func(of v1alpha1.TaskType, kind string) (*v1alpha1.ToolCall, error) {
		c := &v1alpha1.ToolCall{Spec: v1alpha1.ToolCallSpec{
			ToolName: "file_read", Kind: kind, Arguments: &apiextensionsv1.JSON{Raw: []byte(`{"path":["a"]}`)}, Source: v1alpha1.ToolSourceCustom, Class: v1alpha1.ToolClassWrite,
		}}
		return c, (&judge{}).complete(t.Context(), v1alpha1.ToolCallTask{Type: of}, c)
	}
	if c, err := call(v1alpha1.TaskTypeAgent, "read"); err != nil || c.Spec.Source != v1alpha1.ToolSourceAgent || c.Spec.Kind != "read" || c.Spec.Class != "" || c.Spec.FileRead != nil {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := call(v1alpha1.TaskTypeAI, "read"); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "spec.kind") {
		t.Errorf("of a task of type ai: %v", err)
	}
	if _, err := call(v1alpha1.TaskTypeAgent, ""); !apierrors.IsBadRequest(err) { // a tool of the platform, whose arguments are others
		t.Errorf("a built-in tool: %v", err)
	}
}
