// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package hostcall

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost/operation"
)

// TestSignedRepository: a call may be about a repository that the signed transaction of its task names, with the credentials of the task's
// own workspace, which do not leave its code host.
func TestSignedRepository(t *testing.T) {
	const own, other = "https://github.com/o/own", "https://github.com/o/other"
	ref := func(name string) *v1alpha1.WorkspaceCredentialReference {
		return &v1alpha1.WorkspaceCredentialReference{Name: name}
	}
	workspace := &v1alpha1.TaskWorkspace{GitRepo: own, ReadCredentialRef: ref("reader"), ForgeCredentialRef: ref("writer")}
	for name, c := range map[string]struct {
		w            *v1alpha1.TaskWorkspace
		context, url string
		tool, want   string // URL and Secret, or the failure
	}{
		"read":                {workspace, `{"repo":"` + other + `"}`, other + ".git", "list_pull_requests", other + " reader"},
		"read, one of a list": {workspace, `{"repo":["` + own + `","` + other + `"]}`, other, "get_issue", other + " reader"},
		"write":               {workspace, `{"repo":"` + other + `"}`, other, "post_review_comment", other + " writer"},
		"own":                 {workspace, `{"repo":"` + other + `"}`, "", "list_pull_requests", own + " reader"},
		"not signed":          {workspace, `{"repo":"` + own + `"}`, other, "list_pull_requests", "repo_url: is not"},
		"no transaction":      {workspace, ``, other, "list_pull_requests", "repo_url: is not"},
		"not to be read":      {workspace, `[]`, other, "list_pull_requests", "repo_url: is not"},
		"another host":        {workspace, `{"repo":"https://git.example.com/o/r"}`, "https://git.example.com/o/r", "list_pull_requests", "https://git.example.com/o/r "},
		"writes to it":        {workspace, `{"repo":"https://git.example.com/o/r"}`, "https://git.example.com/o/r", "post_review_comment", "task t has no credential"},
		"no workspace":        {nil, `{"repo":"` + other + `"}`, other, "list_pull_requests", other + " "},
		"nothing to write":    {&v1alpha1.TaskWorkspace{GitRepo: own}, `{"repo":"` + other + `"}`, other, "post_review_comment", "task t has no credential"},
		"no repository":       {nil, ``, "", "list_pull_requests", "task t has no repository"},
	} {
		task := &v1alpha1.Task{Spec: v1alpha1.TaskSpec{Workspace: c.w}}
		task.Name, task.Namespace = "t", "n"
		if c.context != "" {
			task.Spec.Transaction = &v1alpha1.TaskTransaction{Context: &apiextensionsv1.JSON{Raw: []byte(c.context)}}
		}
		tool, _ := operation.Find(c.tool)
		got, err := New(Options{}).target(t.Context(), task, c.tool, tool, fmt.Appendf(nil, `{"repo_url":%q}`, c.url))
		says := fmt.Sprint(err)
		if err == nil {
			says = got.URL + " " + got.Secret.Name
		}
		if cmp.Compare(says, c.want) != 0 && (err == nil || !strings.HasPrefix(says, c.want)) {
			t.Errorf("%s: %q, want %q", name, says, c.want)
		}
	}
}
