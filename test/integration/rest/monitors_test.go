// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

const (
	monitors = "/api/v1/monitors/"
	// monitor is the spec of one of pull requests and issues.
	monitor = `{"repoURL":"https://github.com/example/shop","targets":{"issues":{"enabled":true}},"agents":{"reviewer":{"name":"critic"}}}`
)

// recorded makes records of a monitor as a controller does: an item, an implementation and a mutation of each of two issues, and an item and
// a review of pull request 3.
func recorded(t *testing.T, c typed.CoreV1alpha1Interface, name string) {
	t.Helper()
	m := kit.Must[*v1alpha1.RepositoryMonitor](t)(c.RepositoryMonitors("default").Get(t.Context(), name, metav1.GetOptions{}))
	named := func(format string, a ...any) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name + fmt.Sprintf(format, a...)}
	}
	item := func(kind v1alpha1.MonitorTargetKind, number int64, status v1alpha1.MonitorItemStatus) {
		made := kit.Must[*v1alpha1.MonitorItem](t)(c.MonitorItems("default").Create(t.Context(), &v1alpha1.MonitorItem{
			ObjectMeta: named(".%s-%d", strings.ReplaceAll(string(kind), "_", "-"), number), Spec: v1alpha1.MonitorItemSpec{MonitorName: name, MonitorUID: m.UID, TargetKind: kind, Number: number},
		}, metav1.CreateOptions{}))
		made.Status = status
		kit.Must[*v1alpha1.MonitorItem](t)(c.MonitorItems("default").UpdateStatus(t.Context(), made, metav1.UpdateOptions{}))
	}
	work := func(kind v1alpha1.MonitorTargetKind, number int64, action v1alpha1.MonitorIntent) {
		kit.Must[*v1alpha1.MonitorWorkAction](t)(c.MonitorWorkActions("default").Create(t.Context(), &v1alpha1.MonitorWorkAction{
			ObjectMeta: named("-%s-%d", action, number),
			Spec:       v1alpha1.MonitorWorkActionSpec{MonitorName: name, MonitorUID: m.UID, TargetKind: kind, Number: number, DesiredAction: action, Attempt: 1},
		}, metav1.CreateOptions{}))
	}
	for number := range int64(2) {
		item(v1alpha1.MonitorIssue, number+1, v1alpha1.MonitorItemStatus{State: v1alpha1.MonitorItemOpen})
		work(v1alpha1.MonitorIssue, number+1, v1alpha1.MonitorImplement)
		kit.Must[*v1alpha1.MonitorMutation](t)(c.MonitorMutations("default").Create(t.Context(), &v1alpha1.MonitorMutation{
			ObjectMeta: named("-comment-%d", number+1),
			Spec:       v1alpha1.MonitorMutationSpec{MonitorName: name, MonitorUID: m.UID, TargetKind: v1alpha1.MonitorIssue, Number: number + 1, Operation: v1alpha1.MonitorPostComment},
		}, metav1.CreateOptions{}))
	}
	item(v1alpha1.MonitorPullRequest, 3, v1alpha1.MonitorItemStatus{
		State: v1alpha1.MonitorItemOpen, Review: &v1alpha1.MonitorItemReview{Verdict: v1alpha1.MonitorVerdictNeedsChanges},
		Repair: &v1alpha1.MonitorItemRepair{Phase: v1alpha1.MonitorRepairFailed}, Automerge: &v1alpha1.MonitorItemAutomerge{State: v1alpha1.MonitorMergeBlocked},
	})
	work(v1alpha1.MonitorPullRequest, 3, v1alpha1.MonitorReviewIntent)
}

