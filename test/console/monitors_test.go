// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/console/scene"
	"github.com/platform-ai/platform/test/kit"
)

// The views of monitors show what there is, follow what changes, and send what somebody may ask for. What strangers write stays text.
func TestMonitors(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	f := fill(t)
	f.Monitor("shop", "All is said.", "https://git.example/ada/shop/pulls/7")
	f.Monitor("evil", hostile[0]+" \u202egnp.exe "+hostile[2], "javascript:window.pwned=1")
	token := f.token("eve", "platform-editor")
	f.drive("monitors.mjs", 6, "TOKEN="+token, "VIEWER="+f.token("vic", "platform-viewer"), "ADMIN="+f.token("root", "cluster-admin"), "HEAD="+scene.MonitorHead)

	ctx, c := t.Context(), f.API.CoreV1alpha1()
	commands, err := c.MonitorCommands("team").List(ctx, metav1.ListOptions{FieldSelector: "spec.monitorName=shop"})
	if err != nil {
		t.Fatal(err)
	}
	given := map[v1alpha1.MonitorIntent]v1alpha1.MonitorCommandSpec{}
	for i := range commands.Items {
		if s := commands.Items[i].Spec; s.Source == v1alpha1.MonitorCommandAPI {
			given[s.Intent] = s
		}
	}
	for intent, want := range map[v1alpha1.MonitorIntent]v1alpha1.MonitorCommandSpec{
		v1alpha1.MonitorReviewIntent: {TargetKind: v1alpha1.MonitorPullRequest, Number: 7, TargetSHA: scene.MonitorHead},
		v1alpha1.MonitorStop:         {TargetKind: v1alpha1.MonitorPullRequest, Number: 7},
		v1alpha1.MonitorResume:       {TargetKind: v1alpha1.MonitorPullRequest, Number: 7},
		v1alpha1.MonitorApprovePlan:  {TargetKind: v1alpha1.MonitorIssue, Number: 9},
	} {
		got, ok := given[intent]
		if !ok || got.TargetKind != want.TargetKind || got.Number != want.Number || got.TargetSHA != want.TargetSHA || got.Sender != "system:serviceaccount:team:eve" {
			t.Errorf("%s: %v %+v", intent, ok, got)
		}
	}
	if len(given) != 4 {
		t.Errorf("%d kinds of commands: %+v", len(given), given)
	}
	runs, err := c.MonitorRuns("team").List(ctx, metav1.ListOptions{FieldSelector: "spec.monitorName=shop"})
	if err != nil {
		t.Fatal(err)
	}
	requested := 0
	for i := range runs.Items {
		if s := runs.Items[i].Spec; s.Trigger == v1alpha1.MonitorRunRequested && s.TargetKind == "" {
			requested++
		}
	}
	if requested != 1 || len(runs.Items) != 2 {
		t.Errorf("%d runs, %d of them requested", len(runs.Items), requested)
	}
}
