// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// maxMessage bounds the message of a finding, in bytes.
const maxMessage = 1024

// maxFailures is how many findings the plugin reports; it leaves out more.
const maxFailures = 50

// notReady is what a plugin answers that has not read its policies yet.
const notReady = "not yet ready to handle request"

// annotationFailures is the annotation in which the plugin reports the findings of bindings with the action Audit.
const annotationFailures = "validation.policy.admission.k8s.io/validation_failure"

var (
	// denied and warned are the texts with which the plugin reports findings of the actions Deny and Warn.
	denied = regexp.MustCompile(`(?s)^ValidatingAdmissionPolicy '([^']*)'(?: with binding '([^']*)')? denied request: (.*)$`)
	warned = regexp.MustCompile(`(?s)^Validation failed for ValidatingAdmissionPolicy '([^']*)' with binding '([^']*)': (.*)$`)
)

// findings asks admission about a completed call. The error is an API error, and says that nobody could decide.
func (j *judge) findings(ctx context.Context, namespace string, c *v1alpha1.ToolCall) ([]v1alpha1.ToolCallFinding, error) {
	v, ok := j.admission.(admission.ValidationInterface)
	if !ok || !v.Handles(admission.Create) {
		return nil, nil
	}
	caller, _ := request.UserFrom(ctx)
	options := &metav1.CreateOptions{}
	if resource.IsDryRun(ctx) {
		options.DryRun = []string{metav1.DryRunAll}
	}
	a := &heard{Attributes: admission.NewAttributesRecord(c, nil, v1alpha1.SchemeGroupVersion.WithKind("ToolCall"), namespace, c.Name,
		v1alpha1.SchemeGroupVersion.WithResource("toolcalls"), "", admission.Create, options, resource.IsDryRun(ctx), caller)}
	err := v.Validate(warning.WithWarningRecorder(ctx, a), a, admission.NewObjectInterfacesFromScheme(j.scheme))
	if ctx.Err() != nil {
		return nil, apierrors.NewTimeoutError("the request ended before the call was judged", 0)
	}
	found, err := a.found(err)
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i].Action = j.action(found[i])
	}
	slices.SortStableFunc(found, func(a, b v1alpha1.ToolCallFinding) int { return gravity(a.Action) - gravity(b.Action) })
	return found, nil
}

// action is what follows from a finding. An evaluation that failed denies, and so does a policy that cannot be read.
func (j *judge) action(f v1alpha1.ToolCallFinding) v1alpha1.ToolCallAction {
	if f.Action == v1alpha1.ToolCallDeny || strings.Contains(f.Message, "resulted in error: ") {
		return v1alpha1.ToolCallDeny
	}
	if f.Action != v1alpha1.ToolCallAudit {
		return f.Action
	}
	if j.policies == nil {
		return v1alpha1.ToolCallDeny
	}
	p, err := j.policies.Get(f.Policy)
	switch {
	case err != nil:
		return v1alpha1.ToolCallDeny
	case p.Labels[v1alpha1.LabelRequireApproval] == "true":
		return v1alpha1.ToolCallRequireApproval
	}
	return v1alpha1.ToolCallAudit
}

func gravity(a v1alpha1.ToolCallAction) int {
	return slices.Index([]v1alpha1.ToolCallAction{v1alpha1.ToolCallDeny, v1alpha1.ToolCallRequireApproval, v1alpha1.ToolCallWarn, v1alpha1.ToolCallAudit}, a)
}

// verdictOf is the verdict of findings, the gravest first.
func verdictOf(findings []v1alpha1.ToolCallFinding) v1alpha1.ToolCallVerdict {
	switch {
	case len(findings) == 0:
		return v1alpha1.ToolCallAllowed
	case findings[0].Action == v1alpha1.ToolCallDeny:
		return v1alpha1.ToolCallDenied
	case findings[0].Action == v1alpha1.ToolCallRequireApproval:
		return v1alpha1.ToolCallApprovalRequired
	}
	return v1alpha1.ToolCallAllowed
}

// heard collects what admission says besides its error.
type heard struct {
	admission.Attributes

	mu       sync.Mutex
	warnings []string
	failures []string // values of annotationFailures
}

// AddWarning implements warning.Recorder.
func (h *heard) AddWarning(_, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.warnings = append(h.warnings, text)
}

// AddAnnotation keeps the failures that policies report, and passes every annotation on.
func (h *heard) AddAnnotation(key, value string) error {
	if key == annotationFailures {
		h.mu.Lock()
		h.failures = append(h.failures, value)
		h.mu.Unlock()
	}
	return h.Attributes.AddAnnotation(key, value)
}

// found turns the answer of admission into findings. The error is that of an admission that could not decide.
func (h *heard) found(err error) ([]v1alpha1.ToolCallFinding, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []v1alpha1.ToolCallFinding
	if err != nil {
		f, err := refusal(err)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	for _, text := range h.warnings {
		f := v1alpha1.ToolCallFinding{Action: v1alpha1.ToolCallWarn, Message: text}
		if m := warned.FindStringSubmatch(text); m != nil {
			f.Policy, f.Binding, f.Message = m[1], m[2], m[3]
		}
		out = append(out, f)
	}
	for _, value := range h.failures {
		var list []validating.ValidationFailureValue
		if err := json.Unmarshal([]byte(value), &list); err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("failures of policies: %w", err))
		}
		if len(list) >= maxFailures {
			out = append(out, v1alpha1.ToolCallFinding{Action: v1alpha1.ToolCallDeny, Message: "too many policies object to the call"})
		}
		for _, f := range list {
			if slices.Contains(f.ValidationActions, admissionv1.Deny) {
				continue // the call is denied already
			}
			out = append(out, v1alpha1.ToolCallFinding{Action: v1alpha1.ToolCallAudit, Policy: f.Policy, Binding: f.Binding, Message: f.Message})
		}
	}
	return out, nil
}

// refusal turns the error of admission into a finding.
func refusal(err error) (v1alpha1.ToolCallFinding, error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return v1alpha1.ToolCallFinding{}, apierrors.NewInternalError(err)
	}
	s := status.Status()
	if strings.Contains(s.Message, notReady) {
		return v1alpha1.ToolCallFinding{}, apierrors.NewServiceUnavailable("the policies are not read yet")
	}
	f := v1alpha1.ToolCallFinding{Action: v1alpha1.ToolCallDeny, Message: s.Message}
	if s.Details != nil {
		for _, cause := range s.Details.Causes {
			if m := denied.FindStringSubmatch(cause.Message); m != nil {
				f.Policy, f.Binding, f.Message = m[1], m[2], m[3]
			}
		}
	}
	return f, nil
}

func cut(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage-3], "") + "..."
}