// TestRESTMonitors: what monitors are asked for, and what they record.
func TestRESTMonitors(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ed, viewer := s.REST(t, "default", "ed", "edit"), s.REST(t, "default", "vi", "view")
	const shop = monitors + "repositories/shop"
	ed.Post(monitors+"repositories", `{"name":"shop","spec":`+monitor+`}`).Want(t, 201, `"kind":"RepositoryMonitor"`, `"provider":"github"`)
	ed.Post(monitors+"repositories", `{"name":"other","spec":`+monitor+`}`).Want(t, 201)
	ed.Post(monitors+"repositories", `{"name":"bad","spec":`+strings.Replace(monitor, "https", "ssh", 1)+`}`).Problem(t, 400, "spec.repoURL")
	viewer.Get(shop).Want(t, 200, `"kind":"RepositoryMonitor"`)
	if list := viewer.Get(monitors+"repositories?limit=1").Want(t, 200, `"name":"other"`); strings.Contains(list.Body, `"name":"shop"`) {
		t.Errorf("a page: %s", list.Body)
	}
	put(ed, shop, `{"spec":`+strings.Replace(monitor, `"agents"`, `"schedule":"@hourly","agents"`, 1)+`}`).Want(t, 200, `"schedule":"@hourly"`)
	put(ed, shop, `{"spec":`+strings.Replace(monitor, "shop", "till", 1)+`}`).Problem(t, 400, "spec.repoURL")
	put(viewer, shop, `{"spec":`+monitor+`}`).Problem(t, 403, "cannot patch")

	// Runs.
	viewer.Post(shop+"/runs", "").Problem(t, 403, "cannot create")
	ed.Post(shop+"/runs", `{"targetNumber":7}`).Problem(t, 400, "targetKind: is needed with targetNumber")
	run := host.Decode[v1alpha1.MonitorRun](t, ed.Post(shop+"/runs", `{"targetKind":"pull_request","targetNumber":7,"targetSHA":"`+strings.Repeat("a", 40)+`"}`).Want(t, 201, `"kind":"MonitorRun"`, `"state":"queued"`))
	if run.Spec.TargetNumber != 7 || run.Spec.MonitorName != "shop" {
		t.Errorf("run: %+v", run.Spec)
	}
	ed.Post(shop+"/runs", "{}").Problem(t, 409, run.Name)
	ed.Post(monitors+"repositories/none/runs", "{}").Problem(t, 404, `"none" not found`)
	viewer.Get(monitors+"repositories/none/runs").Problem(t, 404, `"none" not found`)

	// Commands.
	ed.Post(shop+"/commands", `{"kind":"issue","number":7,"intent":"triage"}`).Want(t, 201, `"kind":"MonitorCommand"`, `"intent":"triage"`, `"source":"api"`, `"state":"accepted"`)
	ed.Post(shop+"/commands", `{"kind":"pull_request","number":7,"intent":"review"}`).Problem(t, 400, "targetSHA: the command review needs the head that it is for")
	ed.Post(shop+"/commands", `{"kind":"issue","number":7,"intent":"review"}`).Problem(t, 400, "intent: of issue it must be one of")
	ed.Post(shop+"/commands", `{"kind":"commit","number":7,"intent":"review"}`).Problem(t, 400, "targetKind")
	ed.Post(shop+"/commands", `{"kind":"issue","number":0,"intent":"triage"}`).Problem(t, 400, "number")
	ed.Post(shop+"/commands", `{"kind":"issue","number":7,"intent":"triage","colour":"red"}`).Problem(t, 400, "colour")

	recorded(t, s.Core(t), "shop")
	for path, want := range map[string]string{
		"repositories/shop/runs": run.Name, "repositories/shop/runs?state=queued": run.Name, "repositories/shop/runs?state=failed": "", "repositories/other/runs": "",
		"repositories/shop/items": "shop.issue-1 shop.issue-2 shop.pull-request-3", "repositories/other/items": "",
		"repositories/shop/items?kind=issue&number=2": "shop.issue-2", "repositories/shop/items?state=closed": "",
		"repositories/shop/items?reviewVerdict=needs_changes&repairState=failed&automergeState=blocked": "shop.pull-request-3", "repositories/shop/items?reviewVerdict=passed": "",
		"work-actions?name=shop": "shop-implement-1 shop-implement-2 shop-review-3", "work-actions?name=shop&kind=pull_request&intent=review&state=queued": "shop-review-3", "work-actions?name=other": "",
		"actions?name=shop": "shop-implement-1 shop-implement-2", "actions?name=shop&intent=plan": "",
		"implementation-jobs?name=shop&number=2": "shop-implement-2", "mutations?name=shop&operation=post_comment&number=1": "shop-comment-1", "mutations?name=shop&state=failed": "",
		"commands?name=shop&intent=plan": "",
	} {
		a := viewer.Get(monitors+path).Want(t, 200, `"metadata":{`)
		var names []string
		for _, item := range host.Decode[struct {
			Items []metav1.PartialObjectMetadata
		}](t, a).Items {
			names = append(names, item.Name)
		}
		if slices.Sort(names); strings.Join(names, " ") != want {
			t.Errorf("%s: %v, want %s", path, names, want)
		}
	}
	viewer.Get(monitors+"commands").Problem(t, 400, "name: is required")
	viewer.Get(monitors+"mutations?name=shop&number=one").Problem(t, 400, "number: must be a number and at least 1")
	viewer.Get(monitors+"commands?name=shop&namespace=other").Problem(t, 403, "cannot list")
	viewer.Get(monitors+"implementation-jobs/shop-implement-1").Want(t, 200, `"kind":"MonitorWorkAction"`, `"desiredAction":"implement"`)
	viewer.Get(monitors+"implementation-jobs/shop-review-3").Problem(t, 404, `"shop-review-3" not found`)
	viewer.Get(monitors+"actions/shop-review-3").Problem(t, 404, `"shop-review-3" not found`)
	viewer.Get(monitors+"work-actions/shop-review-3").Want(t, 200, `"desiredAction":"review"`)
	viewer.Get(monitors+"events?name=shop").Problem(t, 501, "not supported by this version")
	viewer.Get(monitors+"implementation-jobs/shop-implement-1/patch-preview").Problem(t, 501, "artifacts of the task")
	ed.Do(http.MethodDelete, shop, "").Want(t, 204)
	ed.Do(http.MethodDelete, shop, "").Problem(t, 404, "not found")
}

// monitors calls the operations about what the monitor y does.
func (r *replay) monitors(c typed.CoreV1alpha1Interface) {
	r.t.Helper()
	const y = monitors + "repositories/y"
	run := host.Decode[v1alpha1.MonitorRun](r.t, r.call(r.admin, http.MethodPost, y+"/runs", ""))
	var command string
	for range 2 { // for a second page
		command = host.Decode[v1alpha1.MonitorCommand](r.t, r.call(r.admin, http.MethodPost, y+"/commands", `{"kind":"issue","number":1,"intent":"triage"}`)).Name
	}
	another := run.DeepCopy()
	another.ObjectMeta = metav1.ObjectMeta{Name: "another"}
	kit.Must[*v1alpha1.MonitorRun](r.t)(c.MonitorRuns("default").Create(r.t.Context(), another, metav1.CreateOptions{}))
	recorded(r.t, c, "y")
	for _, path := range []string{
		"repositories/y/runs", "repositories/y/items", "commands?name=y", "commands/" + command, "work-actions?name=y", "work-actions/y-review-3", "actions?name=y", "actions/y-implement-1",
		"implementation-jobs?name=y", "implementation-jobs/y-implement-1", "mutations?name=y", "mutations/y-comment-1",
	} {
		r.call(r.admin, http.MethodGet, monitors+path, "")
	}
}
