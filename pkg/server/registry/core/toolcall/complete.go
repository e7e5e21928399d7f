// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolcall

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/tool/builtin"
)

// complete sets what only the server knows, and the typed arguments.
func (j *judge) complete(ctx context.Context, t v1alpha1.ToolCallTask, c *v1alpha1.ToolCall) error {
	c.Spec = v1alpha1.ToolCallSpec{
		TaskName: c.Spec.TaskName, ToolName: c.Spec.ToolName, CallID: c.Spec.CallID, Arguments: c.Spec.Arguments,
		Task: t,
	}
	if c.Spec.Arguments == nil || len(bytes.TrimSpace(c.Spec.Arguments.Raw)) == 0 {
		c.Spec.Arguments = &apiextensionsv1.JSON{Raw: []byte("{}")}
	}
	if raw := bytes.TrimSpace(c.Spec.Arguments.Raw); raw[0] != '{' {
		return apierrors.NewBadRequest("spec.arguments: must be an object")
	}
	if err := values(&c.Spec); err != nil {
		return err
	}
	if builtin.Has(c.Spec.ToolName) {
		c.Spec.Source = v1alpha1.ToolSourceBuiltin
		return typed(&c.Spec)
	}
	c.Spec.Source = v1alpha1.ToolSourceCustom
	o, err := j.tool(ctx, c.Spec.ToolName)
	switch {
	case apierrors.IsNotFound(err): // an agent's tools may be in another namespace
	case err != nil:
		return err
	default:
		c.Spec.Class = o.Spec.BrokeredToolClass
	}
	return nil
}

func (j *judge) taskOf(t *v1alpha1.Task) v1alpha1.ToolCallTask {
	out := v1alpha1.ToolCallTask{
		UID: t.UID, Type: t.Spec.Type, Labels: t.Labels, Attempt: t.Status.Attempts,
		CreatedBy: t.Annotations[v1alpha1.AnnotationRequestedBy],
	}
	if j.tasks.Verified(t) {
		out.RequestedBy = t.Spec.RequestedBy
	}
	if t.Spec.AgentRef != nil {
		out.AgentName = t.Spec.AgentRef.Name
	}
	return out
}

// typed sets the typed arguments of a built-in tool that has them.
func typed(s *v1alpha1.ToolCallSpec) error {
	var a struct {
		Language   string `json:"language"`
		Code       string `json:"code"`
		Timeout    int64  `json:"timeout"`
		Path       string `json:"path"`
		Offset     int64  `json:"offset"`
		Content    string `json:"content"`
		Mode       string `json:"mode"`
		CreateDirs *bool  `json:"create_dirs"`
		URL        string `json:"url"`
		MaxChars   int64  `json:"max_chars"`
		Raw        bool   `json:"raw"`
		Query      string `json:"query"`
		Limit      int64  `json:"limit"`
	}
	known := typedTools[s.ToolName]
	if known == nil {
		return nil
	}
	if err := json.Unmarshal(s.Arguments.Raw, &a); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("spec.arguments: not arguments of %s: %v", s.ToolName, err))
	}
	switch s.ToolName {
	case "code_exec":
		s.CodeExec = &v1alpha1.CodeExecArguments{Language: a.Language, Code: a.Code, TimeoutSeconds: a.Timeout}
	case "file_read":
		s.FileRead = &v1alpha1.FileReadArguments{Path: a.Path, Offset: a.Offset, Limit: a.Limit}
	case "file_write":
		s.FileWrite = &v1alpha1.FileWriteArguments{Path: a.Path, Content: a.Content, Mode: a.Mode, CreateDirs: a.CreateDirs == nil || *a.CreateDirs}
	case "web_fetch":
		s.WebFetch = &v1alpha1.WebFetchArguments{URL: a.URL, Host: host(a.URL), MaxChars: a.MaxChars, Raw: a.Raw}
	case "web_search":
		s.WebSearch = &v1alpha1.WebSearchArguments{Query: a.Query, Limit: a.Limit}
	}
	return nil
}

// typedTools lists the arguments that policies see as typed members, by tool. A test compares them with the schemas of
// the tools.
var typedTools = map[string][]string{
	"code_exec":  {"code", "language", "timeout"},
	"file_read":  {"limit", "offset", "path"},
	"file_write": {"content", "create_dirs", "mode", "path"},
	"web_fetch":  {"max_chars", "raw", "url"},
	"web_search": {"limit", "query"},
}

func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
}
