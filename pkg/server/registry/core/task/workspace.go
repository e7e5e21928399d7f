// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/server/registry/rule"
)

// reconciliationMark begins the comment that identifies a pull request of the
// platform.
const reconciliationMark = "<!-- platform"

// effectiveIntent returns the intent of a workspace after defaulting; "" if
// there is none.
func effectiveIntent(spec *v1alpha1.TaskSpec) v1alpha1.WorkspaceIntent {
	switch {
	case spec.Workspace == nil:
		return ""
	case spec.Workspace.Intent == "" && spec.Type == v1alpha1.TaskTypeAgent:
		return v1alpha1.WorkspaceRead
	}
	return spec.Workspace.Intent
}

func validateWorkspace(spec *v1alpha1.TaskSpec, path *field.Path) field.ErrorList {
	w := spec.Workspace
	source := rule.URL{Schemes: []string{"http", "https", "ssh", "git"}}
	var errs field.ErrorList
	if !scpLike(w.GitRepo) {
		errs = append(errs, source.Check(w.GitRepo, path.Child("gitRepo"))...)
	}
	errs = append(errs, rule.HTTP().Check(w.PublicationGitRepo, path.Child("publicationGitRepo"))...)
	for _, r := range []struct{ name, ref string }{
		{"branch", w.Branch}, {"ref", w.Ref}, {"pushBranch", w.PushBranch}, {"prBaseBranch", w.PRBaseBranch},
	} {
		if msg := badRef(r.ref); msg != "" {
			errs = append(errs, field.Invalid(path.Child(r.name), r.ref, msg))
		}
	}
	if w.SubPath != "" {
		errs = append(errs, rule.RelativePath(w.SubPath, path.Child("subPath"))...)
	}
	for i, p := range w.AllowedPaths {
		errs = append(errs, rule.RelativePath(p, path.Child("allowedPaths").Index(i))...)
	}
	if s := w.ExpectedRemoteSHA; s != "" && !v1alpha1.IsLowerHex(s, 40) && !v1alpha1.IsLowerHex(s, 64) {
		errs = append(errs, field.Invalid(path.Child("expectedRemoteSHA"), s, "must be 40 or 64 lower-case hexadecimal digits"))
	}
	if spec.Type == v1alpha1.TaskTypeContainer {
		errs = append(errs, validateContainerWorkspace(w, path)...)
	}
	return append(errs, validatePullRequest(spec, path)...)
}

// validateContainerWorkspace refuses the fields that control publication,
// because container tasks do not publish.
func validateContainerWorkspace(w *v1alpha1.TaskWorkspace, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"createPR", w.CreatePR},
		{"expectedRemoteSHA", w.ExpectedRemoteSHA != ""},
		{"denyRepositoryControlPaths", w.DenyRepositoryControlPaths},
		{"rejectBinaryFiles", w.RejectBinaryFiles},
		{"rejectSecretLikeContent", w.RejectSecretLikeContent},
	} {
		if f.set {
			errs = append(errs, field.Forbidden(path.Child(f.name), "is not for tasks of type container"))
		}
	}
	return errs
}

func validatePullRequest(spec *v1alpha1.TaskSpec, path *field.Path) field.ErrorList {
	w := spec.Workspace
	var errs field.ErrorList
	if w.CreatePR && effectiveIntent(spec) != v1alpha1.WorkspaceWrite {
		errs = append(errs, field.Invalid(path.Child("createPR"), true, "needs intent write"))
	}
	if w.CreatePR && w.ForgeCredentialRef == nil {
		errs = append(errs, field.Required(path.Child("forgeCredentialRef"), "createPR needs it"))
	}
	if w.PRTitle != "" && strings.TrimSpace(w.PRTitle) == "" {
		errs = append(errs, field.Invalid(path.Child("prTitle"), w.PRTitle, "must not be only white space"))
	}
	if strings.Contains(strings.ToLower(w.PRBody), reconciliationMark) {
		errs = append(errs, field.Invalid(path.Child("prBody"), field.OmitValueType{}, "must not contain a comment that begins with "+reconciliationMark))
	}
	return errs
}

// scpLike accepts git's short form user@host:path, which cannot contain a
// password.
func scpLike(s string) bool {
	user, rest, ok := strings.Cut(s, "@")
	host, path, has := strings.Cut(rest, ":")
	if !ok || !has || path == "" || strings.HasPrefix(path, "//") || strings.ContainsAny(user, ":/?# ") || strings.ContainsAny(path, "?# ") {
		return false
	}
	_, err := url.Parse("ssh://" + host)
	return err == nil && host != "" && !strings.ContainsAny(host, "/@ ")
}

// badRef returns why git would refuse the name of a ref; empty if it would not, or if there is none.
func badRef(s string) string {
	switch {
	case strings.HasPrefix(s, "-"):
		return `must not begin with "-"`
	case s != "" && !codehost.IsRef(s):
		return "is not a valid git ref name"
	}
	return ""
}

func (r rules) validateExecutionWorkspace(spec *v1alpha1.TaskSpec, path *field.Path) field.ErrorList {
	w := spec.Execution.Workspace
	if !r.executionWorkspaces {
		return field.ErrorList{field.Forbidden(path, "this server offers no external sandboxes")}
	}
	var errs field.ErrorList
	switch {
	case w.ClassRef != nil && (w.Enabled || w.Provider != ""):
		errs = append(errs, field.Forbidden(path.Child("classRef"), "cannot be set together with enabled or provider"))
	case w.ClassRef == nil && (!w.Enabled || w.Provider == ""):
		errs = append(errs, field.Required(path, "classRef, or enabled and provider, must be set"))
	}
	if w.ReusePolicy == v1alpha1.WorkspaceReuseSession && spec.SessionRef == nil {
		errs = append(errs, field.Invalid(path.Child("reusePolicy"), w.ReusePolicy, "needs sessionRef"))
	}
	if f := w.RestoreFrom; f != nil && !rule.IsDigest(f.Digest) {
		errs = append(errs, field.Invalid(path.Child("restoreFrom", "digest"), f.Digest, `must be "sha256:" and 64 lower-case hexadecimal digits`))
	}
	return errs
}
