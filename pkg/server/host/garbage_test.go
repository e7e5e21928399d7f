// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/test/kit"
	kithost "github.com/platform-ai/platform/test/kit/host"
)

// heap is a server whose ConfigMaps own each other.
type heap struct {
	*server
	t   *testing.T
	k   kubernetes.Interface
	uid map[string]types.UID
}

func newHeap(t *testing.T) *heap {
	s := start(t, t.TempDir(), clock.RealClock{})
	return &heap{server: s, t: t, k: s.client(s.admin()), uid: map[string]types.UID{}}
}

// owned creates a ConfigMap with the given owners, which are ConfigMaps that the test made. A "!" before a name blocks the owner.
func (h *heap) owned(name string, owners ...string) {
	h.t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: meta(name)}
	m.OwnerReferences = h.refs(owners...)
	h.uid[name] = mustT[*corev1.ConfigMap](h.t)(h.k.CoreV1().ConfigMaps("default").Create(h.t.Context(), m, metav1.CreateOptions{})).UID
}

func (h *heap) refs(owners ...string) (refs []metav1.OwnerReference) {
	for _, o := range owners {
		name, blocks := strings.CutPrefix(o, "!")
		refs = append(refs, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: h.uid[name], BlockOwnerDeletion: &blocks})
	}
	return refs
}

func (h *heap) own(name string, owners ...string) {
	h.t.Helper()
	m := mustT[*corev1.ConfigMap](h.t)(h.k.CoreV1().ConfigMaps("default").Get(h.t.Context(), name, metav1.GetOptions{}))
	m.OwnerReferences = h.refs(owners...)
	mustT[*corev1.ConfigMap](h.t)(h.k.CoreV1().ConfigMaps("default").Update(h.t.Context(), m, metav1.UpdateOptions{}))
}

func (h *heap) hold(name string, finalizers ...string) {
	h.t.Helper()
	m := mustT[*corev1.ConfigMap](h.t)(h.k.CoreV1().ConfigMaps("default").Get(h.t.Context(), name, metav1.GetOptions{}))
	m.Finalizers = finalizers
	mustT[*corev1.ConfigMap](h.t)(h.k.CoreV1().ConfigMaps("default").Update(h.t.Context(), m, metav1.UpdateOptions{}))
}

func (h *heap) remove(name string, policy metav1.DeletionPropagation) {
	h.t.Helper()
	if err := h.k.CoreV1().ConfigMaps("default").Delete(h.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		h.t.Fatal(err)
	}
}

