// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	core "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/cluster"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/roles"
)

// place is a host of the API and a namespace of its own there.
type place struct {
	t         *testing.T
	c         *cluster.Cluster // for its kubectl
	namespace string
	host.Host
}

// TestRoles: the platform's roles allow what they are meant for and nothing else, in a cluster and in the standalone host,
// according to kubectl auth can-i and to real requests.
func TestRoles(t *testing.T) {
	t.Run("cluster", func(t *testing.T) {
		s := Start(t)
		newPlace(t, s.c, s.Host).test()
	})
	t.Run("standalone", func(t *testing.T) {
		newPlace(t, cluster.Control(t), standalone.Start(t).Host).test()
	})
}

func newPlace(t *testing.T, c *cluster.Cluster, h host.Host) *place {
	t.Helper()
	p := &place{t: t, c: c, namespace: "roles", Host: h}
	p.Namespaces(t, p.namespace)
	ctx, namespaces := context.WithoutCancel(t.Context()), p.Kubernetes(t).CoreV1().Namespaces()
	t.Cleanup(func() {
		if err := namespaces.Delete(ctx, p.namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return p
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// account returns the configuration of a ServiceAccount that has the role in the namespace. Only accounts of workers may
// have the role of workers.
func (p *place) account(role string) *rest.Config {
	p.t.Helper()
	name := "has-" + role
	if role == v1alpha1.ClusterRoleWorker {
		name = v1alpha1.ServiceAccountAIWorker
	}
	c := p.With(p.Token(p.t, p.namespace, name, role))
	kit.Await(p.t, "the binding of "+role+" in effect", func() bool { return p.may(c, "list", "tasks") })
	return c
}

// may reports whether the holder of a configuration has a permission.
func (p *place) may(c *rest.Config, verb, resource string) bool {
	p.t.Helper()
	a := &authorizationv1.ResourceAttributes{Namespace: p.namespace, Verb: verb, Group: v1alpha1.GroupName}
	a.Resource, a.Subresource, _ = strings.Cut(resource, "/")
	r := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: a}}
	client := must(kubernetes.NewForConfig(c))(p.t)
	return must(client.AuthorizationV1().SelfSubjectAccessReviews().Create(p.t.Context(), r, metav1.CreateOptions{}))(p.t).Status.Allowed
}

func (p *place) test() {
	p.complete()
	accounts := map[string]*rest.Config{}
	for letter, role := range roles.Names() {
		c := p.account(role)
		accounts[role] = c
		p.t.Run(role, func(t *testing.T) {
			in := *p
			in.t = t
			in.permissions(c, letter)
		})
	}
	p.t.Run("work", func(t *testing.T) {
		in := *p
		in.t = t
		in.work(accounts)
	})
}

// complete checks that the table covers everything that the server offers.
func (p *place) complete() {
	p.t.Helper()
	known := map[string]bool{}
	for _, row := range roles.Permissions() {
		known[row.Verb+" "+row.Resource] = true
	}
	served := must(p.Kubernetes(p.t).Discovery().ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String()))(p.t)
	for _, r := range served.APIResources {
		for _, verb := range r.Verbs {
			if !known[verb+" "+r.Name] {
				p.t.Errorf("the table does not say who may %s %s", verb, r.Name)
			}
		}
	}
}

// permissions checks one role against the table.
func (p *place) permissions(c *rest.Config, letter rune) {
	kubectl := p.kubectl(c)
	var g errgroup.Group
	g.SetLimit(8)
	var asked []string // by kubectl, once for each answer about a verb: running a program for each permission would take minutes
	for _, row := range roles.Permissions() {
		verb, resource, allowed := row.Verb, row.Resource, strings.ContainsRune(row.Roles, letter)
		question := fmt.Sprint(verb, row.Roles)
		byKubectl := !slices.Contains(asked, question)
		asked = append(asked, question)
		g.Go(func() error {
			if p.may(c, verb, resource) != allowed {
				p.t.Errorf("%s %s: a SelfSubjectAccessReview says %t", verb, resource, !allowed)
			}
			if byKubectl {
				p.canI(kubectl, verb, resource, allowed)
			}
			if resource != "executionevents/controlled" { // it has no path
				p.try(c, verb, resource, letter, allowed)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		p.t.Error(err)
	}
}

// kubectl is the start of a command as the account.
func (p *place) kubectl(c *rest.Config) string {
	p.t.Helper()
	return "kubectl --kubeconfig=" + host.Kubeconfig(p.t, c, p.namespace) + " "
}

func (p *place) canI(kubectl, verb, resource string, allowed bool) {
	name, sub, _ := strings.Cut(resource, "/")
	line := fmt.Sprintf("auth can-i %s %s.%s --subresource=%q", verb, name, v1alpha1.GroupName, sub)
	r := p.c.Shell(p.t, kubectl+line+" 2>/dev/null")
	if got := strings.TrimSpace(r.Output); got != map[bool]string{true: "yes", false: "no"}[allowed] {
		p.t.Errorf("kubectl %s: %s", line, got)
	}
}

// try makes the request for something that does not exist, so that an allowed one changes nothing: it fails for that
// reason, or returns an empty list. The account of workers is refused whatever its role allows, because it has no task.
func (p *place) try(c *rest.Config, verb, resource string, letter rune, allowed bool) {
	resource, sub, _ := strings.Cut(resource, "/")
	path := "/apis/" + v1alpha1.SchemeGroupVersion.String() + "/namespaces/" + p.namespace + "/" + resource
	if sub != "" {
		path += "/none/" + sub
	} else if slices.Contains([]string{"get", "update", "patch", "delete"}, verb) {
		path += "/none"
	}
	method, body, kind := http.MethodGet, "", "application/json"
	switch verb {
	case "watch":
		path += "?watch=true&timeoutSeconds=1"
	case "create":
		method, body = http.MethodPost, "{}"
	case "update":
		method, body = http.MethodPut, "{}"
	case "patch":
		method, body, kind = http.MethodPatch, "{}", string(types.MergePatchType)
	case "delete":
		method = http.MethodDelete
	case "deletecollection":
		method = http.MethodDelete
		path += "?labelSelector=of=nobody"
	}
	a := p.Ask(p.t, c, method, path, body, "Content-Type", kind)
	denied := a.Code == http.StatusForbidden && strings.Contains(a.Body, fmt.Sprintf(`cannot %s resource \"%s`, verb, resource))
	if letter == 'w' && allowed && a.Code < http.StatusBadRequest {
		p.t.Errorf("%s %s: %d %s; the account has no task", method, path, a.Code, a.Body)
	}
	if denied == allowed || a.Code >= 500 || !allowed && !denied {
		p.t.Errorf("%s %s: %d %s", method, path, a.Code, a.Body)
	}
}

// work makes real changes with each role: they succeed if the role permits them, and are refused otherwise.
func (p *place) work(accounts map[string]*rest.Config) {
	ctx, t := p.t.Context(), p.t
	as := map[string]core.CoreV1alpha1Interface{}
	for role, c := range accounts {
		as[role] = host.CoreOf(t, c)
	}
	admin := p.Core(t)
	newTask := func(name string) *v1alpha1.Task {
		return &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TaskSpec{
			Type: v1alpha1.TaskTypeAI, Prompt: "find it", AI: &v1alpha1.TaskAI{Provider: v1alpha1.ProviderOpenAI, Model: "m"},
		}}
	}
	source := must(admin.Tasks(p.namespace).Create(ctx, newTask("source"), metav1.CreateOptions{}))(t)
	ask := approval.RequestEvent(p.namespace, v1alpha1.ApprovalSpec{
		TaskName: source.Name, TaskUID: source.UID, Action: "delete it", TargetTool: "exec", ToolCallID: "call",
		TargetArgsDigest: must(approval.Digest([]byte("{}")))(t),
	})
	for _, e := range []*v1alpha1.ExecutionEvent{{Type: v1alpha1.EventTaskStarted}, ask} {
		must(admin.Tasks(p.namespace).AppendEvent(ctx, source.Name, e, metav1.CreateOptions{}))(t)
	}
	opts := metav1.CreateOptions{}
	do := []struct {
		what, roles string
		f           func(c core.CoreV1alpha1Interface, role string) error
	}{
		{"list", "veao", func(c core.CoreV1alpha1Interface, _ string) error {
			list, err := c.Tasks(p.namespace).List(ctx, metav1.ListOptions{})
			if err == nil && len(list.Items) == 0 {
				return errors.New("the list has no task")
			}
			return err
		}},
		{"watch", "veao", func(c core.CoreV1alpha1Interface, _ string) error {
			w, err := c.ExecutionEvents(p.namespace).Watch(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			defer w.Stop()
			if e := <-w.ResultChan(); e.Object == nil {
				return errors.New("the watch ended without an event")
			}
			return nil
		}},
		{"create", "eo", func(c core.CoreV1alpha1Interface, role string) error {
			_, err := c.Tasks(p.namespace).Create(ctx, newTask("of-"+role), opts)
			return err
		}},
		{"append an event", "", func(c core.CoreV1alpha1Interface, _ string) error {
			_, err := c.Tasks(p.namespace).AppendEvent(ctx, source.Name, &v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelMessage}, opts)
			return err
		}},
		{"fork", "eo", func(c core.CoreV1alpha1Interface, role string) error {
			f := &v1alpha1.TaskFork{Spec: v1alpha1.TaskForkSpec{NewTaskName: "fork-of-" + role}}
			_, err := c.Tasks(p.namespace).Fork(ctx, source.Name, f, opts)
			return err
		}},
		{"write a status", "o", func(c core.CoreV1alpha1Interface, role string) error {
			_, err := c.Tasks(p.namespace).Patch(ctx, source.Name, types.MergePatchType, []byte(`{"status": {"message": "`+role+`"}}`), metav1.PatchOptions{}, "status")
			return err
		}},
		{"decide", "a", func(c core.CoreV1alpha1Interface, _ string) error {
			d := &v1alpha1.ApprovalDecision{Spec: v1alpha1.ApprovalDecisionSpec{Decision: "approve"}}
			_, err := c.Approvals(p.namespace).Decide(ctx, approval.IDOf(ask), d, opts)
			return err
		}},
		{"cancel", "eo", func(c core.CoreV1alpha1Interface, _ string) error {
			_, err := c.Tasks(p.namespace).Cancel(ctx, source.Name, &v1alpha1.TaskCancellation{}, opts)
			return err
		}},
		{"delete", "eo", func(c core.CoreV1alpha1Interface, role string) error {
			return c.Tasks(p.namespace).Delete(ctx, "fork-of-"+role, metav1.DeleteOptions{})
		}},
	}
	for _, d := range do {
		for letter, role := range roles.Names() {
			err := d.f(as[role], role)
			if allowed := strings.ContainsRune(d.roles, letter); allowed && err != nil || !allowed && !apierrors.IsForbidden(err) {
				t.Errorf("%s: %s: %v", role, d.what, err)
			}
		}
	}
}
