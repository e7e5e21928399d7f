// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

func TestRequestApproval(t *testing.T) {
	var asked []tool.ApprovalRequest
	answer, failure := tool.ApprovalAnswer{}, error(nil)
	catalogue, err := tool.NewCatalogue(New(func(_ context.Context, r tool.ApprovalRequest) (tool.ApprovalAnswer, error) {
		asked = append(asked, r)
		return answer, failure
	}))
	if err != nil {
		t.Fatal(err)
	}
	const call = `{"action":"delete it","targetTool":"drop","targetArguments":{"b":1.0,"a":"x"},"riskSummary":"data is lost","severity":"critical"}`
	for _, tc := range []struct {
		name, arguments string
		answer          tool.ApprovalAnswer
		err             error
		want            string // part of the result
		asked           *tool.ApprovalRequest
	}{
		{
			name: "approved", arguments: call, answer: tool.ApprovalAnswer{ApprovalID: "id", Decision: v1alpha1.ApprovalApproved, Reason: "go on"},
			want:  `{"success":true,"data":{"approvalID":"id","decision":"approved","reason":"go on","status":"approved for one call: call drop now, with exactly these arguments"}}`,
			asked: &tool.ApprovalRequest{Action: "delete it", Tool: "drop", Arguments: []byte(`{"b":1.0,"a":"x"}`), RiskSummary: "data is lost", Severity: v1alpha1.SeverityCritical},
		},
		{
			name: "declined", arguments: `{"action":"a","targetTool":"t","targetArguments":{}}`, answer: tool.ApprovalAnswer{ApprovalID: "id", Decision: v1alpha1.ApprovalDeclined},
			want: `"status":"declined: do not`, asked: &tool.ApprovalRequest{Action: "a", Tool: "t", Arguments: []byte(`{}`), Severity: v1alpha1.SeverityWarning},
		},
		{name: "expired", arguments: call, answer: tool.ApprovalAnswer{Decision: v1alpha1.ApprovalExpired}, want: `nobody decided in time`, asked: &tool.ApprovalRequest{}},
		{name: "cancelled", arguments: call, answer: tool.ApprovalAnswer{Decision: v1alpha1.ApprovalCancelled}, want: `withdrawn`, asked: &tool.ApprovalRequest{}},
		{name: "not asked for", arguments: call, err: tool.InvalidArguments("drop needs no approval"), want: `"errorType":"invalid_arguments"`, asked: &tool.ApprovalRequest{}},
		{name: "unforeseen", arguments: call, err: errors.New("boom"), want: `"errorType":"internal_error"`, asked: &tool.ApprovalRequest{}},
		{name: "blank action", arguments: `{"action":" ","targetTool":"t","targetArguments":{}}`, want: `"errorType":"invalid_arguments"`},
		{name: "no arguments", arguments: `{"action":"a","targetTool":"t"}`, want: `"errorType":"invalid_arguments"`},
		{name: "arguments are no object", arguments: `{"action":"a","targetTool":"t","targetArguments":"x"}`, want: `"errorType":"invalid_arguments"`},
		{name: "another severity", arguments: `{"action":"a","targetTool":"t","targetArguments":{},"severity":"mild"}`, want: `"errorType":"invalid_arguments"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asked, answer, failure = nil, tc.answer, tc.err
			got := catalogue.Call(t.Context(), builtin.RequestApproval.Name, tc.arguments)
			if !strings.Contains(got.Text, tc.want) {
				t.Errorf("got %s", got.Text)
			}
			if (tc.asked != nil) != (len(asked) == 1) {
				t.Fatalf("asked %+v", asked)
			}
			if tc.asked != nil && tc.asked.Tool != "" {
				if diff := cmp.Diff(*tc.asked, asked[0]); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}
