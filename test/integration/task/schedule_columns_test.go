// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// scheduleRow returns what kubectl get -o wide shows of a schedule, in its order.
func scheduleRow(t *testing.T, s *standalone.Server, name string) string {
	t.Helper()
	code, body := host.Get(t, s.Config(), standalone.TasksPath+"/"+name, "application/json;as=Table;v=v1;g=meta.k8s.io")
	var table metav1.Table
	if err := json.Unmarshal([]byte(body), &table); err != nil || code != http.StatusOK {
		t.Fatalf("%d %s: %v", code, body, err)
	}
	var cells []string
	for i, c := range table.ColumnDefinitions {
		if slices.Contains([]string{"Schedule", "Timezone", "Suspend", "Active"}, c.Name) {
			cells = append(cells, c.Name+" "+table.Rows[0].Cells[i].(string))
		}
	}
	return strings.Join(cells, ", ")
}

// kubectl get -o wide shows a schedule as it shows a CronJob: also how many runs are active, after a restart too.
func TestScheduleColumns(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	tasks := kit.Must[*versioned.Clientset](t)(versioned.NewForConfig(s.Config())).CoreV1alpha1().Tasks("default")
	spec := v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}, Schedule: "0 3 * * *", TimeZone: "Europe/Berlin"}
	schedule := kit.Must[*v1alpha1.Task](t)(tasks.Create(t.Context(), &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}, Spec: spec}, metav1.CreateOptions{}))
	var run *v1alpha1.Task
	for range 2 {
		run = schedule.RunOfSchedule()
		run.GenerateName, run.OwnerReferences = "nightly-", []metav1.OwnerReference{*metav1.NewControllerRef(schedule, v1alpha1.SchemeGroupVersion.WithKind("Task"))}
		run = kit.Must[*v1alpha1.Task](t)(tasks.Create(t.Context(), run, metav1.CreateOptions{}))
	}
	want := func(active string) {
		t.Helper()
		if got, want := scheduleRow(t, s, "nightly"), "Schedule 0 3 * * *, Timezone Europe/Berlin, Suspend false, Active "+active; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	await := func() { // the server reads its tasks at the start
		t.Helper()
		kit.Await(t, "number of runs", func() bool { return !strings.HasSuffix(scheduleRow(t, s, "nightly"), "?") })
	}
	await()
	want("2")
	run.Status.Phase = v1alpha1.TaskSucceeded
	kit.Must[*v1alpha1.Task](t)(tasks.UpdateStatus(t.Context(), run, metav1.UpdateOptions{}))
	want("1")
	s.Restart(t)
	await()
	want("1")
}