// left returns the ConfigMaps that exist, each with its owners, and with a "-" if it is being deleted.
func (h *heap) left() string {
	h.t.Helper()
	list := mustT[*corev1.ConfigMapList](h.t)(h.k.CoreV1().ConfigMaps("default").List(h.t.Context(), metav1.ListOptions{}))
	var out []string
	for _, m := range list.Items {
		text := m.Name
		for _, o := range m.OwnerReferences {
			text += "<" + o.Name
		}
		if m.DeletionTimestamp != nil {
			text += "-"
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (h *heap) await(want string) {
	h.t.Helper()
	kit.Await(h.t, want, func() bool { return h.left() == want })
}

// What an object owns goes with it, unless somebody else owns it, too, or the deletion keeps it.
func TestOwnedObjectsGoWithTheirOwners(t *testing.T) {
	t.Parallel()
	h := newHeap(t)
	t.Run("background", func(t *testing.T) {
		for _, o := range [][]string{{"a"}, {"b", "a"}, {"c", "b"}, {"other"}, {"shared", "a", "other"}} {
			h.owned(o[0], o[1:]...)
		}
		h.remove("a", metav1.DeletePropagationBackground)
		h.await("other shared<other")
		h.remove("other", metav1.DeletePropagationBackground)
		h.await("")
	})
	t.Run("foreground", func(t *testing.T) {
		for _, o := range [][]string{{"a"}, {"b", "!a"}, {"c", "!b"}, {"free", "a"}} {
			h.owned(o[0], o[1:]...)
		}
		h.hold("c", "example.com/hold")
		h.remove("a", metav1.DeletePropagationForeground)
		h.await("a- b<a- c<b-") // c is held, so b and a wait for it
		h.hold("c")
		h.await("")
	})
	t.Run("foreground without anything that blocks", func(t *testing.T) {
		h.owned("a")
		h.owned("b", "a")
		h.hold("b", "example.com/hold")
		h.remove("a", metav1.DeletePropagationForeground)
		h.await("b<a-")
		h.hold("b")
		h.await("")
	})
	t.Run("orphan", func(t *testing.T) {
		for _, o := range [][]string{{"a"}, {"b", "!a"}, {"c", "b"}} {
			h.owned(o[0], o[1:]...)
		}
		h.remove("a", metav1.DeletePropagationOrphan)
		h.await("b c<b")
		h.remove("b", metav1.DeletePropagationBackground)
		h.await("")
	})
	t.Run("a circle", func(t *testing.T) {
		h.owned("a")
		h.owned("b", "!a")
		h.own("a", "!b")
		h.remove("a", metav1.DeletePropagationForeground)
		h.await("")
	})
	t.Run("an owner that never was", func(t *testing.T) {
		h.uid["never"] = "4711"
		h.owned("a", "never")
		h.await("")
	})
	t.Run("after a restart", func(t *testing.T) {
		for _, o := range [][]string{{"a"}, {"b", "!a"}, {"c"}, {"d", "c"}} {
			h.owned(o[0], o[1:]...)
		}
		h.hold("b", "example.com/hold")
		h.remove("a", metav1.DeletePropagationForeground)
		h.remove("c", metav1.DeletePropagationOrphan)
		h.restart()
		h.k = h.client(h.admin())
		h.await("a- b<a- d")
		h.hold("b")
		h.await("d")
	})
}

// Objects of a namespace can belong to one without, and objects of all kinds to each other.
func TestOwnersOfOtherKinds(t *testing.T) {
	t.Parallel()
	h := newHeap(t)
	task := h.createTask("default", "t")
	role := mustT[*rbacv1.ClusterRole](t)(h.k.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta("r")}, metav1.CreateOptions{}))
	ofTask := metav1.OwnerReference{APIVersion: "core.platform.ai/v1alpha1", Kind: "Task", Name: "t", UID: task}
	ofRole := metav1.OwnerReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "r", UID: role.UID}
	secrets := h.k.CoreV1().Secrets("default")
	for name, ref := range map[string]metav1.OwnerReference{"of-task": ofTask, "of-role": ofRole} {
		s := &corev1.Secret{ObjectMeta: meta(name)}
		s.OwnerReferences = []metav1.OwnerReference{ref}
		mustT[*corev1.Secret](t)(secrets.Create(t.Context(), s, metav1.CreateOptions{}))
	}
	h.deleteTask("default", "t")
	gone := func(name string) func() bool {
		return func() bool {
			_, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}
	}
	kit.Await(t, "the Secret of the task goes", gone("of-task"))
	if gone("of-role")() {
		t.Error("the Secret of the ClusterRole went with the task")
	}
	if err := h.k.RbacV1().ClusterRoles().Delete(t.Context(), "r", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	kit.Await(t, "the Secret of the ClusterRole goes", gone("of-role"))

	// The namespaces of the server stay, whatever they refer to.
	ns := mustT[*corev1.Namespace](t)(h.k.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}))
	ns.OwnerReferences = []metav1.OwnerReference{ofRole}
	mustT[*corev1.Namespace](t)(h.k.CoreV1().Namespaces().Update(t.Context(), ns, metav1.UpdateOptions{}))
	h.uid["never"] = "4711"
	h.owned("later", "never") // it is collected, so the namespace was most likely looked at before
	h.await("")
	if ns = mustT[*corev1.Namespace](t)(h.k.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})); ns.DeletionTimestamp != nil {
		t.Error("the namespace default is being deleted")
	}

	for want, ref := range map[string]metav1.OwnerReference{
		"is not a kind that this server stores": {APIVersion: "apps/v1", Kind: "Deployment", Name: "d", UID: "1"},
		"is namespaced":                         ofTask,
	} {
		bad := &rbacv1.ClusterRole{ObjectMeta: meta("bad")}
		bad.OwnerReferences = []metav1.OwnerReference{ref}
		_, err := h.k.RbacV1().ClusterRoles().Create(t.Context(), bad, metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "metadata.ownerReferences[0].kind") || !strings.Contains(err.Error(), want) {
			t.Errorf("owner %s: %v", ref.Kind, err)
		}
	}
}

