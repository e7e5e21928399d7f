// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	core "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
)

// caller is one identity: a column of the matrix.
type caller struct {
	name string
	// token is sent as a Bearer token; an administrator has a certificate instead.
	token string
	// role is the letter of the platform's role that the caller has in namespace team, as in permissions; 0 for none.
	role rune
	// unknown is set if no request of the caller is authenticated.
	unknown bool
	// run is the run of a worker: its own task is the one that the questions are about, or another one.
	run string
}

const (
	runSelf, runParent, runChild = "self", "parent", "child"
	runOther, runOver, runNone   = "other", "over", "none"
)

// world is a server with the objects that the questions are about. Everything is named mine in namespace team: a task,
// and a session, an agent, a provider, a tool and a skill that only this task uses. The task was delegated by the task
// parent, and delegated the task child.
type world struct {
	*server

	issuer  *issuer
	api     core.CoreV1alpha1Interface // of the administrator
	editor  core.CoreV1alpha1Interface // of a person who creates tasks
	callers []caller
	// names has the name of the object of a resource if it is not mine.
	names map[string]string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	i := newIssuer(t)
	w := &world{server: start(t, i.options(external.ModeEnforce)), issuer: i, names: map[string]string{}}
	w.Namespaces(t, "team", "elsewhere")
	w.api = w.Core(t)
	w.editor = w.as(w.account("team", "person", "platform-editor", nil))
	parent := w.task("parent", nil)
	mine := w.task("mine", parent)
	tasks := map[string]*v1alpha1.Task{
		"parent": parent, "mine": mine, "child": w.task("child", mine), "other": w.task("other", nil), "ended": w.task("ended", nil),
	}
	add := func(c caller) { w.callers = append(w.callers, c) }
	add(caller{name: "administrator"})
	add(caller{name: "anonymous", unknown: true})
	for _, role := range []string{"viewer", "editor", "approver", "operator"} {
		name := "platform-" + role
		add(caller{name: role, role: rune(role[0]), token: w.account("team", "has-"+name, name, nil)})
	}
	for _, run := range []struct{ name, task, run string }{
		{"worker of the task", "mine", runSelf},
		{"worker of its parent", "parent", runParent},
		{"worker of its child", "child", runChild},
		{"worker of another task", "other", runOther},
		{"worker of an ended task", "ended", runOver},
	} {
		add(caller{name: run.name, role: 'w', run: run.run, token: w.worker(tasks[run.task])})
	}
	add(caller{name: "earlier run of the task", role: 'w', run: runOver, token: w.worker(mine)})
	w.publish("mine", v1alpha1.TaskRunning) // a later run, whose credential is the worker's of the task
	for n := range w.callers {
		if w.callers[n].run == runSelf {
			w.callers[n].token = w.worker(mine)
		}
	}
	add(caller{name: "worker without a task", role: 'w', run: runNone, token: w.account("team", v1alpha1.ServiceAccountAIWorker, v1alpha1.ClusterRoleWorker, nil)})
	w.publish("ended", v1alpha1.TaskSucceeded)
	for _, refused := range []string{"expired", "other audience"} {
		for _, of := range []struct{ name, account, role string }{
			{"administrator's token", "has-cluster-admin", "cluster-admin"}, {"editor's token", "has-platform-editor", "platform-editor"},
		} {
			add(caller{name: of.name + ", " + refused, unknown: true, token: w.refused("team", of.account, of.role, refused, nil)})
		}
		add(caller{name: "token of the worker of the task, " + refused, unknown: true, token: w.refused("team", v1alpha1.ServiceAccountAIWorker, v1alpha1.ClusterRoleWorker, refused, mine)})
	}
	add(caller{name: "editor of another namespace", token: w.account("elsewhere", "has-platform-editor", "platform-editor", nil)})
	w.bind("team", "platform-viewer", "oidc:dev")
	w.awaitKeys(i.token("user-1"))
	dev := object{"groups": "dev"}
	add(caller{name: "OIDC viewer", role: 'v', token: i.token("user-1", dev)})
	add(caller{name: "OIDC without a role", token: i.token("user-2")})
	add(caller{name: "OIDC not on the list", unknown: true, token: i.token("stranger", dev)})
	add(caller{name: "OIDC expired", unknown: true, token: i.token("user-1", dev, object{"exp": time.Now().Add(-time.Hour).Unix()})})
	add(caller{name: "OIDC other audience", unknown: true, token: i.token("user-1", dev, object{"aud": "other"})})
	w.others(mine)
	return w
}