// keepLabelled installs a policy that keeps ConfigMaps with a label from being deleted.
func keepLabelled(t *testing.T, k kubernetes.Interface) {
	t.Helper()
	p := kithost.Policy("keep", "!('keep' in oldObject.metadata.?labels.orValue({}))", "this one is kept")
	rule := &p.Spec.MatchConstraints.ResourceRules[0].RuleWithOperations
	rule.Operations = []admissionv1.OperationType{admissionv1.Delete}
	rule.APIGroups, rule.APIVersions, rule.Resources = []string{""}, []string{"v1"}, []string{"configmaps"}
	kithost.Install(t, k, p, kithost.Deny("keep"))
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "probe", Labels: map[string]string{"keep": ""}}}
	kit.Await(t, "the policy is in force", func() bool {
		_, err := k.CoreV1().ConfigMaps("kube-system").Create(t.Context(), probe, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		return k.CoreV1().ConfigMaps("kube-system").Delete(t.Context(), "probe", metav1.DeleteOptions{}) != nil
	})
}

// Policies judge what the server deletes as they judge single deletes: what is in a namespace that goes, and what an owner leaves.
func TestPoliciesJudgeDeletionsOfTheServer(t *testing.T) {
	t.Parallel()
	h := newHeap(t)
	keepLabelled(t, h.k)
	mustT[*corev1.Namespace](t)(h.k.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: meta("team")}, metav1.CreateOptions{}))
	maps := h.k.CoreV1().ConfigMaps("team")
	for i, labels := range []map[string]string{{"keep": ""}, nil, {"keep": ""}} {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m", i), Labels: labels}}
		mustT[*corev1.ConfigMap](t)(maps.Create(t.Context(), m, metav1.CreateOptions{}))
	}
	if err := h.k.CoreV1().Namespaces().Delete(t.Context(), "team", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.awaitNamespace(h.k, "team", func(n *corev1.Namespace) bool {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NamespaceDeletionContentFailure && c.Status == corev1.ConditionTrue {
				return strings.Contains(c.Message, "this one is kept") && strings.Contains(c.Message, "1 more")
			}
		}
		return false
	})
	list := mustT[*corev1.ConfigMapList](t)(maps.List(t.Context(), metav1.ListOptions{}))
	if len(list.Items) != 2 {
		t.Errorf("%d ConfigMaps are left, want the two that the policy keeps", len(list.Items))
	}
	waitGone(t, h.k, "team", func() {
		for _, name := range []string{"m0", "m2"} {
			mustT[*corev1.ConfigMap](t)(maps.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{}))
		}
	})

	h.owned("owner")
	h.owned("one", "owner")
	h.owned("two", "owner")
	mine := h.k.CoreV1().ConfigMaps("default")
	mustT[*corev1.ConfigMap](t)(mine.Patch(t.Context(), "one", types.MergePatchType, []byte(`{"metadata":{"labels":{"keep":""}}}`), metav1.PatchOptions{}))
	h.remove("owner", metav1.DeletePropagationBackground)
	h.await("one<owner")
	mustT[*corev1.ConfigMap](t)(mine.Patch(t.Context(), "one", types.MergePatchType, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{}))
	h.await("")
}
